//! One proof over several ranks: the proof that one rank alone would make, bit for bit.
//!
//! Rows of the domain and signals are dealt to the ranks ([`Shares`]; `docs/ranks.md` has the picture). Each
//! rank evaluates its rows, takes them to the coset in three passes with an exchange between them
//! ([`DealtTransforms`]), and sums the points of `h` that belong to its part of the coset, where it lies:
//! nothing is gathered but five points of each rank. The sums over its part of the witness need no exchange,
//! so they are made while one is on the wire. Rank 0 blinds, verifies, and tells all ranks the proof.
//!
//! A rank sends `6 * 32 * (n / d) * (1 - 1 / d)` bytes of scalars where d ranks have equal shares.
//!
//! With a checkpoint, a rank keeps its sums and what came in an exchange ([`Kept`]).
//!
//! A rank's accelerator makes its sums, those over the witness in one job, and those over H; and its part of the
//! transforms. Only a proof shows whether all of it is right, and not whose is wrong. So each rank says with its sums
//! whether an accelerator has taken part, in this run or in the one that its checkpoint is of. If one has, on any rank,
//! and the proof does not verify, all ranks empty their checkpoints and make the proof again by processors, with the
//! same random values. A rank that then sends or sums something else, of what has come to it as before, distrusts its
//! accelerator ([`Made::is_wrong`]).
//!
//! All ranks read the same witness. Memory: that of one stage at a time, or of a sum beside an exchange's
//! five pieces.

mod exchanges;
mod kept;
mod key_share;
mod made;
mod shares;
mod sums;

use std::sync::{Mutex, MutexGuard, PoisonError};

use ark_ec::CurveGroup;
use ark_ec::short_weierstrass::Projective;
use spillproof_engine::accelerator::TaskAccelerator;
use spillproof_engine::checkpoint::Checkpoints;
use spillproof_engine::column::{Column, Draft, Element, Placement, Workspace};
use spillproof_engine::error::{Error, Invalid, Result};
use spillproof_engine::step;
use spillproof_engine::stream::{DealtTransforms, Redeal, Terms, combine_columns, msm_of, sums_of_terms};
use spillproof_kernels::curve::{Curve, Point};
use spillproof_kernels::field::KernelField;
use spillproof_ranks::Ranks;

use self::exchanges::{EXCHANGES, Exchanged};
pub use self::kept::Kept;
use self::kept::{Keeping, Sum};
pub use self::key_share::{KeyShare, OfRank};
use self::made::{Made, Told};
pub use self::shares::{Cut, Shares};
use self::shares::{POLYNOMIALS, SCALAR_BYTES, width};
use self::sums::{FirstSums, MadeSums, SecondSums};
use super::constraints::Share;
use super::proof::{
    Sums, holds, public_signals_of, sum_over_a, sum_over_b_g1, sum_over_b_g2, sum_over_c, sums_together,
    unsatisfied,
};
use super::quotient::{self, product_less, transforms};
use super::{PairingCurve, Proof, ProvingKey, QuotientBasis, Shape};

// The phases of a proof over ranks, in their order.
const AGREEMENT: &str = "agreement";
const CONSTRAINTS: &str = "constraints";
const FIRST_PASS: &str = "first pass";
const MIDDLE_PASS: &str = "middle pass";
const LEADER: &str = "transforms of rank 0";
const LAST_PASS: &str = "last pass";
const SUM_OVER_H: &str = "sum over H";
const PROOF: &str = "proof";

/// A rank among others, and what each has of a proof.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// This rank.
    pub ranks: &'a Ranks,
    /// What each rank has: the same on all.
    pub shares: &'a Shares,
}

