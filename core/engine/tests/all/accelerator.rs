//! The seam to an accelerator, with an accelerator over arkworks: what it does is taken, what it declines the
//! processor does, with the same result.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::common::{Place, column_in, place};
use ark_bn254::{Fr, G1Affine, G1Projective, G2Affine, G2Projective, g1, g2};
use ark_ec::VariableBaseMSM;
use ark_ec::short_weierstrass::{Affine, Projective};
use ark_ff::{AdditiveGroup, Field, UniformRand};
use ark_poly::{EvaluationDomain, Radix2EvaluationDomain};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use spillproof_commit::{Combination, G1, Keep, divide_and_commit, generate_scratch};
use spillproof_engine::Error;
use spillproof_engine::Result;
use spillproof_engine::accelerator::{
    self, Accelerator, Answer, Arrivals, Bases, Groups, ReadElements, Totals,
};
use spillproof_engine::budget::{Budget, Buffer, Lender};
use spillproof_engine::column::{Column, Draft, Element, Placement, Workspace, Writer};
use spillproof_engine::error::Invalid;
use spillproof_engine::plan::{Job, Phase, Plan, Rates};
use spillproof_engine::storage::{Fault, FaultPlan, Storage};
use spillproof_engine::stream::{Scalars, Terms, Transform, msm, ntt, sums_of_terms, sums_over};
use spillproof_kernels::curve::{Curve, Point};
use spillproof_kernels::field::KernelField;
use spillproof_kernels::ntt::NttElement;

/// What the accelerator of a test does with a job.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    /// By arkworks, right; elements are asked for so many at a time.
    Does { at_a_time: usize },
    /// The same, in memory that is lent: frames may land in it, page-aligned for each part anew.
    LendsMemory { at_a_time: usize },
    /// Not at all.
    Declines,
    /// After half of the input was read, and half of an output written, of nothing.
    StopsInTheMiddle,
    /// By arkworks, from a second reading, and written for the second time.
    BeginsAnew,
    /// Sums in several ranges of the points, at one time.
    InParts,
    /// With an answer of the wrong shape.
    AnswersNonsense,
}

#[derive(Debug)]
struct Arkworks {
    way: Way,
    jobs: AtomicU64,
}

/// What was begun, when it is there.
fn settle((part, mut lender, arrivals): (&mut [u8], Lender<Buffer>, Arrivals)) -> Result<()> {
    arrivals.settle()?;
    let memory = lender.memory().expect("it is given back");
    part.copy_from_slice(&memory[..part.len()]);
    Ok(())
}

impl Arkworks {
    fn read<E: Element>(&self, from: &mut dyn ReadElements, count: usize) -> Result<Vec<E>> {
        let at_a_time = match self.way {
            Way::Does { at_a_time } | Way::LendsMemory { at_a_time } => at_a_time,
            _ => 64,
        };
        let mut bytes = vec![0; count * E::BYTES];
        if self.way == Way::BeginsAnew {
            from.read(0, &mut bytes[..count.min(3) * E::BYTES])?;
        }
        let mut first = 0;
        // Parts that are begun, before the first of them is settled.
        let mut begun = VecDeque::new();
        for part in bytes.chunks_mut(at_a_time * E::BYTES) {
            let elements = (part.len() / E::BYTES) as u64;
            if let Way::LendsMemory { .. } = self.way {
                let mut lender = Lender::new(Budget::unlimited().buffer(part.len(), "lent")?);
                lender.memory().unwrap().fill(0xee);
                let arrivals = from.begin(first, lender.lend(part.len()).unwrap())?;
                begun.push_back((part, lender, arrivals));
                if begun.len() == 3 {
                    begun.pop_front().map(settle).transpose()?;
                }
            } else {
                from.read(first, part)?;
            }
            first += elements;
        }
        begun.into_iter().try_for_each(settle)?;
        Ok(bytes.chunks_exact(E::BYTES).map(E::decode).collect())
    }

