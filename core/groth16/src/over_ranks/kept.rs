//! What a rank keeps of a proof, so that a job that lost a rank goes on from there.
//!
//! Each rank has a checkpoint of its own ([`spillproof_engine::checkpoint`]): a note for each sum as soon as it
//! is made, and after an exchange the columns that came, with a note. All of these follow from key, witness,
//! shares and passes, and none from a random value. So ranks may keep different amounts, and of different
//! runs: a sum is made where it was not kept, and an exchange is left out where all ranks have kept it. A note
//! of rank 0 has the random values, so the proof of a later run is that of the first one. Another note says that an
//! accelerator may have made what follows: it is trusted when the proof verifies.
//!
//! Memory: a tile and a reader while the witness is hashed; a copy's buffers ([`Checkpoint::keep`]) after an
//! exchange, when nothing of a pass is held.

use std::sync::{Mutex, MutexGuard, PoisonError};

use ark_ec::short_weierstrass::Projective;
use spillproof_engine::accelerator::TaskAccelerator;
use spillproof_engine::checkpoint::{self, Checkpoint, Checkpoints, RoundKey, rehearse_keep};
use spillproof_engine::column::{Column, Draft, Element, Placement, Workspace, Writer};
use spillproof_engine::error::Result;
use spillproof_engine::step;
use spillproof_engine::stream::all_gather;
use spillproof_kernels::curve::{Curve, Point};
use spillproof_ranks::Ranks;

use super::exchanges::{EXCHANGES, Exchanged};
use super::{SCALAR_BYTES, Shares, encode};
use crate::proof::public_signals_of;
use crate::{PairingCurve, ProvingKey};

/// A sum over points of the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sum {
    A,
    B1,
    B2,
    C,
    H,
}

const SUMS: [Sum; 5] = [Sum::A, Sum::B1, Sum::B2, Sum::C, Sum::H];

const DIGEST_BYTES: usize = 32;
type Digest = [u8; DIGEST_BYTES];

/// What a rank has kept of a proof that it has made, if it keeps anything.
#[must_use = "it is kept until it is finished"]
pub struct Kept(pub(super) Keeping);

impl Kept {
    /// Removes it, when the proof is where it is wanted: until then, ranks that go on need what each of them has kept.
    /// Without this, the same call makes the same proof again.
    ///
    /// # Errors
    /// Those of [`Checkpoint::finish`].
    pub fn finish(self) -> Result<()> {
        self.0.finish()
    }
}

impl std::fmt::Debug for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Kept")
    }
}

/// Whether a rank keeps what it has done.
pub(super) enum Keeping {
    Nothing,
    /// In a dry run: what keeping takes.
    Dry,
    In(Box<Mutex<Notes>>),
}

/// A checkpoint, and what its notes say.
pub(super) struct Notes {
    checkpoint: Checkpoint,
    /// A digest of the witness: the first note. The folder's name, which is not sealed, says nothing of it.
    witness: Option<Digest>,
    /// The points of sums, by [`Sum`].
    sums: [Option<Vec<u8>>; SUMS.len()],
    exchanges: [Option<Came>; EXCHANGES.len()],
    random: Option<Vec<u8>>,
    /// Whether an accelerator may have taken part, in this run or in one before.
    accelerated: bool,
    /// The same of runs before.
    was_accelerated: bool,
    /// Files of columns so far.
    files: u32,
}

/// Columns that came in an exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Came {
    file: u32,
    key: [u8; RoundKey::BYTES],
    /// Of the passes that the columns are in the order of.
    passes: Digest,
    count: u32,
    len: u64,
    /// Of a frame.
    frame_bytes: u32,
    exchanged: Exchanged,
}

/// A note.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Note {
    Witness(Digest),
    Random(Vec<u8>),
    Sum(Sum, Vec<u8>),
    Came(usize, Came),
    Accelerated,
}

impl Keeping {
    /// In `checkpoints`, if there are any.
    ///
    /// # Errors
    /// Those of [`Checkpoints::begin`]; what reading the witness and the key may give.
    pub fn begin<E: PairingCurve>(
        checkpoints: Option<&Checkpoints>,
        (key, witness): (&ProvingKey<E>, &Column<E::Scalar>),
        (shares, rank): (&Shares, usize),
    ) -> Result<Self> {
        let workspace = witness.workspace();
        let Some(checkpoints) = checkpoints else {
            return Ok(Self::Nothing);
        };
        let _step = step!(workspace, "checkpoint");
        let of_witness = digest(witness)?;
        if workspace.is_dry() {
            return Ok(Self::Dry);
        }
        let terms = checkpoint::Terms {
            statement: statement(key, witness, (shares, rank))?,
            // They are in a note.
            draws_are_the_callers: true,
        };
        let mut kept = Notes::of(checkpoints.begin(workspace, &terms, |_| ())?)?;
        match kept.witness {
            None => kept.note(&Note::Witness(of_witness))?,
            Some(kept) if kept == of_witness => {}
            Some(_) => return Err(kept.checkpoint.differs("witness").into()),
        }
        Ok(Self::In(Box::new(Mutex::new(kept))))
    }

