//! A proof by a protocol of the newest kind: no blinds, committed instances before others, columns without
//! random rows, a trash argument, pieces that are cut anew, the book's opening with a quotient at its end. The
//! verifier checks what was said.

mod verifier;

use std::io;

use ark_bn254::{Fr, G1Affine, g1};
use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::{FftField, Field, PrimeField};
use rand::RngCore;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use spillproof_engine::checkpoint::{Checkpoint, CheckpointKey, Checkpoints, Terms};
use spillproof_engine::column::{Column, Placement, Workspace};
use spillproof_engine::plan::Rates;
use spillproof_engine::stream::Scalars;
use spillproof_kernels::curve::Point;
use spillproof_plonk::keygen::{KeyCommitments, ProvingColumns};
use spillproof_plonk::plan::{Inputs, Shape};
use spillproof_plonk::stages::lookup::LeftOvers;
use spillproof_plonk::{
    AdviceSource, Basis, Blinded, Book, Chunk, ColumnId, Committed, ConstraintSystem, Domain, Ending,
    Expression, FieldConstants, Instances, Kind, Lookup, Lookups, Opening, OpeningScheme, Outside, Part,
    Pieces, Powers, Protocol, Prover, ProverCurve, ProverField, RandomPolynomial, Randomness, Result, Rounds,
    Seed, Sets, Transcript, Trash, Values, Width, Witness,
};
use spillproof_testing::seeded;

use crate::common::{Place, column_in, place};
use verifier::verify;

type Config = g1::Config;

const BOOK: Book = Book {
    powers: Powers::Ascending,
    sets: Sets::BySize,
    width: Width::Half,
};

const PROTOCOL: Protocol = Protocol {
    blinds: false,
    instances: Instances::CommittedFirst { columns: 1 },
    lookups: Lookups::Permuted(LeftOvers::Descending),
    trash: true,
    pieces: Pieces::OneShort,
    queries: &Part::ADVICE_FIRST,
    opening: OpeningScheme::Book {
        book: BOOK,
        ending: Ending::Quotient,
    },
};

const CIRCUITS: usize = 2;
const BLINDING_FACTORS: usize = 5;
const UNUSABLE: usize = BLINDING_FACTORS + 1;
/// Chunks of the random polynomial.
const CHUNKS: usize = 3;

// Fixed columns: where gates hold, where the trash argument does, a table.
const GATE: usize = 0;
const KEPT: usize = 1;
const TABLE: usize = 2;

fn fixed(index: usize) -> Expression {
    query(Kind::Fixed, index, 0)
}

fn advice(index: usize) -> Expression {
    query(Kind::Advice, index, 0)
}

fn query(kind: Kind, index: usize, rotation: i32) -> Expression {
    Expression::Query(ColumnId { kind, index }, rotation)
}

fn product(a: Expression, b: Expression) -> Expression {
    Expression::Product(Box::new(a), Box::new(b))
}

fn difference(a: Expression, b: Expression) -> Expression {
    Expression::Sum(Box::new(a), Box::new(Expression::Negated(Box::new(b))))
}

/// Advice `a`, `b`, `u = a b` without random rows, and `d = challenge a` of a second phase; `a` grows by 1.
fn circuit() -> ConstraintSystem {
    let square = |index| product(advice(index), advice(index));
    let gate = |constraint| product(fixed(GATE), constraint);
    let next = query(Kind::Advice, 0, 1);
    let one = Expression::Constant(Fr::ONE);
    let column = |(kind, index)| ColumnId { kind, index };
    ConstraintSystem {
        fixed_columns: 3,
        instance_columns: 2,
        advice_phases: vec![0, 0, 0, 1],
        unblinded_advice: vec![2],
        challenge_phases: vec![0],
        gates: vec![
            gate(difference(product(square(0), square(1)), square(2))),
            gate(difference(
                advice(3),
                product(Expression::Challenge(0), advice(0)),
            )),
            gate(difference(difference(next, advice(0)), one.clone())),
        ],
        lookups: vec![Lookup {
            input: vec![product(fixed(GATE), advice(0))],
            table: vec![fixed(TABLE)],
        }],
        trash: vec![Trash {
            selector: KEPT,
            constraints: vec![
                difference(difference(advice(1), advice(0)), one),
                difference(advice(2), product(advice(0), advice(1))),
            ],
        }],
        permuted: [
            (Kind::Advice, 0),
            (Kind::Instance, 0),
            (Kind::Advice, 2),
            (Kind::Instance, 1),
        ]
        .map(column)
        .to_vec(),
        fixed_queries: vec![(GATE, 0), (KEPT, 0), (TABLE, 0)],
        advice_queries: vec![(0, 0), (1, 0), (2, 0), (3, 0), (0, 1)],
        instance_queries: vec![(0, 0), (1, 0)],
        degree: 5,
        blinding_factors: BLINDING_FACTORS,
    }
}