    /// Each range on a thread of its own, the last first; there are none of what can be read in one order
    /// only.
    fn in_parts(&self, job: &accelerator::Sums<'_>, budget: &Budget) -> Result<Answer<Totals>> {
        let Some(parts) = &job.parts else {
            return Ok(Answer::Declined("in one order only".into()));
        };
        let points = job.points();
        let whole = Self {
            way: Way::Does { at_a_time: 700 },
            jobs: AtomicU64::new(0),
        };
        let starts: Vec<u64> = (0..points).step_by(parts.step as usize).collect();
        let made = std::thread::scope(|scope| {
            let of_range = |start: &u64| {
                let range = *start..(start + parts.step).min(points);
                scope.spawn(|| whole.sums(&mut (parts.of)(range)?, budget))
            };
            let threads: Vec<_> = starts.iter().rev().map(of_range).collect();
            let joined = threads.into_iter().map(|thread| thread.join().unwrap());
            joined.collect::<Result<Vec<_>>>()
        })?;
        let mut sums = Totals::infinity(job.counts());
        for answer in made {
            let Answer::Done(of_range) = answer else {
                panic!("{answer:?}");
            };
            assert_eq!(of_range.counts(), sums.counts());
            sums.add(&of_range);
        }
        // Several frames of scalars make a test of it.
        assert!(starts.len() > 5, "{starts:?}");
        Ok(Answer::Done(sums))
    }

    /// The sums over one column of points.
    fn over<P: Curve<ScalarField = Fr>>(
        &self,
        bases: &mut Bases<'_>,
        scalars: &mut [accelerator::Scalars<'_>],
    ) -> Result<Vec<Projective<P>>>
    where
        Point<P>: Element,
    {
        let each = scalars.iter_mut().map(|scalars| {
            let mut len = scalars.len as usize;
            if self.way == Way::StopsInTheMiddle {
                len /= 2;
            }
            let values: Vec<Fr> = self.read(&mut *scalars.source, len)?;
            let points: Vec<Point<P>> = self.read(&mut *bases.source, len)?;
            let points: Vec<Affine<P>> = points.iter().map(Point::<P>::to_affine::<P>).collect();
            Ok(Projective::<P>::msm(&points, &values).unwrap())
        });
        each.collect()
    }

    fn half_way<T>(&self) -> Option<Answer<T>> {
        self.jobs.fetch_add(1, Ordering::Relaxed);
        (self.way == Way::Declines).then(|| Answer::Declined("this test declines".into()))
    }
}

impl Accelerator for Arkworks {
    fn sums(&self, job: &mut accelerator::Sums<'_>, budget: &Budget) -> Result<Answer<Totals>> {
        if let Some(declined) = self.half_way() {
            return Ok(declined);
        }
        if self.way == Way::InParts {
            return self.in_parts(job, budget);
        }
        let mut sums = Totals::default();
        for bases in &mut job.bases.g1 {
            sums.g1.extend(self.over::<g1::Config>(bases, &mut job.scalars)?);
        }
        for bases in &mut job.bases.g2 {
            sums.g2.extend(self.over::<g2::Config>(bases, &mut job.scalars)?);
        }
        Ok(match self.way {
            Way::StopsInTheMiddle => Answer::Declined("half way".into()),
            Way::AnswersNonsense => Answer::Done(Totals::default()),
            _ => Answer::Done(sums),
        })
    }

    fn transform(&self, job: &mut accelerator::Transform<'_>, _budget: &Budget) -> Result<Answer<()>> {
        if let Some(declined) = self.half_way() {
            return Ok(declined);
        }
        let n = 1 << job.log_n;
        let mut values: Vec<Fr> = self.read(&mut *job.input, n)?;
        let half = n / 2;
        if self.way == Way::StopsInTheMiddle {
            job.output.write(0, &vec![7; half * 32])?;
            return Ok(Answer::Declined("half way".into()));
        }
        if self.way == Way::AnswersNonsense {
            return Ok(Answer::Done(()));
        }
        if self.way == Way::BeginsAnew {
            job.output.write(0, &vec![7; half * 32])?;
        }
        let mut power = Fr::ONE;
        for value in &mut values {
            *value *= power;
            power *= job.before;
        }
        // arkworks' own root, or its inverse: what else the test asks for is a bug of the test.
        let domain = Radix2EvaluationDomain::<Fr>::new(n).unwrap();
        if domain.group_gen == job.omega {
            domain.fft_in_place(&mut values);
        } else {
            assert_eq!(domain.group_gen_inv, job.omega);
            domain.ifft_in_place(&mut values);
            let size = domain.size_as_field_element;
            values.iter_mut().for_each(|value| *value *= size);
        }
        let mut power = job.scale;
        for value in &mut values {
            *value *= power;
            power *= job.after;
        }
        let mut bytes = vec![0; n * 32];
        for (value, out) in values.iter().zip(bytes.chunks_exact_mut(32)) {
            value.encode(out);
        }
        let (first, second) = bytes.split_at(half * 32);
        job.output.write(0, first)?;
        job.output.write(half as u64, second)?;
        Ok(Answer::Done(()))
    }