    fn kept(&self) -> Option<MutexGuard<'_, Notes>> {
        match self {
            Self::In(kept) => Some(kept.lock().unwrap_or_else(PoisonError::into_inner)),
            Self::Nothing | Self::Dry => None,
        }
    }

    /// The random values of the first run: `drawn`, if this is it.
    pub fn random<F: Element>(&self, drawn: [F; 2]) -> Result<[F; 2]> {
        let Some(mut kept) = self.kept() else {
            return Ok(drawn);
        };
        if let Some(bytes) = &kept.random {
            let value = |at: usize| F::decode(&bytes[at * F::BYTES..][..F::BYTES]);
            return match bytes.len() == 2 * F::BYTES {
                true => Ok([value(0), value(1)]),
                false => Err(kept.of_another_version()),
            };
        }
        let mut bytes = vec![0; 2 * F::BYTES];
        for (value, bytes) in drawn.iter().zip(bytes.chunks_exact_mut(F::BYTES)) {
            value.encode(bytes);
        }
        kept.note(&Note::Random(bytes))?;
        Ok(drawn)
    }

    /// Whether an earlier run has kept this sum.
    pub fn has(&self, sum: Sum) -> bool {
        self.kept().is_some_and(|kept| kept.sums[sum as usize].is_some())
    }

    /// A sum: the one that was kept, or the one that is made now.
    pub fn sum<P: Curve>(
        &self,
        sum: Sum,
        make: impl FnOnce() -> Result<Projective<P>>,
    ) -> Result<Projective<P>> {
        if let Some(kept) = self.kept()
            && let Some(bytes) = &kept.sums[sum as usize]
        {
            return match bytes.len() == Point::<P>::BYTES {
                true => Ok(Point::<P>::decode(bytes).to_affine::<P>().into()),
                false => Err(kept.of_another_version()),
            };
        }
        let made = make()?;
        if let Some(mut kept) = self.kept() {
            let mut bytes = Vec::new();
            encode::<P>(&made, &mut bytes);
            kept.note_accelerator()?;
            kept.note(&Note::Sum(sum, bytes))?;
        }
        Ok(made)
    }

    /// Whether an accelerator has taken part in what this rank has in this task, or may have before it.
    pub fn has_accelerator(&self) -> bool {
        has_accelerator() || self.kept().is_some_and(|kept| kept.was_accelerated)
    }

    /// How many exchanges are over: those up to the last one whose columns all ranks have kept, in the order of
    /// the same passes. If any rank's accelerator may be asked, which makes what the others sum, each notes it.
    pub fn exchanges(&self, ranks: &Ranks, passes: &[u8], may_be_asked: bool) -> Result<usize> {
        let mut has = [0, 0, u8::from(may_be_asked)];
        if let Some(kept) = self.kept() {
            let passes = *blake3::hash(passes).as_bytes();
            for (has, came) in has.iter_mut().zip(&kept.exchanges) {
                *has = u8::from(came.as_ref().is_some_and(|came| came.passes == passes));
            }
            has[EXCHANGES.len()] |= u8::from(kept.accelerated);
        }
        let all = all_gather(ranks, &has)?;
        if let Some(mut kept) = self.kept()
            && !kept.accelerated
            && all.iter().any(|has| has.get(EXCHANGES.len()) == Some(&1))
        {
            kept.note(&Note::Accelerated)?;
        }
        let have = |exchange: &usize| all.iter().all(|has| has.get(*exchange) == Some(&1));
        Ok((0..EXCHANGES.len()).rev().find(have).map_or(0, |last| last + 1))
    }

    /// The columns that came in an exchange, as they were in the earlier run.
    pub fn columns<F: Element>(&self, workspace: &Workspace, exchange: usize) -> Result<Vec<Column<F>>> {
        let kept = self.kept();
        let Some((kept, came)) = kept
            .as_ref()
            .and_then(|kept| Some((kept, kept.exchanges[exchange].as_ref()?)))
        else {
            unreachable!("an exchange is over where all ranks have kept it");
        };
        let _step = step!(workspace, "checkpoint");
        let shape = (came.count as usize, came.len);
        let key = RoundKey::from_bytes(came.key);
        let columns = kept
            .checkpoint
            .kept::<F>(workspace, came.file as usize, &key, shape)?;
        // In frames of the same length: passes are planned for these.
        let copied = |column: &Column<F>| {
            let (what, frame_bytes) = ("kept columns", came.frame_bytes as usize);
            let draft = Draft::scratch_with_frames(workspace, what, came.len, Placement::Disk, frame_bytes)?;
            let mut writer = Writer::new(draft);
            writer.push_column(column)?;
            writer.finish()
        };
        columns.iter().map(copied).collect()
    }

    /// Checksums of an exchange that is over.
    pub fn exchanged(&self, exchange: usize) -> Exchanged {
        let kept = self.kept();
        let came = kept.as_ref().and_then(|kept| kept.exchanges[exchange].as_ref());
        came.map_or_else(Default::default, |came| came.exchanged)
    }

    /// Keeps the columns that came in an exchange.
    pub fn keep_columns<F: Element>(
        &self,
        workspace: &Workspace,
        (exchange, passes): (usize, &[u8]),
        exchanged: Exchanged,
        columns: &[Column<F>],
    ) -> Result<()> {
        if let Self::Dry = self {
            let _step = step!(workspace, "checkpoint");
            return rehearse_keep(columns.iter());
        }
        let Some(mut kept) = self.kept() else {
            return Ok(());
        };
        let _step = step!(workspace, "checkpoint");
        kept.note_accelerator()?;
        let file = kept.files;
        let key = kept.checkpoint.keep(file as usize, columns.iter())?;
        let frame_bytes = columns
            .first()
            .map_or(0, |column| column.frame_elements() * F::BYTES as u64);
        let came = Came {
            file,
            key: key.to_bytes(),
            passes: *blake3::hash(passes).as_bytes(),
            count: columns.len() as u32,
            len: columns.first().map_or(0, Column::len),
            frame_bytes: frame_bytes as u32,
            exchanged,
        };
        kept.note(&Note::Came(exchange, came))
    }

    /// A proof has come out, or never will: nothing is kept any more.
    pub fn finish(self) -> Result<()> {
        match self {
            Self::Nothing | Self::Dry => Ok(()),
            Self::In(kept) => {
                let kept = (*kept).into_inner().unwrap_or_else(PoisonError::into_inner);
                kept.checkpoint.finish()
            }
        }
    }
}

