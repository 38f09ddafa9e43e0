//! Rounds of a proof that may be kept: what goes to the transcript, and can be gone on from after a crash
//! ([`spillproof_engine::checkpoint`]).
//!
//! A round draws its random values, makes columns and commits to them. If it is kept, the columns are written
//! and a note is synced before the commitments go to the transcript; each challenge is noted too. A later run
//! draws the same values, finds the notes of the rounds that were kept, and writes their commitments again;
//! their columns are read from where they were kept, and what made them is left out. Draws and challenges are
//! compared with the notes.
//!
//! ```text
//! note of a challenge   0 | challenge
//! note of a round       1 | key of its files | digest of its draws | commitments
//! ```
//!
//! Memory: the commitments of one round.

use spillproof_commit::Basis;
use spillproof_engine::checkpoint::{Checkpoint, RoundKey, rehearse_keep};
use spillproof_engine::column::{Column, Element, Workspace};
use spillproof_engine::step;
use spillproof_kernels::curve::Curve;
use spillproof_kernels::field::KernelField;

use crate::curve::{Config, PointOf, ScalarOf};
use crate::domain::Domain;
use crate::draws::{DIGEST_BYTES, Drawn, Draws, Tail};
use crate::error::Result;
use crate::input::Values;
use crate::numerator::Numerators;
use crate::outside::{Blinded, Outside};
use crate::protocol::Protocol;

const CHALLENGE: u8 = 0;
const ROUND: u8 = 1;

/// The protocol of a proof, all that it talks to, and what is kept of its rounds.
pub struct Rounds<'p, C: Curve = Config> {
    pub(crate) protocol: Protocol,
    pub(crate) outside: &'p mut dyn Outside<C>,
    keeping: Keeping,
    /// Of a dry run.
    pub(crate) numerators: Option<&'p Numerators<ScalarOf<C>>>,
    /// How many there were.
    count: usize,
}

/// What is kept.
enum Keeping {
    Nothing,
    /// All rounds, in a dry run.
    Dry,
    In(Box<Checkpoint>),
}

/// A round that an earlier run has kept.
pub(crate) struct Kept<C: Curve> {
    columns: Vec<Column<ScalarOf<C>>>,
    draws: [u8; DIGEST_BYTES],
    commitments: Vec<PointOf<C>>,
}

impl<'p, C: Curve> Rounds<'p, C> {
    /// Rounds of a proof, kept in `checkpoint` if there is one.
    pub fn new(protocol: Protocol, outside: &'p mut dyn Outside<C>, checkpoint: Option<Checkpoint>) -> Self {
        let keeping = match checkpoint {
            None => Keeping::Nothing,
            Some(checkpoint) => Keeping::In(Box::new(checkpoint)),
        };
        let rounds = Self {
            protocol,
            outside,
            keeping,
            numerators: None,
            count: 0,
        };
        let kept = rounds.left() as u64;
        if kept > 0 {
            tracing::info!(target: "spillproof::step", resumed_rounds = kept, "the proof goes on from its checkpoint");
        }
        rounds
    }

    /// Rounds of a dry run, in which keeping takes what it would take.
    pub(crate) fn dry(
        protocol: Protocol,
        outside: &'p mut dyn Outside<C>,
        are_kept: bool,
        numerators: &'p Numerators<ScalarOf<C>>,
    ) -> Self {
        let keeping = match are_kept {
            true => Keeping::Dry,
            false => Keeping::Nothing,
        };
        Self {
            protocol,
            outside,
            keeping,
            numerators: Some(numerators),
            count: 0,
        }
    }

    /// The checkpoint, after the last round.
    pub fn into_checkpoint(self) -> Option<Checkpoint> {
        match self.keeping {
            Keeping::In(checkpoint) => Some(*checkpoint),
            Keeping::Nothing | Keeping::Dry => None,
        }
    }

    /// How many rounds of an earlier run are still to come.
    pub(crate) fn left(&self) -> usize {
        match &self.keeping {
            Keeping::In(checkpoint) => {
                let notes = checkpoint.notes();
                notes.filter(|note| note.first() == Some(&ROUND)).count()
            }
            Keeping::Nothing | Keeping::Dry => 0,
        }
    }

    /// The next challenge.
    ///
    /// # Errors
    /// [`Differs`](spillproof_engine::error::Checkpoint::Differs) if it is not the one that was kept; the
    /// engine's.
    pub(crate) fn challenge(&mut self) -> Result<ScalarOf<C>> {
        let challenge = self.outside.transcript().challenge();
        if let Keeping::In(checkpoint) = &mut self.keeping {
            let mut note = vec![CHALLENGE; 1 + ScalarOf::<C>::BYTES];
            challenge.encode(&mut note[1..]);
            match checkpoint.take_note() {
                None => checkpoint.note(note)?,
                Some(kept) if kept == note => {}
                Some(_) => return Err(engines(checkpoint.differs("transcript"))),
            }
        }
        Ok(challenge)
    }

    /// Draws what a round wants for columns with these ends, in groups of `group` columns.
    pub(crate) fn draw(&mut self, tails: Vec<Tail>, group: usize) -> Drawn<ScalarOf<C>> {
        Draws::of(tails, group, self.protocol.blinds).taken(self.outside)
    }