fn constants() -> FieldConstants {
    FieldConstants {
        root_of_unity: Fr::TWO_ADIC_ROOT_OF_UNITY,
        two_adicity: Fr::TWO_ADICITY,
        delta: Fr::GENERATOR.pow([1 << Fr::TWO_ADICITY]),
        coset_shift: Fr::GENERATOR,
    }
}

/// Rows in which gates hold: a quarter of all.
fn gated(rows: usize) -> usize {
    rows / 4
}

/// Advice of the first phase, and of the second.
fn witness(rows: usize, circuit: usize, challenge: Option<Fr>) -> Vec<Vec<Fr>> {
    let value = |value: usize| Fr::from(value as u64);
    let a: Vec<Fr> = (0..=gated(rows)).map(|row| value(row + 3 + circuit)).collect();
    // Where the trash argument holds, b = a + 1.
    let b: Vec<Fr> = (0..a.len())
        .map(|row| {
            if row % 2 == 0 {
                a[row] + Fr::ONE
            } else {
                value(7 * row + circuit)
            }
        })
        .collect();
    let u = a.iter().zip(&b).map(|(a, b)| *a * b).collect();
    let d = a.iter().map(|a| challenge.unwrap_or_default() * a).collect();
    vec![a, b, u, d]
}

fn instances(rows: usize, circuit: usize) -> Vec<Vec<Fr>> {
    let advice = witness(rows, circuit, None);
    vec![vec![advice[0][0]], vec![advice[2][1], Fr::from(9u64)]]
}

struct Given(Vec<Fr>);

impl Values for Given {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn fill(&self, start: usize, out: &mut [Fr]) {
        out.copy_from_slice(&self.0[start..start + out.len()]);
    }
}

/// Advice of `rows` rows.
struct OfCircuit {
    rows: usize,
    values: Vec<Vec<Fr>>,
}

impl AdviceSource for OfCircuit {
    fn assigned(&mut self) -> Result<()> {
        Ok(())
    }

    fn column(
        &mut self,
        workspace: &Workspace,
        index: usize,
        _: Option<usize>,
        tail: &[Fr],
    ) -> Result<Column<Fr>> {
        let values = Given(self.values[index].clone());
        Ok(Fr::padded_column(workspace, self.rows as u64, &values, tail)?)
    }
}

/// What was said to a transcript.
#[derive(Clone, Debug, PartialEq)]
enum Event {
    Point(G1Affine),
    Scalar(Fr),
    CommonPoint(G1Affine),
    CommonScalar(Fr),
    Challenge(Fr),
}

/// A transcript whose challenges depend on all that was said, and which fails at a point if it is to.
struct Said {
    events: Vec<Event>,
    points_left: usize,
}

impl Said {
    fn hash(&self) -> Fr {
        let mut hasher = blake3::Hasher::new();
        for event in &self.events {
            hasher.update(format!("{event:?}").as_bytes());
        }
        Fr::from_le_bytes_mod_order(hasher.finalize().as_bytes())
    }
}

impl Transcript for Said {
    fn write_point(&mut self, point: &Point<Config>) -> io::Result<()> {
        let Some(left) = self.points_left.checked_sub(1) else {
            return Err(io::Error::other("the process ends here"));
        };
        self.points_left = left;
        self.events.push(Event::Point(point.to_affine::<Config>()));
        Ok(())
    }