/// Whether an accelerator has taken part in this thread's task.
fn has_accelerator() -> bool {
    TaskAccelerator::jobs_of_this_thread().is_some_and(|jobs| jobs > 0)
}

impl Notes {
    fn of(mut checkpoint: Checkpoint) -> Result<Self> {
        let mut notes = Vec::new();
        while let Some(text) = checkpoint.take_note() {
            notes.push(text);
        }
        let mut kept = Self {
            checkpoint,
            witness: None,
            sums: Default::default(),
            exchanges: Default::default(),
            random: None,
            accelerated: false,
            was_accelerated: false,
            files: 0,
        };
        // Sums and exchanges, not what they belong to.
        let is_step = |note: &&Vec<u8>| matches!(note.first(), Some(&(Note::SUM | Note::CAME)));
        let resumed_rounds = notes.iter().filter(is_step).count() as u64;
        if resumed_rounds > 0 {
            tracing::info!(target: "spillproof::step", resumed_rounds, "the proof goes on from its checkpoint");
        }
        for text in notes {
            let note = Note::decoded(&text).ok_or_else(|| kept.of_another_version())?;
            kept.take(&note);
        }
        kept.was_accelerated = kept.accelerated;
        Ok(kept)
    }

    fn note(&mut self, note: &Note) -> Result<()> {
        self.checkpoint.note(note.encoded())?;
        self.take(note);
        Ok(())
    }

    /// Before anything is kept that an accelerator may have made.
    fn note_accelerator(&mut self) -> Result<()> {
        match has_accelerator() && !self.accelerated {
            true => self.note(&Note::Accelerated),
            false => Ok(()),
        }
    }

    fn take(&mut self, note: &Note) {
        match note {
            Note::Accelerated => self.accelerated = true,
            Note::Witness(digest) => self.witness = Some(*digest),
            Note::Random(bytes) => self.random = Some(bytes.clone()),
            Note::Sum(sum, bytes) => self.sums[*sum as usize] = Some(bytes.clone()),
            Note::Came(exchange, came) => {
                self.files = came.file + 1;
                self.exchanges[*exchange] = Some(came.clone());
            }
        }
    }

    fn of_another_version(&self) -> spillproof_engine::Error {
        self.checkpoint.differs("version of this program").into()
    }
}

impl Note {
    const WITNESS: u8 = 0;
    const RANDOM: u8 = 1;
    const SUM: u8 = 2;
    const CAME: u8 = 3;
    const ACCELERATED: u8 = 4;