impl Place<'_> {
    /// What `work` gives on a dry twin of this rank.
    pub(crate) fn rehearsed<T>(&self, work: impl FnOnce(&Place<'_>) -> T) -> T {
        let ranks = self.ranks.rehearsal();
        work(&Place {
            ranks: &ranks,
            shares: self.shares,
        })
    }

    /// One rank's part of a proof. What it does is kept in `checkpoints`, if there are any.
    pub(crate) fn prove<E: PairingCurve>(
        &self,
        key: &ProvingKey<E>,
        witness: &Column<E::Scalar>,
        random: [E::Scalar; 2],
        checkpoints: Option<&Checkpoints>,
    ) -> Result<(Proof<E>, Kept)> {
        let Self { ranks, shares } = *self;
        let prove = || {
            check_place(self, key, witness)?;
            let begin = || Keeping::begin(checkpoints, (key, witness), (shares, ranks.rank()));
            let begin = || witness.workspace().run(begin);
            let made = |keeping: &Keeping, random| {
                let part = Part {
                    ranks,
                    shares,
                    key,
                    witness,
                    keeping,
                    exchanged: Mutex::default(),
                };
                part.prove(random)
            };
            let mut keeping = begin()?;
            let mut proof = made(&keeping, random)?;
            if matches!(proof.told, Told::Again) {
                keeping.finish()?;
                let _processor_only = TaskAccelerator::none().enter();
                keeping = begin()?;
                let again = made(&keeping, proof.random)?;
                if proof.is_wrong(&again) {
                    distrust(ranks, witness.workspace());
                }
                proof = again;
            }
            match proof.told {
                Told::Proof(proof) => Ok((proof, Kept(keeping))),
                Told::NotSatisfied | Told::Again => {
                    keeping.finish()?;
                    // None gives up before all have been told: a checkpoint that stays would be of a wrong witness.
                    let _gave_up = ranks.barrier();
                    Err(Invalid::NotSatisfied.into())
                }
            }
        };
        prove().inspect_err(|error| ranks.give_up(error))
    }
}

/// What an accelerator of this rank has made is wrong.
fn distrust(ranks: &Ranks, workspace: &Workspace) {
    let Some(accelerator) = &workspace.accelerator else {
        return;
    };
    accelerator.distrust();
    tracing::warn!(
        rank = ranks.rank(),
        "the accelerator of rank {} computed wrong: processors have made the proof again, and this rank's will make those to come",
        ranks.rank()
    );
}

/// One rank's part in a proof.
struct Part<'a, E: PairingCurve> {
    ranks: &'a Ranks,
    shares: &'a Shares,
    key: &'a ProvingKey<E>,
    witness: &'a Column<E::Scalar>,
    keeping: &'a Keeping,
    exchanged: Mutex<[Exchanged; EXCHANGES.len()]>,
}

/// Refuses ranks, shares, key and witness that do not belong together.
fn check_place<E: PairingCurve>(
    Place { ranks, shares }: &Place<'_>,
    key: &ProvingKey<E>,
    witness: &Column<E::Scalar>,
) -> Result<()> {
    let shape = key.shape()?;
    Invalid::unless_equal("values of a witness", witness.len(), shape.signals)?;
    Invalid::unless_equal("ranks of a proof", ranks.size() as u64, shares.ranks() as u64)?;
    key.check_rank(ranks.rank(), shares)?;
    Invalid::unless_equal(
        "rows of a domain",
        1 << shares.deal.log_n(),
        1 << shape.log_domain,
    )?;
    if key.quotient != QuotientBasis::Coset {
        return Err(Invalid::Setting {
            name: "number of ranks",
            reason:
                "a key of libsnark or arkworks proves on one rank: make it of the files of circom's tools"
                    .into(),
        }
        .into());
    }
    Ok(())
}