    /// The next round, of so many columns of `rows` rows, if an earlier run has kept it. A round without
    /// columns is not kept.
    ///
    /// # Errors
    /// [`Differs`](spillproof_engine::error::Checkpoint::Differs) if that run had no round here; the
    /// engine's.
    pub(crate) fn kept(
        &mut self,
        workspace: &Workspace,
        columns: usize,
        rows: u64,
    ) -> Result<Option<Kept<C>>> {
        let Keeping::In(checkpoint) = &mut self.keeping else {
            return Ok(None);
        };
        if columns == 0 {
            return Ok(None);
        }
        let Some(note) = checkpoint.take_note() else {
            return Ok(None);
        };
        let Some((key, draws, commitments)) = decoded::<C>(&note) else {
            return Err(engines(checkpoint.differs("version of this program")));
        };
        let shape = (commitments.len(), rows);
        Ok(Some(Kept {
            columns: checkpoint.kept(workspace, self.count, &key, shape)?,
            draws,
            commitments,
        }))
    }

    /// Commits to the columns of a round, or finds that it was done; hashes the commitments.
    ///
    /// # Errors
    /// The engine's, and the protocol's; [`Differs`](spillproof_engine::error::Checkpoint::Differs) if the
    /// draws are not those that were kept.
    pub(crate) fn commit(
        &mut self,
        workspace: &Workspace,
        basis: Basis,
        columns: Vec<Column<ScalarOf<C>>>,
        drawn: &Drawn<ScalarOf<C>>,
        kept: Option<Kept<C>>,
    ) -> Result<Vec<Blinded<ScalarOf<C>>>> {
        let columns = drawn.blinded(columns);
        if columns.is_empty() && kept.is_none() {
            return Ok(columns);
        }
        let commitments = match (kept, &self.keeping) {
            (Some(kept), Keeping::In(checkpoint)) => {
                if kept.draws != drawn.digest() || kept.commitments.len() != columns.len() {
                    return Err(engines(checkpoint.differs("random number generator")));
                }
                kept.commitments
            }
            _ => {
                let commitments = self.outside.commit(basis, &columns)?;
                self.keep(workspace, &columns, drawn, &commitments)?;
                commitments
            }
        };
        self.count += 1;
        self.outside.write_points(&commitments)?;
        Ok(columns)
    }

    /// Keeps a round. When this returns, it is on the disk.
    fn keep(
        &mut self,
        workspace: &Workspace,
        columns: &[Blinded<ScalarOf<C>>],
        drawn: &Drawn<ScalarOf<C>>,
        commitments: &[PointOf<C>],
    ) -> Result<()> {
        let each = columns.iter().map(|blinded| &blinded.column);
        match &mut self.keeping {
            Keeping::Nothing => {}
            Keeping::Dry => rehearse_keep(each)?,
            Keeping::In(checkpoint) => {
                let _step = step!(workspace, "checkpoint");
                let key = checkpoint.keep(self.count, each)?;
                checkpoint.note(encoded::<C>(&key, &drawn.digest(), commitments))?;
            }
        }
        Ok(())
    }
}

impl<C: Curve> Kept<C> {
    /// Its columns, which are read where they were kept; they are given once.
    pub(crate) fn take_columns(&mut self) -> Vec<Column<ScalarOf<C>>> {
        std::mem::take(&mut self.columns)
    }
}

/// The note of a round.
fn encoded<C: Curve>(key: &RoundKey, draws: &[u8; DIGEST_BYTES], commitments: &[PointOf<C>]) -> Vec<u8> {
    let mut note = [&[ROUND][..], &key.to_bytes(), draws].concat();
    for commitment in commitments {
        let at = note.len();
        note.resize(at + PointOf::<C>::BYTES, 0);
        commitment.encode(&mut note[at..]);
    }
    note
}

/// The values of [`encoded`]; `None` for a note of another kind.
fn decoded<C: Curve>(note: &[u8]) -> Option<(RoundKey, [u8; DIGEST_BYTES], Vec<PointOf<C>>)> {
    let rest = note.strip_prefix(&[ROUND])?;
    let (key, rest) = rest.split_first_chunk()?;
    let (draws, points) = rest.split_first_chunk()?;
    let commitments = points
        .chunks_exact(PointOf::<C>::BYTES)
        .map(PointOf::<C>::decode)
        .collect();
    let whole = points.len().is_multiple_of(PointOf::<C>::BYTES);
    whole.then_some((RoundKey::from_bytes(*key), *draws, commitments))
}

/// A digest of what a proof is of: the verifying key's own digest, the rows, the scheme, and the instances of
/// each circuit.
pub fn statement<F: KernelField>(
    verifying_key: F,
    domain: &Domain<F>,
    scheme: &str,
    circuits: &[Vec<Box<dyn Values<F> + '_>>],
) -> [u8; DIGEST_BYTES] {
    let mut hasher = blake3::Hasher::new_derive_key("spillproof 2026 statement of a halo2 proof");
    let mut bytes = vec![0; F::BYTES];
    verifying_key.encode(&mut bytes);
    hasher.update(&bytes);
    let number = |hasher: &mut blake3::Hasher, number: u64| {
        hasher.update(&number.to_le_bytes());
    };
    number(&mut hasher, u64::from(domain.log_n));
    number(&mut hasher, scheme.len() as u64);
    hasher.update(scheme.as_bytes());
    number(&mut hasher, circuits.len() as u64);
    for columns in circuits {
        number(&mut hasher, columns.len() as u64);
        for values in columns {
            number(&mut hasher, values.len() as u64);
            let Ok(()) = values.for_each_tile::<std::convert::Infallible>(|tile| {
                for value in tile {
                    value.encode(&mut bytes);
                    hasher.update(&bytes);
                }
                Ok(())
            });
        }
    }
    *hasher.finalize().as_bytes()
}

fn engines(error: spillproof_engine::error::Checkpoint) -> crate::Error {
    spillproof_engine::Error::from(error).into()
}