    fn encoded(&self) -> Vec<u8> {
        match self {
            Self::Witness(digest) => [&[Self::WITNESS][..], digest].concat(),
            Self::Random(bytes) => [&[Self::RANDOM][..], bytes].concat(),
            Self::Accelerated => vec![Self::ACCELERATED],
            Self::Sum(sum, bytes) => [&[Self::SUM, *sum as u8][..], bytes].concat(),
            Self::Came(exchange, came) => [
                &[Self::CAME, *exchange as u8][..],
                &came.file.to_le_bytes(),
                &came.key,
                &came.passes,
                &came.count.to_le_bytes(),
                &came.len.to_le_bytes(),
                &came.frame_bytes.to_le_bytes(),
                &came.exchanged[0].to_le_bytes(),
                &came.exchanged[1].to_le_bytes(),
            ]
            .concat(),
        }
    }

    fn decoded(text: &[u8]) -> Option<Self> {
        let (tag, rest) = text.split_first()?;
        match *tag {
            Self::WITNESS => Some(Self::Witness(rest.try_into().ok()?)),
            Self::RANDOM => Some(Self::Random(rest.to_vec())),
            Self::ACCELERATED => Some(Self::Accelerated),
            Self::SUM => {
                let (sum, bytes) = rest.split_first()?;
                Some(Self::Sum(*SUMS.get(usize::from(*sum))?, bytes.to_vec()))
            }
            Self::CAME => {
                let (exchange, rest) = rest.split_first()?;
                let exchange = usize::from(*exchange);
                let (file, rest) = rest.split_first_chunk()?;
                let (key, rest) = rest.split_first_chunk()?;
                let (passes, rest) = rest.split_first_chunk()?;
                let (count, rest) = rest.split_first_chunk()?;
                let (len, rest) = rest.split_first_chunk()?;
                let (frame_bytes, rest) = rest.split_first_chunk()?;
                let (sent, rest) = rest.split_first_chunk()?;
                let (received, rest) = rest.split_first_chunk()?;
                let came = Came {
                    file: u32::from_le_bytes(*file),
                    key: *key,
                    passes: *passes,
                    count: u32::from_le_bytes(*count),
                    len: u64::from_le_bytes(*len),
                    frame_bytes: u32::from_le_bytes(*frame_bytes),
                    exchanged: [sent, received].map(|sum| u64::from_le_bytes(*sum)),
                };
                (rest.is_empty() && exchange < EXCHANGES.len()).then_some(Self::Came(exchange, came))
            }
            _ => None,
        }
    }
}

/// The digest that names a rank's checkpoint. Its inputs are public: the key, the public signals, the shares, the
/// rank.
fn statement<E: PairingCurve>(
    key: &ProvingKey<E>,
    witness: &Column<E::Scalar>,
    (shares, rank): (&Shares, usize),
) -> Result<Digest> {
    let (verifying, shape) = (&key.verifying, key.shape()?);
    let mut points = Vec::new();
    for point in [verifying.alpha_g1, key.beta_g1, key.delta_g1] {
        encode::<E::G1Config>(&point.into(), &mut points);
    }
    for point in [verifying.beta_g2, verifying.gamma_g2, verifying.delta_g2] {
        encode::<E::G2Config>(&point.into(), &mut points);
    }
    for point in verifying.ic_points()? {
        encode::<E::G1Config>(&point.into(), &mut points);
    }
    let mut hasher = blake3::Hasher::new_derive_key("spillproof 2026 groth16 one rank's checkpoint");
    hasher.update(&points);
    for signal in public_signals_of(witness, shape.public)? {
        let mut bytes = [0; SCALAR_BYTES as usize];
        signal.encode(&mut bytes);
        hasher.update(&bytes);
    }
    hasher.update(format!("{shape:?} {shares:?} {rank}").as_bytes());
    Ok(*hasher.finalize().as_bytes())
}

/// Of all elements of a column of scalars.
fn digest<F: Element>(column: &Column<F>) -> Result<Digest> {
    const WHAT: &str = "digest of the witness";
    let column = column.cast::<[u8; SCALAR_BYTES as usize]>()?;
    let (workspace, chunk) = (column.workspace(), column.sequential_chunk());
    let mut hasher = blake3::Hasher::new();
    if workspace.is_dry() {
        let _held = workspace.hold(chunk * SCALAR_BYTES + column.reader_bytes(chunk, 2), WHAT)?;
        column.count_read();
    } else {
        let zero = [0; SCALAR_BYTES as usize];
        let mut elements = workspace.budget.vec(chunk as usize, zero, WHAT)?;
        let mut reader = column.read_ascending(chunk)?;
        while let Some(region) = reader.next_into(&mut elements)? {
            hasher.update(elements[..region.len() as usize].as_flattened());
        }
    }
    Ok(*hasher.finalize().as_bytes())
}