    fn write_scalar(&mut self, scalar: Fr) -> io::Result<()> {
        self.events.push(Event::Scalar(scalar));
        Ok(())
    }

    fn common_point(&mut self, point: &Point<Config>) -> io::Result<()> {
        self.events.push(Event::CommonPoint(point.to_affine::<Config>()));
        Ok(())
    }

    fn common_scalar(&mut self, scalar: Fr) -> io::Result<()> {
        self.events.push(Event::CommonScalar(scalar));
        Ok(())
    }

    fn challenge(&mut self) -> Fr {
        let challenge = self.hash();
        self.events.push(Event::Challenge(challenge));
        challenge
    }
}

/// Parameters of a known secret, a generator, and what is said.
struct Callers<'s> {
    setup: &'s Setup,
    rng: ChaCha20Rng,
    drawn: usize,
    said: Said,
}

impl Randomness for Callers<'_> {
    fn scalar(&mut self) -> Fr {
        self.drawn += 1;
        Fr::from(self.rng.next_u64())
    }

    fn random_polynomial(&mut self, coefficients: u64) -> RandomPolynomial {
        assert!(coefficients >= CHUNKS as u64);
        let mut seed = || {
            let mut seed = Seed::default();
            self.rng.fill_bytes(&mut seed);
            seed
        };
        RandomPolynomial::Chunks {
            seeds: (0..CHUNKS).map(|_| seed()).collect(),
            generator: |seed| -> Box<Chunk<Fr>> {
                let mut rng = ChaCha20Rng::from_seed(*seed);
                Box::new(move |out| out.fill_with(|| Fr::from(rng.next_u64())))
            },
        }
    }
}

impl Outside for Callers<'_> {
    fn transcript(&mut self) -> &mut dyn Transcript {
        &mut self.said
    }

    fn commit(&mut self, basis: Basis, columns: &[Blinded]) -> Result<Vec<Point<Config>>> {
        assert!(columns.iter().all(|column| column.blind == Fr::ONE));
        let columns: Vec<_> = columns.iter().map(|column| &column.column).collect();
        self.setup.commit(basis, &columns)
    }

    fn open(&mut self, opening: &Opening<'_>) -> io::Result<()> {
        let (workspace, bases) = (&self.setup.place.workspace, &self.setup.monomial);
        Ok(Config::open_book(
            workspace,
            bases,
            BOOK,
            opening,
            &mut self.said,
        )?)
    }
}

/// Parameters, and keys.
struct Setup {
    place: Place,
    secret: Fr,
    monomial: Column<Point<Config>>,
    lagrange: Column<Point<Config>>,
    cs: ConstraintSystem,
    domain: Domain,
}

impl Setup {
    fn new(k: u32, secret: Fr, budget_bytes: u64) -> Self {
        let cs = circuit();
        let domain = Domain::new(&constants(), k, cs.degree);
        let n = domain.rows();
        let point = |value: Fr| {
            Point::<Config>::from_affine::<Config>(&(G1Affine::generator() * value).into_affine())
        };
        let powers = std::iter::successors(Some(Fr::ONE), |power| Some(*power * secret));
        let monomial: Vec<_> = powers.take(n as usize).map(point).collect();
        let lagrange: Vec<_> = (0..n).map(|row| point(lagrange(&domain, row, secret))).collect();
        let place = place(budget_bytes);
        let on_disk = |points: &[Point<Config>]| column_in(&place.workspace, points, Placement::Disk);
        let (monomial, lagrange) = (on_disk(&monomial), on_disk(&lagrange));
        Self {
            place,
            secret,
            monomial,
            lagrange,
            cs,
            domain,
        }
    }

    fn rows(&self) -> usize {
        self.domain.rows() as usize
    }

    fn commit(&self, basis: Basis, columns: &[&Column<Fr>]) -> Result<Vec<Point<Config>>> {
        let bases = match basis {
            Basis::Monomial => &self.monomial,
            Basis::Lagrange => &self.lagrange,
        };
        let scalars: Vec<_> = columns.iter().map(|column| Scalars::Column(column)).collect();
        Ok(Config::sums(bases, &scalars)?)
    }