    fn quotient(&self, _: &mut accelerator::Coset<'_>, _: &Budget) -> Result<Answer<()>> {
        Ok(Answer::Declined("those are in `accelerator_quotient.rs`".into()))
    }
}

const WAYS: [Way; 10] = [
    Way::LendsMemory { at_a_time: 1 << 20 },
    Way::LendsMemory { at_a_time: 1024 },
    // Frames stand askew in the second part, and so nothing lands there any more.
    Way::LendsMemory { at_a_time: 700 },
    Way::Does { at_a_time: 1 << 20 },
    Way::Does { at_a_time: 1000 },
    Way::Does { at_a_time: 7 },
    Way::Declines,
    Way::StopsInTheMiddle,
    Way::BeginsAnew,
    Way::InParts,
];

fn with(place: &Place, way: Way) -> (Workspace, Arc<Arkworks>) {
    let accelerator = Arc::new(Arkworks {
        way,
        jobs: AtomicU64::new(0),
    });
    let workspace = place
        .workspace
        .clone()
        .with_accelerator(Arc::clone(&accelerator) as Arc<dyn Accelerator>);
    (workspace, accelerator)
}

fn is_an_impossible_answer(error: &Error) -> bool {
    matches!(error, Error::Invalid(Invalid::AcceleratorAnswer { .. }))
}

fn random(n: usize, seed: u64) -> Vec<Fr> {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    (0..n).map(|_| Fr::rand(&mut rng)).collect()
}

#[test]
fn sums_are_the_same_whoever_makes_them() {
    let place = place(8 << 20);
    let mut rng = ChaCha20Rng::seed_from_u64(3);
    // Neither whole frames nor whole chunks.
    let n = 5000;
    let points: Vec<G1Affine> = (0..n).map(|_| G1Affine::rand(&mut rng)).collect();
    let bases: Vec<G1> = points.iter().map(G1::from_affine::<g1::Config>).collect();
    let [long, short, few] = [random(n, 1), random(n - 1234, 2), random(3, 4)];
    let expected =
        [&long, &short, &few].map(|values| G1Projective::msm(&points[..values.len()], values).unwrap());
    for way in WAYS {
        let (workspace, accelerator) = with(&place, way);
        let bases = column_in(&workspace, &bases, Placement::Disk);
        let long = column_in(&workspace, &long, Placement::Disk);
        let foreign: &[Fr] = &short;
        let vectors = [
            Scalars::Column(&long),
            Scalars::Foreign(&foreign),
            Scalars::Slice(&few),
            Scalars::Slice(&[]),
        ];
        let held = workspace.budget.held_bytes();
        workspace.budget.restart_peak();
        let before = workspace.storage.stats().bytes_read_in_place;
        let sums = msm::<g1::Config>(&bases, &vectors).unwrap();
        assert_eq!(sums[..3], expected, "{way:?}");
        assert_eq!(sums[3], G1Projective::ZERO);
        let in_place = workspace.storage.stats().bytes_read_in_place - before;
        match way {
            // Whole frames of 16 KiB: of the points for each vector, and of the one vector that is on disk.
            Way::LendsMemory { at_a_time } if at_a_time != 700 => {
                let frames = [5000 * 64, 3766 * 64, 3 * 64, 5000 * 32].map(|bytes: u64| bytes >> 14);
                assert_eq!(in_place, frames.iter().sum::<u64>() << 14, "{way:?}");
            }
            Way::LendsMemory { .. } => assert!(in_place > 0, "{way:?}"),
            _ => assert_eq!(in_place, 0, "{way:?}"),
        }
        assert_eq!(accelerator.jobs.load(Ordering::Relaxed), 1, "{way:?}");
        assert_eq!(workspace.budget.held_bytes(), held, "{way:?}");
        assert!(workspace.budget.peak_bytes() > held, "{way:?}: who reads leases");
    }
    let (workspace, _) = with(&place, Way::AnswersNonsense);
    let bases = column_in(&workspace, &bases, Placement::Disk);
    let refused = msm::<g1::Config>(&bases, &[Scalars::Slice(&few)]).unwrap_err();
    assert!(is_an_impossible_answer(&refused), "{refused}");
}

/// Runs that begin at a frame or inside of one, and columns of a matrix, in files and in memory.
#[test]
fn sums_of_some_terms_are_those_of_their_bases_and_scalars() {
    let place = place(8 << 20);
    let mut rng = ChaCha20Rng::seed_from_u64(9);
    let (row_len, rows) = (80, 64);
    let n = (row_len * rows) as usize;
    let points: Vec<G1Affine> = (0..n).map(|_| G1Affine::rand(&mut rng)).collect();
    let values = random(n, 2);
    let panels = |width, groups| Terms::Panels {
        row_len,
        rows,
        first_column: 5,
        width,
        groups,
        first_scalar: 128,
    };
    let from = |first_base, first_scalar| Terms::From {
        first_base,
        first_scalar,
        len: 2000,
    };
    let of = |terms: Terms| -> Vec<(u64, u64)> {
        match terms {
            Terms::Range { start, len } => (start..start + len).map(|at| (at, at)).collect(),
            Terms::From {
                first_base,
                first_scalar,
                len,
            } => (0..len).map(|at| (first_base + at, first_scalar + at)).collect(),
            Terms::Panels {
                first_column,
                width,
                groups,
                first_scalar,
                ..
            } => (0..groups * rows * width)
                .map(|at| {
                    let (group, at_row) = (at / (rows * width), at % (rows * width));
                    let column = first_column + group * width + at_row % width;
                    (at_row / width * row_len + column, first_scalar + at)
                })
                .collect(),
        }
    };
    for terms in [
        Terms::first(1000),
        Terms::Range { start: 77, len: 999 },
        from(1024, 2048),
        from(3, 1111),
        panels(8, 3),
        panels(64, 1),
    ] {
        let (bases, scalars): (Vec<_>, Vec<_>) = of(terms)
            .into_iter()
            .map(|(base, scalar)| (points[base as usize], values[scalar as usize]))
            .unzip();
        let expected = G1Projective::msm(&bases, &scalars).unwrap();
        // Devices share no sum of so few terms, and none of terms that are gathered.
        let ways = WAYS.into_iter().filter(|way| !matches!(way, Way::InParts));
        for way in ways {
            for placement in [Placement::Disk, Placement::Memory] {
                let (workspace, accelerator) = with(&place, way);
                let bases: Vec<G1> = points.iter().map(G1::from_affine::<g1::Config>).collect();
                let bases = column_in(&workspace, &bases, placement);
                let scalars = column_in(&workspace, &values, placement);
                let held = workspace.budget.held_bytes();
                let sums = sums_of_terms::<g1::Config, g2::Config>(&scalars, terms, &[&bases], &[]).unwrap();
                match way {
                    Way::Declines | Way::StopsInTheMiddle => assert!(sums.is_none(), "{way:?}"),
                    _ => assert_eq!(sums.unwrap().0, [expected], "{way:?}, {placement:?}, {terms:?}"),
                }
                assert_eq!(accelerator.jobs.load(Ordering::Relaxed), 1, "{way:?}");
                assert_eq!(workspace.budget.held_bytes(), held, "{way:?}");
            }
        }
    }
    let (workspace, accelerator) = with(&place, WAYS[0]);
    let bases: Vec<G1> = points[..600].iter().map(G1::from_affine::<g1::Config>).collect();
    let bases = column_in(&workspace, &bases, Placement::Disk);
    let scalars = column_in(&workspace, &values, Placement::Disk);
    let none = sums_of_terms::<g1::Config, g2::Config>(&scalars, Terms::first(0), &[&bases], &[]).unwrap();
    assert!(none.is_none() && accelerator.jobs.load(Ordering::Relaxed) == 0);
    let beyond = sums_of_terms::<g1::Config, g2::Config>(&scalars, from(0, 0), &[&bases], &[]);
    assert!(
        matches!(beyond, Err(Error::Invalid(Invalid::Region { .. }))),
        "{beyond:?}"
    );
}

/// One vector of scalars over columns of both groups is one job, and so is one column of G2.
#[test]
fn sums_over_columns_of_both_groups_are_one_job() {
    let place = place(8 << 20);
    let mut rng = ChaCha20Rng::seed_from_u64(8);
    let n = 3000;
    let values = random(n, 1);
    let first: Vec<Vec<G1Affine>> = (0..2)
        .map(|_| (0..n).map(|_| G1Affine::rand(&mut rng)).collect())
        .collect();
    let second: Vec<G2Affine> = (0..n).map(|_| G2Affine::rand(&mut rng)).collect();
    let of_g1: Vec<G1Projective> = first
        .iter()
        .map(|points| G1Projective::msm(points, &values).unwrap())
        .collect();
    let of_g2 = [G2Projective::msm(&second, &values).unwrap()];
    let columns = |workspace: &Workspace| {
        let g1 = first.iter().map(|points| {
            let points: Vec<G1> = points.iter().map(G1::from_affine::<g1::Config>).collect();
            column_in(workspace, &points, Placement::Disk)
        });
        let g2: Vec<Point<g2::Config>> = second
            .iter()
            .map(Point::<g2::Config>::from_affine::<g2::Config>)
            .collect();
        (g1.collect::<Vec<_>>(), column_in(workspace, &g2, Placement::Disk))
    };
    for way in WAYS {
        let (workspace, accelerator) = with(&place, way);
        let (g1, g2) = columns(&workspace);
        let scalars = column_in(&workspace, &values, Placement::Disk);
        let held = workspace.budget.held_bytes();
        let sums = sums_over::<g1::Config, g2::Config>(&scalars, &[&g1[0], &g1[1]], &[&g2]).unwrap();
        match way {
            Way::Declines | Way::StopsInTheMiddle => assert!(sums.is_none(), "{way:?}"),
            _ => assert_eq!(sums.unwrap(), (of_g1.clone(), of_g2.to_vec()), "{way:?}"),
        }
        assert_eq!(accelerator.jobs.load(Ordering::Relaxed), 1, "{way:?}");
        let sums = msm::<g2::Config>(&g2, &[Scalars::Column(&scalars)]).unwrap();
        assert_eq!(sums, of_g2, "{way:?}");
        assert_eq!(accelerator.jobs.load(Ordering::Relaxed), 2, "{way:?}");
        assert_eq!(workspace.budget.held_bytes(), held, "{way:?}");
    }
    let (workspace, _) = with(&place, Way::AnswersNonsense);
    let (g1, g2) = columns(&workspace);
    let scalars = column_in(&workspace, &values, Placement::Disk);
    let refused = sums_over::<g1::Config, g2::Config>(&scalars, &[&g1[0]], &[&g2]).unwrap_err();
    assert!(is_an_impossible_answer(&refused), "{refused}");
    // A dry run offers what a run does.
    let plan = Plan::new(
        &|workspace: &Workspace| {
            let bases = Writer::<G1>::scratch(workspace, "bases", n as u64, Placement::Disk)?.finish()?;
            let second = Writer::<Point<g2::Config>>::scratch(workspace, "bases", n as u64, Placement::Disk)?
                .finish()?;
            let scalars = Writer::<Fr>::scratch(workspace, "scalars", n as u64, Placement::Disk)?.finish()?;
            let _step = spillproof_engine::step!(workspace, "sums");
            sums_over::<g1::Config, g2::Config>(&scalars, &[&bases, &bases], &[&second]).map(|_| ())
        },
        8 << 20,
        2,
        &Rates::default(),
    )
    .unwrap();
    let offers = plan.of(Some(Phase::VerifyingKey)).offers;
    let [offer] = &offers[..] else {
        panic!("{offers:?}")
    };
    let Job::Sums {
        points,
        bases,
        columns,
        ..
    } = offer.job
    else {
        panic!("{offer:?}")
    };
    assert_eq!((points, bases, columns), (n as u64, Groups { g1: 2, g2: 1 }, 1));
}

#[test]
fn transforms_are_the_same_whoever_makes_them() {
    let place = place(8 << 20);
    let (log_n, n) = (12, 1 << 12);
    let domain = Radix2EvaluationDomain::<Fr>::new(n).unwrap();
    let (omega, shift) = (domain.group_gen, Fr::from(7u64));
    let coset = domain.get_coset(shift).unwrap();
    for (len, way) in [n, n - 1000, 1]
        .into_iter()
        .flat_map(|len| WAYS.map(|way| (len, way)))
    {
        let mut values = random(len, 9);
        let (workspace, accelerator) = with(&place, way);
        let input = column_in(&workspace, &values, Placement::Disk);
        values.resize(n, Fr::ZERO);
        let cases = [
            (Transform::forward(log_n, omega), domain.fft(&values)),
            (Transform::inverse(log_n, omega).unwrap(), domain.ifft(&values)),
            (Transform::coset_forward(log_n, omega, shift), coset.fft(&values)),
            (
                Transform::coset_inverse(log_n, omega, shift).unwrap(),
                coset.ifft(&values),
            ),
        ];
        for (i, (transform, expected)) in cases.into_iter().enumerate() {
            let output = ntt(&input, &transform, Placement::Auto).unwrap();
            assert!(output.to_vec().unwrap() == expected, "{way:?} {transform:?}");
            assert_eq!(accelerator.jobs.load(Ordering::Relaxed), i as u64 + 1);
        }
    }
    let (workspace, _) = with(&place, Way::AnswersNonsense);
    let input = column_in(&workspace, &random(n, 1), Placement::Disk);
    let refused = ntt(&input, &Transform::forward(log_n, omega), Placement::Auto).unwrap_err();
    assert!(is_an_impossible_answer(&refused), "{refused}");
}

#[test]
fn openings_are_the_same_whoever_sums() {
    let place = place(8 << 20);
    let (workspace, k) = (&place.workspace, 11);
    let srs = generate_scratch::<ark_bn254::Bn254>(workspace, k, Fr::from(77u64), |_| ()).unwrap();
    // The longest has neither whole frames nor whole chunks.
    let columns: Vec<_> = [1999, 513, 2].map(|len| random(len, len as u64)).to_vec();
    let opened = |workspace: &Workspace, keep: Keep| -> Result<_> {
        let columns: Vec<_> = columns
            .iter()
            .map(|values| column_in(workspace, values, Placement::Disk))
            .collect();
        let combination = |places: &[usize], roots: &[u64]| Combination {
            terms: places
                .iter()
                .map(|&i| (Fr::from(i as u64 + 5), &columns[i]))
                .collect(),
            low: vec![Fr::from(3u64)],
            roots: roots.iter().map(|root| Fr::from(*root)).collect(),
            scale: Fr::from(11u64),
        };
        let combinations = [combination(&[0, 1, 2], &[2, 9]), combination(&[2, 0], &[4])];
        // Bases of the workspace that has the accelerator.
        let bases: Vec<G1> = srs.monomial()?.to_vec()?;
        let bases = column_in(workspace, &bases, Placement::Disk);
        let held = workspace.budget.held_bytes();
        let opened = divide_and_commit::<g1::Config>(workspace, &bases, &combinations, keep)?;
        let values = |column: &Option<Column<Fr>>| column.as_ref().map(Column::to_vec).transpose();
        let sum = values(&opened.sum)?;
        let numerators = opened.numerators.iter().map(values).collect::<Result<Vec<_>>>()?;
        let commitment = opened.commitment;
        drop((opened.sum, opened.numerators));
        assert_eq!(workspace.budget.held_bytes(), held);
        Ok((commitment, sum, numerators))
    };
    for keep in [Keep::SumAndNumerators, Keep::Nothing] {
        let expected = opened(workspace, keep).unwrap();
        let (_, sum, numerators) = &expected;
        let is_kept: Vec<_> = numerators.iter().map(Option::is_some).collect();
        assert_eq!(sum.is_some(), keep != Keep::Nothing);
        assert_eq!(is_kept, [keep != Keep::Nothing, false]);
        for way in WAYS {
            let (workspace, accelerator) = with(&place, way);
            assert_eq!(opened(&workspace, keep).unwrap(), expected, "{way:?}");
            assert_eq!(accelerator.jobs.load(Ordering::Relaxed), 1);
        }
    }
    let (workspace, _) = with(&place, Way::AnswersNonsense);
    let refused = opened(&workspace, Keep::Sum).unwrap_err();
    assert!(is_an_impossible_answer(&refused), "{refused}");
}

#[test]
fn what_is_wrong_with_a_job_is_an_error_and_no_reason_to_decline() {
    let place = place(8 << 20);
    let (workspace, accelerator) = with(&place, Way::Does { at_a_time: 100 });
    let bases = column_in(&workspace, &[G1::INFINITY; 4], Placement::Disk);
    let five = random(5, 1);
    // Refused before anybody is asked.
    let refused = msm::<g1::Config>(&bases, &[Scalars::Slice(&five)]).unwrap_err();
    assert!(matches!(refused, Error::Invalid(_)), "{refused}");
    let column = column_in(&workspace, &five, Placement::Disk);
    let too_long = ntt(&column, &Transform::forward(2, Fr::ONE), Placement::Auto);
    assert!(matches!(too_long, Err(Error::Invalid(_))));
    assert_eq!(accelerator.jobs.load(Ordering::Relaxed), 0);
    // Other curves know no accelerator.
    let scalars = [ark_pallas::Fr::from(3u64); 2];
    let generator = <ark_pallas::Affine as ark_ec::AffineRepr>::generator();
    let bases =
        [spillproof_kernels::curve::Coordinates::from_affine::<ark_pallas::PallasConfig>(&generator); 2];
    let bases = column_in(&workspace, &bases, Placement::Disk);
    let sums = msm::<ark_pallas::PallasConfig>(&bases, &[Scalars::Slice(&scalars)]).unwrap();
    assert_eq!(sums[0], generator * ark_pallas::Fr::from(6u64));
    assert_eq!(accelerator.jobs.load(Ordering::Relaxed), 0);
}

/// What the disk refuses is the job's error, whoever asked for it; every operation fails once.
#[test]
fn a_disk_that_fails_is_an_error_through_an_accelerator_too() {
    let dir = tempfile::tempdir().unwrap();
    let omega = Radix2EvaluationDomain::<Fr>::new(1 << 12).unwrap().group_gen;
    let values = random(1 << 12, 1);
    let run = |faults: FaultPlan, way: Way| -> Result<Vec<Fr>> {
        let storage = Storage::builder().dir(dir.path()).faults(faults).build()?;
        let accelerator = Arkworks {
            way,
            jobs: AtomicU64::new(0),
        };
        let workspace = Workspace::new(storage, Budget::new(8 << 20)).with_accelerator(Arc::new(accelerator));
        let mut writer = Writer::scratch(&workspace, "values", 1 << 12, Placement::Disk)?;
        writer.push(&values)?;
        let input = writer.finish()?;
        ntt(&input, &Transform::forward(12, omega), Placement::Disk)?.to_vec()
    };
    for way in [Way::Does { at_a_time: 100 }, Way::LendsMemory { at_a_time: 1000 }] {
        let plan = FaultPlan::none();
        let expected = run(plan.clone(), way).unwrap();
        assert!(plan.operations() > 5);
        for index in 0..plan.operations() {
            match run(FaultPlan::at(index, Fault::Io), way) {
                Ok(found) => assert!(found == expected, "operation {index}"),
                Err(Error::Io { .. } | Error::File { .. }) => {}
                Err(other) => panic!("operation {index}: {other}"),
            }
            match run(FaultPlan::at(index, Fault::FlipByte(77)), way) {
                Ok(found) => assert!(found == expected, "operation {index}"),
                Err(Error::Damaged { .. }) => {}
                Err(other) => panic!("operation {index}: {other}"),
            }
            // Memory that the kernel does not reach: by way of buffers from there on.
            let found = run(FaultPlan::at(index, Fault::BadAddress), way).unwrap();
            assert!(found == expected, "operation {index}");
        }
    }
}

/// Accelerators know BN254 alone: a plan over another field lists no job for one.
#[test]
fn a_plan_counts_offers_of_what_is_offered() {
    fn offers<F: KernelField + NttElement<F> + Element>() -> u64 {
        let log_n = 8;
        let omega = F::get_root_of_unity(1 << log_n).expect("a root");
        let run = move |workspace: &Workspace| {
            let draft = Draft::<F>::scratch(workspace, "values", 1 << log_n, Placement::Disk)?;
            let transform = Transform::forward(log_n, omega);
            workspace.phase(Phase::Proof)?;
            let _step = workspace.begin_step("transform", || unreachable!("a dry run has no span"));
            ntt(&draft.finish_unwritten()?, &transform, Placement::Disk).map(drop)
        };
        let plan = Plan::new(&run, 1 << 20, 1, &Rates::default()).expect("a plan");
        let counts = plan
            .steps
            .iter()
            .flat_map(|step| &step.offers)
            .map(|offer| offer.count);
        counts.sum()
    }
    assert_eq!(offers::<Fr>(), 1);
    assert_eq!(offers::<ark_pallas::Fr>(), 0);
}