impl<E: PairingCurve> Part<'_, E> {
    fn prove(&self, random: [E::Scalar; 2]) -> Result<Made<E>> {
        let Self {
            key, witness, ranks, ..
        } = *self;
        let (workspace, shape) = (witness.workspace(), key.shape()?);
        workspace.run(|| {
            let public = public_signals_of(witness, shape.public)?;
            let random = match ranks.rank() {
                0 => self.keeping.random(random)?,
                _ => random,
            };
            let sums = self.sums(&shape)?;
            let _phase = ranks.phase(PROOF);
            let told = self.tell(self.add_up(&sums)?.map(|(total, has_accelerator)| {
                let proof = total.proof(key, random);
                match holds(workspace, key, &public, &proof)? {
                    true => Ok(Told::Proof(proof)),
                    false if has_accelerator => Ok(Told::Again),
                    false => Err(unsatisfied(key)?),
                }
            }))?;
            let exchanged = *self.exchanged();
            Ok(Made {
                sums,
                exchanged,
                random,
                told,
            })
        })
    }

    /// This rank's part of each sum.
    fn sums(&self, shape: &Shape) -> Result<Sums<E>> {
        match self.shares.cut {
            Cut::Layout => self.sums_by_layout(shape),
            Cut::Rows | Cut::Columns | Cut::Steps => self.sums_by_leader(shape),
        }
    }

    /// With two exchanges, and nothing gathered.
    fn sums_by_layout(&self, shape: &Shape) -> Result<Sums<E>> {
        let Self {
            key, ranks, shares, ..
        } = *self;
        let workspace = self.witness.workspace();
        let transforms = transforms(shape.log_domain, &key.domain)?;
        let (dealt, over) = {
            let _phase = ranks.phase(AGREEMENT);
            let available_bytes = workspace.budget.available_bytes();
            // What later steps hold beside a pass: little, in frames of columns and in digests.
            let passes_bytes = available_bytes - available_bytes / 8;
            let dealt = DealtTransforms::agree(
                ranks,
                &shares.deal,
                transforms.each_ref(),
                POLYNOMIALS,
                passes_bytes,
            )?;
            let over = self.exchanges_over(dealt.order())?;
            (dealt, over)
        };
        let first = || {
            let values = self.values(
                shape,
                Share {
                    frame_bytes: dealt.input_frame_bytes(),
                    ..shares.evaluated(shape, ranks.rank())
                },
            )?;
            let _phase = (ranks.phase(FIRST_PASS), step!(workspace, "quotient: first pass"));
            Ok(vec![dealt.first_pass(values.into())?])
        };
        let (rows, (first_sums, others)) = self.exchange(0, &over, first, || self.first_sums())?;
        let second = || {
            let _phase = (
                ranks.phase(MIDDLE_PASS),
                step!(workspace, "quotient: middle pass"),
            );
            Ok(vec![dealt.middle_pass(one(rows))?])
        };
        let (columns, second_sums) = self.exchange(1, &over, second, || self.second_sums(others))?;
        let quotient = {
            let _phase = (ranks.phase(LAST_PASS), step!(workspace, "quotient: last pass"));
            match self.keeping.has(Sum::H) {
                true => None,
                false => Some(dealt.last_pass(&one(columns), &product_less, Placement::Disk)?),
            }
        };
        let h = self.sum_over_h(self.terms_of_layout(&dealt), quotient.as_ref())?;
        Ok(Sums::of(first_sums, second_sums, h))
    }

    /// With rank 0 as the one that makes the transforms.
    fn sums_by_leader(&self, shape: &Shape) -> Result<Sums<E>> {
        let Self { ranks, shares, .. } = *self;
        let (workspace, rank) = (self.witness.workspace(), ranks.rank());
        let over = {
            let _phase = ranks.phase(AGREEMENT);
            self.exchanges_over(Vec::new())?
        };
        let gather = || {
            let values = self.values_to_gather(shape)?;
            let gather = values.iter().enumerate().map(|(index, column)| {
                let column = column.prefix(shares.gathered(rank)[index])?;
                let (mut sent, mut received) = (vec![0; ranks.size()], vec![0; ranks.size()]);
                sent[0] = column.len();
                if rank == 0 {
                    received = (0..ranks.size())
                        .map(|rank| shares.gathered(rank)[index])
                        .collect();
                }
                Redeal::new(ranks, &column, [sent, received])
            });
            gather.collect::<Result<Vec<_>>>()
        };
        let (gathered, (first_sums, others)) = self.exchange(0, &over, gather, || self.first_sums())?;
        let scatter = || {
            let whole = {
                let _phase = (ranks.phase(LEADER), step!(workspace, "quotient"));
                match rank {
                    0 => self.quotient_of(shape, gathered)?,
                    _ => {
                        drop(gathered);
                        Draft::scratch(workspace, "no part of the quotient", 0, Placement::Disk)?.finish()?
                    }
                }
            };
            let widths: Vec<u64> = (0..ranks.size()).map(|rank| width(&shares.rows, rank)).collect();
            let (mut sent, mut received) = (vec![0; ranks.size()], vec![0; ranks.size()]);
            received[0] = widths[rank];
            if rank == 0 {
                sent = widths;
            }
            Ok(vec![Redeal::new(ranks, &whole, [sent, received])?])
        };
        let (quotient, second_sums) = self.exchange(1, &over, scatter, || self.second_sums(others))?;
        let terms = Terms::From {
            first_base: shares.rows[rank],
            first_scalar: 0,
            len: width(&shares.rows, rank),
        };
        let quotient = match self.keeping.has(Sum::H) {
            true => None,
            false => Some(one(quotient)),
        };
        let h = self.sum_over_h([terms], quotient.as_ref())?;
        Ok(Sums::of(first_sums, second_sums, h))
    }

    /// What this rank has of the columns that rank 0 gathers.
    fn values_to_gather(&self, shape: &Shape) -> Result<Vec<Column<E::Scalar>>> {
        let values = self.values(shape, self.shares.evaluated(shape, self.ranks.rank()))?;
        Ok(match self.shares.cut {
            Cut::Columns => {
                let [a, b, _] = values;
                vec![a, b]
            }
            _ => values.into(),
        })
    }

    fn values(&self, shape: &Shape, share: Share) -> Result<[Column<E::Scalar>; 3]> {
        let _phase = (
            self.ranks.phase(CONSTRAINTS),
            step!(self.witness.workspace(), "constraints"),
        );
        (self.key.constraints).evaluate(self.witness, shape, share, Placement::Disk)
    }

    /// The quotient of what rank 0 has gathered.
    fn quotient_of(&self, shape: &Shape, gathered: Vec<Column<E::Scalar>>) -> Result<Column<E::Scalar>> {
        let values = match <[_; 3]>::try_from(gathered) {
            Ok(values) => values,
            Err(parts) => {
                // Of both matrices, the parts of all ranks, which are added up.
                let n = 1u64 << shape.log_domain;
                let sum = |parts: &Column<E::Scalar>| {
                    let parts: Vec<_> = (0..parts.len() / n)
                        .map(|part| parts.part(part * n, n))
                        .collect::<Result<_>>()?;
                    combine_columns(&parts, &sum_of, Placement::Disk)
                };
                let sums = parts.iter().map(sum).collect::<Result<Vec<_>>>()?;
                drop(parts);
                let c = combine_columns(&sums, &product_of, Placement::Disk)?;
                let [a, b] = <[_; 2]>::try_from(sums).unwrap_or_else(|_| unreachable!("two matrices"));
                [a, b, c]
            }
        };
        let domain = (shape.log_domain, &self.key.domain);
        quotient::quotient(values, domain, self.key.quotient, Placement::Disk)
    }

    /// The sums over A and B1; of those over B2 and C what an accelerator makes in the same job.
    fn first_sums(&self) -> Result<(FirstSums<E>, MadeSums<E>)> {
        let Self {
            key,
            witness,
            keeping,
            ..
        } = *self;
        let signals = key.terms_of_signals(self.ranks.rank(), self.shares);
        let is_kept = [Sum::A, Sum::B1, Sum::B2, Sum::C]
            .iter()
            .any(|sum| keeping.has(*sum));
        let (of_g1, of_g2) = match is_kept {
            true => (None, None),
            false => sums_together(key, witness, signals)?,
        };
        let [a, b_g1, c] = of_g1.map_or([None; 3], |sums| sums.map(Some));
        let first = FirstSums {
            a: keeping.sum(Sum::A, || a.map_or_else(|| sum_over_a(key, witness, signals), Ok))?,
            b_g1: keeping.sum(Sum::B1, || {
                b_g1.map_or_else(|| sum_over_b_g1(key, witness, signals), Ok)
            })?,
        };
        let made = MadeSums {
            b_g2: of_g2.map(|sum| keeping.sum(Sum::B2, || Ok(sum))).transpose()?,
            c: c.map(|sum| keeping.sum(Sum::C, || Ok(sum))).transpose()?,
        };
        Ok((first, made))
    }

    /// The sums over B2 and C, as far as they have not been made.
    fn second_sums(&self, made: MadeSums<E>) -> Result<SecondSums<E>> {
        let Self {
            key,
            witness,
            keeping,
            ..
        } = *self;
        let signals = key.terms_of_signals(self.ranks.rank(), self.shares);
        Ok(SecondSums {
            b_g2: match made.b_g2 {
                Some(sum) => sum,
                None => keeping.sum(Sum::B2, || sum_over_b_g2(key, witness, signals))?,
            },
            c: match made.c {
                Some(sum) => sum,
                None => keeping.sum(Sum::C, || sum_over_c(key, witness, signals))?,
            },
        })
    }

    /// What earlier runs of all ranks have done. `order` is that of columns that come.
    fn exchanges_over(&self, mut order: Vec<u8>) -> Result<Over> {
        order.extend((self.ranks.piece_bytes() as u64).to_le_bytes());
        let accelerator = self.witness.workspace().accelerator.as_ref();
        let may_be_asked = accelerator.is_some_and(|accelerator| accelerator.may_be_asked());
        Ok(Over {
            exchanges: self.keeping.exchanges(self.ranks, &order, may_be_asked)?,
            order,
        })
    }

    /// The columns that come in an exchange, which is made with `make`, and what is worked beside it. Of one that
    /// is over, the columns come from the checkpoint, if the next one is not over, too.
    fn exchange<T>(
        &self,
        index: usize,
        over: &Over,
        make: impl FnOnce() -> Result<Vec<Redeal>>,
        work: impl FnOnce() -> Result<T>,
    ) -> Result<(Vec<Column<E::Scalar>>, T)> {
        let (phase, workspace) = (EXCHANGES[index], self.witness.workspace());
        if index >= over.exchanges {
            let (columns, value) = self.beside(index, make()?, work)?;
            let exchanged = self.exchanged()[index];
            self.keeping
                .keep_columns(workspace, (index, &over.order), exchanged, &columns)?;
            return Ok((columns, value));
        }
        self.exchanged()[index] = self.keeping.exchanged(index);
        let _phase = self.ranks.phase(phase);
        let columns = match index + 1 == over.exchanges {
            true => self.keeping.columns(workspace, index)?,
            false => Vec::new(),
        };
        Ok((columns, work()?))
    }

    /// Exchanges, on a thread of its own, and runs `work` here meanwhile.
    fn beside<T>(
        &self,
        index: usize,
        redeals: Vec<Redeal>,
        work: impl FnOnce() -> Result<T>,
    ) -> Result<(Vec<Column<E::Scalar>>, T)> {
        let _phase = self.ranks.phase(EXCHANGES[index]);
        let workspace = self.witness.workspace();
        let run = |redeals: Vec<Redeal>| -> Result<_> {
            let (mut columns, mut all) = (Vec::new(), [0u64; 2]);
            for redeal in redeals {
                let (column, sums) = redeal.run_with_sums()?;
                columns.push(column);
                all = [0, 1].map(|end| all[end].rotate_left(1).wrapping_add(sums[end]));
            }
            self.exchanged()[index] = all;
            Ok(columns)
        };
        if workspace.is_dry() {
            let held: Vec<_> = redeals
                .iter()
                .map(|redeal| redeal.hold(workspace))
                .collect::<Result<_>>()?;
            let value = work()?;
            drop(held);
            let _step = match index {
                0 => step!(workspace, "first exchange"),
                _ => step!(workspace, "second exchange"),
            };
            return Ok((run(redeals)?, value));
        }
        std::thread::scope(|scope| {
            let spawned = std::thread::Builder::new()
                .name("spillproof-exchange".into())
                .spawn_scoped(scope, || run(redeals));
            let exchange = spawned.map_err(|source| Error::Threads { source })?;
            let value = work().inspect_err(|error| self.ranks.give_up(error));
            let columns = exchange
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            // The first error of the two is the reason for the other.
            let columns = columns?;
            Ok((columns, value?))
        })
    }

    fn exchanged(&self) -> MutexGuard<'_, [Exchanged; EXCHANGES.len()]> {
        self.exchanged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The points of `h` that belong to this rank's part of the quotient, as the last pass leaves it: a list of
    /// terms for each width of its groups.
    fn terms_of_layout(&self, dealt: &DealtTransforms<'_, E::Scalar>) -> Vec<Terms> {
        let deal = &self.shares.deal;
        let (row_len, first_column) = self.key.matrix_of_h(self.ranks.rank(), self.shares);
        let rows = (1 << deal.log_n()) / deal.row_len();
        let mut terms: Vec<Terms> = Vec::new();
        for (start, group_width) in dealt.output_groups() {
            if let Some(Terms::Panels { width, groups, .. }) = terms.last_mut()
                && *width == group_width
            {
                *groups += 1;
                continue;
            }
            terms.push(Terms::Panels {
                row_len,
                rows,
                first_column: first_column + start,
                width: group_width,
                groups: 1,
                first_scalar: start * rows,
            });
        }
        terms
    }

    fn sum_over_h(
        &self,
        terms: impl IntoIterator<Item = Terms>,
        quotient: Option<&Column<E::Scalar>>,
    ) -> Result<Projective<E::G1Config>> {
        let _phase = (
            self.ranks.phase(SUM_OVER_H),
            step!(self.witness.workspace(), "sum over H"),
        );
        self.keeping.sum(Sum::H, || {
            let Some(quotient) = quotient else {
                unreachable!("the quotient is there where its sum was not kept");
            };
            let mut total = Projective::default();
            let h = &self.key.h;
            for terms in terms {
                let made = sums_of_terms::<E::G1Config, E::G2Config>(quotient, terms, &[h], &[])?;
                total += match made.and_then(|(sums, _)| sums.into_iter().next()) {
                    Some(sum) => sum,
                    None => msm_of::<E::G1Config>(h, quotient, terms)?,
                };
            }
            Ok(total)
        })
    }

    /// The sums of all ranks, on rank 0, and whether an accelerator of any rank has taken part in them.
    fn add_up(&self, sums: &Sums<E>) -> Result<Option<(Sums<E>, bool)>> {
        let g1 = [sums.a, sums.b_g1, sums.c, sums.h];
        let mut bytes = Vec::new();
        g1.iter().for_each(|sum| encode::<E::G1Config>(sum, &mut bytes));
        encode::<E::G2Config>(&sums.b_g2, &mut bytes);
        bytes.push(u8::from(self.keeping.has_accelerator()));
        let Some(parts) = self.ranks.gather(0, &bytes)? else {
            return Ok(None);
        };
        let parts = if self.ranks.is_dry() { vec![bytes] } else { parts };
        let mut total = Sums {
            a: Projective::default(),
            b_g1: Projective::default(),
            b_g2: Projective::default(),
            c: Projective::default(),
            h: Projective::default(),
        };
        let (g1_bytes, mut has_accelerator) = (Point::<E::G1Config>::BYTES, false);
        for part in parts {
            let (g1, g2) = part.split_at(part.len().min(4 * g1_bytes));
            let sums = [&mut total.a, &mut total.b_g1, &mut total.c, &mut total.h];
            for (sum, bytes) in sums.into_iter().zip(g1.chunks_exact(g1_bytes)) {
                *sum += Point::<E::G1Config>::decode(bytes).to_affine::<E::G1Config>();
            }
            if let Some((last, g2)) = g2.split_last()
                && g2.len() == Point::<E::G2Config>::BYTES
            {
                total.b_g2 += Point::<E::G2Config>::decode(g2).to_affine::<E::G2Config>();
                has_accelerator |= *last != 0;
            }
        }
        Ok(Some((total, has_accelerator)))
    }

    /// What rank 0 says of the proof, on all ranks.
    fn tell(&self, made: Option<Result<Told<E>>>) -> Result<Told<E>> {
        let mut bytes = Vec::new();
        let said = match made {
            Some(Ok(Told::Proof(proof))) => {
                encode::<E::G1Config>(&proof.a.into(), &mut bytes);
                encode::<E::G1Config>(&proof.c.into(), &mut bytes);
                encode::<E::G2Config>(&proof.b.into(), &mut bytes);
                Told::<E>::PROOF
            }
            Some(Ok(Told::Again)) => Told::<E>::AGAIN,
            None | Some(Ok(Told::NotSatisfied) | Err(Error::Invalid(Invalid::NotSatisfied))) => {
                Told::<E>::NOT_SATISFIED
            }
            Some(Err(error)) => return Err(error),
        };
        let (g1_bytes, g2_bytes) = (Point::<E::G1Config>::BYTES, Point::<E::G2Config>::BYTES);
        bytes.resize(2 * g1_bytes + g2_bytes, 0);
        bytes.push(said);
        self.ranks.broadcast(0, &mut bytes)?;
        match bytes.last() {
            _ if self.ranks.is_dry() => {}
            Some(&Told::<E>::PROOF) => {}
            Some(&Told::<E>::AGAIN) => return Ok(Told::Again),
            _ => return Ok(Told::NotSatisfied),
        }
        let g1 = |bytes: &[u8]| Point::<E::G1Config>::decode(bytes).to_affine::<E::G1Config>();
        Ok(Told::Proof(Proof {
            a: g1(&bytes[..g1_bytes]),
            c: g1(&bytes[g1_bytes..2 * g1_bytes]),
            b: Point::<E::G2Config>::decode(&bytes[2 * g1_bytes..][..g2_bytes]).to_affine::<E::G2Config>(),
        }))
    }
}

/// What earlier runs have done.
struct Over {
    /// Exchanges.
    exchanges: usize,
    /// The order of columns that come.
    order: Vec<u8>,
}

/// The only column of an exchange of one.
fn one<T>(columns: Vec<T>) -> T {
    let Some(column) = columns.into_iter().next() else {
        unreachable!("an exchange of one column brings one");
    };
    column
}

/// The sum of all columns, element by element, in the place of the first.
fn sum_of<F: KernelField>(first: &mut [F], others: &[&[F]]) {
    for other in others {
        for (sum, value) in first.iter_mut().zip(*other) {
            *sum = sum.plus(value);
        }
    }
}

/// The product of two columns, element by element, in the place of the first.
fn product_of<F: KernelField>(first: &mut [F], others: &[&[F]]) {
    for other in others {
        for (product, value) in first.iter_mut().zip(*other) {
            *product = product.times(value);
        }
    }
}

fn encode<P: Curve>(sum: &Projective<P>, bytes: &mut Vec<u8>) {
    let start = bytes.len();
    bytes.resize(start + Point::<P>::BYTES, 0);
    Point::<P>::from_affine::<P>(&sum.into_affine()).encode(&mut bytes[start..]);
}