    fn keys(&self) -> (ProvingColumns, KeyCommitments) {
        let (workspace, cs) = (&self.place.workspace, &self.cs);
        let (rows, permuted) = (self.domain.rows(), cs.permuted.clone());
        let mut assembly = Fr::assembly(workspace, rows, cs.fixed_columns, 0, permuted).unwrap();
        let mut assign = |column, row, value| {
            Fr::assign_fixed(&mut assembly.fixed, column, row, Fr::from(value), None).unwrap();
        };
        for row in 0..rows - UNUSABLE as u64 {
            let is_gated = row < gated(self.rows()) as u64;
            assign(GATE, row, u64::from(is_gated));
            assign(KEPT, row, u64::from(is_gated && row % 2 == 0));
            assign(TABLE, row, row);
        }
        assembly.copies.copy((0, 0), (1, 0)).unwrap();
        assembly.copies.copy((2, 1), (3, 0)).unwrap();
        let mut none = |_: Vec<Vec<bool>>| Vec::new();
        let (keygen, _) = Fr::finish(
            assembly,
            workspace,
            self.domain,
            BLINDING_FACTORS,
            false,
            &mut none,
        )
        .unwrap();
        let mut commit = |columns: &[Column<Fr>]| {
            let columns: Vec<_> = columns.iter().collect();
            self.commit(Basis::Lagrange, &columns)
        };
        let (key, commitments) = Config::proving_key(keygen, Some(&mut commit)).unwrap();
        (key, commitments.unwrap())
    }

    /// A proof, up to the point at which the transcript fails; how many scalars were drawn.
    fn prove(
        &self,
        key: &ProvingColumns,
        seed: u64,
        points: usize,
        checkpoint: Option<Checkpoint>,
    ) -> (Result<()>, Vec<Event>, usize) {
        let mut callers = Callers {
            setup: self,
            rng: ChaCha20Rng::seed_from_u64(seed),
            drawn: 0,
            said: Said {
                events: Vec::new(),
                points_left: points,
            },
        };
        let made = self.rounds(key, &mut callers, checkpoint);
        (made, callers.said.events, callers.drawn)
    }

    fn rounds(
        &self,
        key: &ProvingColumns,
        callers: &mut Callers<'_>,
        checkpoint: Option<Checkpoint>,
    ) -> Result<()> {
        let (workspace, cs, domain) = (&self.place.workspace, &self.cs, &self.domain);
        let boxed = |values| Box::new(Given(values)) as Box<dyn Values>;
        let public: Vec<Vec<_>> = (0..CIRCUITS)
            .map(|circuit| instances(self.rows(), circuit).into_iter().map(boxed).collect())
            .collect();
        let instance = Fr::instance_columns(workspace, domain, &public)?;
        let mut rounds = Rounds::new(PROTOCOL, callers, checkpoint);
        let mut witnesses: Vec<_> = (public.iter().zip(&instance))
            .map(|(public, instance)| Witness::new(workspace, cs, domain, public, instance))
            .collect();
        for witness in &witnesses {
            Config::absorb_instances(witness, &mut rounds)?;
        }
        let mut challenges = vec![None; cs.challenge_phases.len()];
        for phase in 0..cs.phases() {
            for (circuit, of_circuit) in witnesses.iter_mut().enumerate() {
                if Config::take_kept_phase(of_circuit, &mut rounds)? {
                    continue;
                }
                let mut advice = OfCircuit {
                    rows: self.rows(),
                    values: witness(self.rows(), circuit, challenges[0]),
                };
                Config::commit_columns(of_circuit, &mut advice, &mut rounds)?;
            }
            Config::draw_challenges(cs, phase, &mut challenges, &mut rounds)?;
        }
        let advice: Vec<_> = witnesses.into_iter().map(Witness::into_columns).collect();
        let circuits = instance.into_iter().zip(advice);
        let circuits = circuits.map(|(instance, advice)| Committed { instance, advice });
        let prover = Prover {
            workspace,
            quotient_tile_rows: None,
            cs,
            domain,
            key,
            rounds: &mut rounds,
        };
        Config::prove(
            prover,
            circuits.collect(),
            challenges.into_iter().flatten().collect(),
        )
    }
}

/// The Lagrange polynomial of a row, at a point.
fn lagrange(domain: &Domain, row: u64, at: Fr) -> Fr {
    let (n, root) = (domain.rows(), domain.omega.pow([row]));
    let denominator = (Fr::from(n) * (at - root))
        .inverse()
        .expect("not a root of unity");
    root * (at.pow([n]) - Fr::ONE) * denominator
}

#[test]
fn a_proof_says_what_a_verifier_of_the_protocol_expects() {
    let (seed, mut rng) = seeded();
    for (k, budget_bytes) in [(5, 4 << 20), (9, 4 << 20), (9, 64 << 20)] {
        let setup = Setup::new(k, Fr::from(rng.next_u64()), budget_bytes);
        let (key, commitments) = setup.keys();
        let (made, events, drawn) = setup.prove(&key, seed, usize::MAX, None);
        made.unwrap();
        verify(&setup, &commitments, &events);
        // Three blinded columns and two lookup columns of all last rows, three products of one row less, and
        // what pieces carry.
        let of_circuit = 5 * UNUSABLE + 3 * BLINDING_FACTORS;
        assert_eq!(drawn, CIRCUITS * of_circuit + 3);
    }
}

#[test]
fn a_proof_goes_on_from_each_of_its_rounds() {
    let (seed, mut rng) = seeded();
    let setup = Setup::new(6, Fr::from(rng.next_u64()), 16 << 20);
    let (key, commitments) = setup.keys();
    let (made, expected, _) = setup.prove(&key, seed, usize::MAX, None);
    made.unwrap();
    verify(&setup, &commitments, &expected);
    let points = expected
        .iter()
        .filter(|event| matches!(event, Event::Point(_)))
        .count();
    let terms = |round: usize| Terms {
        statement: [round as u8; 32],
        draws_are_the_callers: true,
    };
    let dir = tempfile::tempdir().unwrap();
    let secret = CheckpointKey::from_hex(&"5a".repeat(32)).unwrap();
    let checkpoints = Checkpoints::new(dir.path().join("kept"), secret);
    let begin = |round: usize| {
        Some(
            checkpoints
                .begin(&setup.place.workspace, &terms(round), |_| ())
                .unwrap(),
        )
    };
    let mut differs = 0;
    for round in 0..points {
        let (made, ..) = setup.prove(&key, seed, round, begin(round));
        made.unwrap_err();
        // Other random values are noticed, once a round with any was kept.
        let (made, ..) = setup.prove(&key, seed ^ 1, round, begin(round));
        differs += usize::from(made.unwrap_err().to_string().contains("random number generator"));
        let (made, events, _) = setup.prove(&key, seed, usize::MAX, begin(round));
        made.unwrap();
        assert_eq!(events, expected, "seed {seed}, from point {round}");
    }
    assert_eq!(differs, points, "runs with other random values");
}

#[test]
fn a_proof_works_in_the_smallest_budget_of_its_plan() {
    let (seed, mut rng) = seeded();
    let secret = Fr::from(rng.next_u64());
    let k = 12;
    let cs = circuit();
    let shape = Shape {
        domain: Domain::new(&constants(), k, cs.degree),
        cs,
        selectors: 0,
        circuits: CIRCUITS,
        protocol: PROTOCOL,
        keeps_rounds: false,
        inputs: Inputs::Made,
        accelerator: None,
    };
    let threads = rayon::current_num_threads();
    let plan = Config::plan_limbs(&shape, 64 << 20, threads, &Rates::default()).unwrap();
    let names: Vec<_> = plan.steps.iter().map(|step| step.name.to_string()).collect();
    for name in ["trash", "cut quotient", "opening"] {
        assert!(
            names.iter().any(|step| step.contains(name)),
            "{name} in {names:?}"
        );
    }
    let setup = Setup::new(k, secret, plan.smallest_budget_bytes);
    let (key, commitments) = setup.keys();
    let (made, events, _) = setup.prove(&key, seed, usize::MAX, None);
    made.unwrap();
    verify(&setup, &commitments, &events);
}
