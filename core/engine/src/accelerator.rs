//! The seam between the engine and an accelerator: whole jobs, as plain data and ends to read from and write
//! to.
//!
//! A [`Accelerator`] computes beside the processor: `spillproof-gpu` has one that runs on a device. The
//! engine offers it a job, and it answers [`Answer::Done`], or [`Answer::Declined`] with a reason: then the
//! processor does the job from its start, and the result is the same. The engine knows no device, and an
//! accelerator knows no files: elements pass as bytes in native form (scalars 32, points 64, Montgomery form,
//! as [`crate::column`] has them on disk), so nothing is converted on the way. Everything is BN254's.
//!
//! Memory: the engine's ends lease what they read and write through; what an accelerator holds of the host's
//! memory it leases from the budget that it is given with the job. Before it answers it gives that back, or
//! keeps it for the next job as [`Spares`](crate::budget::Spares) of that budget, which are given up when
//! their memory is needed.
//!
//! Where an accelerator's own memory is such that the host reads it as fast as any, and begins at a page,
//! whole frames of a column on disk land in it and leave from it, past all other memory
//! ([`ReadElements::begin`]); for the accelerator it makes no difference.

mod arrivals;
mod counted;
mod groups;
mod quotient;

use std::fmt::Debug;
use std::ops::Range;

pub use arrivals::Arrivals;
pub(crate) use arrivals::Piece;
pub use counted::{CountedAccelerator, ProcessorOnly, TaskAccelerator, TaskAcceleratorGuard, processor_only};

use ark_bn254::Fr;

pub use groups::{Group, Groups, Totals};
pub use quotient::{Coset, InTiles, Input, Order, Program, RowSource, Run, TileEnds, Tiles};

use crate::Result;
use crate::budget::{Budget, Lent};

/// Bytes of a scalar.
pub const SCALAR_BYTES: usize = 32;
/// Bytes of a coefficient of a constraint system: its row, its signal, the place of its value among the distinct ones,
/// and its matrix (0 or 1), each in four bytes, the lowest first.
pub const COEFFICIENT_BYTES: u64 = 16;
/// Bytes of a point of G1: x, then y; zeros for infinity.
pub const POINT_BYTES: usize = Group::G1.point_bytes() as usize;
/// Bytes of a point of G2.
pub const POINT_BYTES_OF_G2: usize = Group::G2.point_bytes() as usize;

/// What an accelerator made of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer<T> {
    /// It is done.
    Done(T),
    /// The processor has to do it, from the start, for this reason. What was written meanwhile is void.
    Declined(String),
}

/// An accelerator. Its answers are as good as the processor's, bit for bit, or it declines.
pub trait Accelerator: Debug + Send + Sync {
    /// Sums of scalars times points: one for each column of points and each vector of scalars. Of a job over points of
    /// both groups those of G1 alone may be done: then there are no totals of G2.
    ///
    /// # Errors
    /// Those of the job's own ends. What goes wrong with the accelerator itself is a reason to decline.
    fn sums(&self, job: &mut Sums<'_>, budget: &Budget) -> Result<Answer<Totals>>;

    /// A whole transform.
    ///
    /// # Errors
    /// As [`Self::sums`].
    fn transform(&self, job: &mut Transform<'_>, budget: &Budget) -> Result<Answer<()>>;

    /// Halves of transforms, of a panel. What was written of it is void if it is declined.
    ///
    /// # Errors
    /// As [`Self::sums`].
    fn panel(&self, job: &mut Panel<'_>, budget: &Budget) -> Result<Answer<()>> {
        let _all = (job, budget);
        Ok(Answer::Declined("it makes whole transforms only".into()))
    }

    /// A quotient on one coset.
    ///
    /// # Errors
    /// As [`Self::sums`].
    fn quotient(&self, job: &mut Coset<'_>, budget: &Budget) -> Result<Answer<()>>;

    /// The same from the n coefficients of each input that is read, lowest first; the job's rows are not read. It is asked
    /// for first: where it is declined, rows are made, and [`Self::quotient`] is asked for.
    ///
    /// # Errors
    /// As [`Self::sums`].
    fn quotient_of(
        &self,
        job: &mut Coset<'_>,
        inputs: &mut [Box<dyn ReadElements + '_>],
        budget: &Budget,
    ) -> Result<Answer<()>> {
        let _all = (job, inputs, budget);
        Ok(Answer::Declined("it takes rows only".into()))
    }

    /// The quotient of a rank-1 constraint system. What it declines is made of the values of rows, and of transforms.
    ///
    /// # Errors
    /// As [`Self::sums`].
    fn constraints(&self, job: &mut Constraints<'_>, budget: &Budget) -> Result<Answer<()>> {
        let _all = (job, budget);
        Ok(Answer::Declined("it takes no constraints".into()))
    }

    /// Columns of these frames are gone: what is kept of them is of no more use, and may be secret.
    fn forget(&self, frames: u64) {
        let _any = frames;
    }

    /// What it computed made a proof wrong: it is not asked any more.
    fn distrust(&self) {}

    /// Whether the task of this thread may ask it.
    fn may_be_asked(&self) -> bool {
        true
    }

    /// Whether it would do a transform of `2^log_n` elements that it is offered now: several that depend on
    /// each other are offered one by one then, and otherwise share their passes over the disk.
    fn would_transform(&self, log_n: u32, budget: &Budget) -> bool {
        let _any = (log_n, budget);
        true
    }
}

/// Lines of elements, all of the same length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lines {
    /// The first element of the first line.
    pub first: u64,
    /// From the first element of a line to that of the next.
    pub step: u64,
    /// How many.
    pub count: u64,
}

impl Lines {
    /// The first element of each.
    fn firsts(self) -> impl Iterator<Item = u64> {
        (0..self.count).map(move |line| self.first + line * self.step)
    }

    /// Bytes of a line, where all have `bytes`; 1 at least.
    fn len_of(&self, bytes: usize) -> usize {
        usize::try_from(self.count).map_or(1, |count| (bytes / count.max(1)).max(1))
    }
}

/// Where elements come from.
pub trait ReadElements {
    /// Fills `into` with elements `first ..`. They are asked for in ascending order without gaps, and as
    /// often as a reader begins anew at 0.
    ///
    /// # Errors
    /// Of the disk or the budget; the job ends with it.
    fn read(&mut self, first: u64, into: &mut [u8]) -> Result<()>;

    /// As [`Self::read`], but the elements are there when the arrivals are settled, in whatever order those of
    /// several parts are: meanwhile the disk works for all parts that were begun. Where the memory is readable
    /// they may be checked there. What is in memory is copied before this returns, by all threads.
    ///
    /// # Errors
    /// As [`Self::read`].
    fn begin(&mut self, first: u64, mut into: Lent) -> Result<Arrivals> {
        self.read(first, &mut into)?;
        Ok(Arrivals::default())
    }

    /// Fills `into` with `lines`, one after the other.
    ///
    /// # Errors
    /// As [`Self::read`].
    fn read_lines(&mut self, lines: Lines, into: &mut [u8]) -> Result<()> {
        let len = lines.len_of(into.len());
        let mut each = lines.firsts().zip(into.chunks_exact_mut(len));
        each.try_for_each(|(first, line)| self.read(first, line))
    }

    /// The column that they are, and its length; none for what is no column, or comes in another order. An accelerator
    /// that has kept the elements of the column need not read them.
    fn column(&self) -> Option<(ColumnId, u64)> {
        None
    }

    /// Seconds in which the disk gives all elements, at the rates of the session, which are measured now if they
    /// were not; 0 for elements in memory.
    fn disk_seconds_to_read(&self) -> f64 {
        0.0
    }

    /// The most that it leases between its first element and its last: who reads several at one time sees
    /// whether they have room.
    fn lease_bytes(&self) -> u64 {
        0
    }
}

impl<R: FnMut(u64, &mut [u8]) -> Result<()>> ReadElements for R {
    fn read(&mut self, first: u64, into: &mut [u8]) -> Result<()> {
        self(first, into)
    }
}

/// Where elements go.
pub trait WriteElements {
    /// Takes elements `first ..`, in ascending order without gaps, and as often as a reader begins anew at 0:
    /// what came before is void.
    ///
    /// # Errors
    /// As [`ReadElements::read`].
    fn write(&mut self, first: u64, bytes: &[u8]) -> Result<()>;

    /// Takes `lines`, which stand in `bytes` one after the other.
    ///
    /// # Errors
    /// As [`Self::write`].
    fn write_lines(&mut self, lines: Lines, bytes: &[u8]) -> Result<()> {
        let len = lines.len_of(bytes.len());
        let mut each = lines.firsts().zip(bytes.chunks_exact(len));
        each.try_for_each(|(first, line)| self.write(first, line))
    }

    /// The identity of the column that they make, once some were written; none for what is no column.
    fn column_id(&self) -> Option<ColumnId> {
        None
    }

    /// Seconds in which the disk takes all elements, as [`ReadElements::disk_seconds_to_read`].
    fn disk_seconds_to_write(&self) -> f64 {
        0.0
    }
}

impl<W: FnMut(u64, &[u8]) -> Result<()>> WriteElements for W {
    fn write(&mut self, first: u64, bytes: &[u8]) -> Result<()> {
        self(first, bytes)
    }
}

/// Sums of the same number of terms.
pub struct Sums<'a> {
    /// Columns of points: with each vector of scalars each of them makes a sum.
    pub bases: Groups<Vec<Bases<'a>>>,
    /// Vectors of scalars.
    pub scalars: Vec<Scalars<'a>>,
    /// The same sums in parts, for an accelerator that makes several at one time.
    pub parts: Option<Parts<'a>>,
}

/// A column of points, as many as the longest vector has scalars.
pub struct Bases<'a> {
    /// Where they come from; read anew for each pass over them.
    pub source: Box<dyn ReadElements + 'a>,
    /// Their identity, so that an accelerator may keep them for later sums; none for points that come in another
    /// order than their own, or only in part.
    pub id: Option<ColumnId>,
}

impl Sums<'_> {
    /// How many sums there are.
    pub fn count(&self) -> u64 {
        self.bases.counts().count() * self.scalars.len() as u64
    }

    /// How many sums there are in each group.
    pub fn counts(&self) -> Groups<u64> {
        let (bases, scalars) = (self.bases.counts(), self.scalars.len() as u64);
        Groups {
            g1: bases.g1 * scalars,
            g2: bases.g2 * scalars,
        }
    }

    /// Whether there are points of both groups.
    pub fn has_both_groups(&self) -> bool {
        !self.bases.g1.is_empty() && !self.bases.g2.is_empty()
    }

    /// Terms of the longest.
    pub fn points(&self) -> u64 {
        self.scalars.iter().map(|scalars| scalars.len).max().unwrap_or(0)
    }
}

/// The identity of a column: those with an equal one are prefixes of the same elements, which do not change, as long
/// as the process lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ColumnId {
    /// Of a column's frames, or of the file that several columns are sections of.
    pub frames: u64,
    /// The frame that the elements begin at.
    pub first_frame: u64,
}

/// Sums over ranges of the bases, that add up to the sums over all of them.
pub struct Parts<'a> {
    /// A range begins at a multiple of so many points.
    pub step: u64,
    /// The sums over a range, with ends of their own; vectors that end before it are empty.
    #[allow(clippy::type_complexity)]
    pub of: Box<dyn Fn(Range<u64>) -> Result<Sums<'a>> + Sync + 'a>,
}

/// A vector of scalars, or of coefficients.
pub struct Scalars<'a> {
    /// How many.
    pub len: u64,
    /// Where they come from.
    pub source: Box<dyn ReadElements + 'a>,
}

/// The quotient of a rank-1 constraint system by one witness. The coefficients of two sparse matrices give the values a and
/// b of each row, a sum of products of values and signals; then c = a b. Each of the three is taken from the powers of
/// `omega`, as values of a polynomial, to `shift` times these powers; a b - c there is the output.
pub struct Constraints<'a> {
    /// log2 of the number of rows.
    pub log_n: u32,
    /// A primitive `2^log_n`-th root of unity.
    pub omega: Fr,
    /// The first element of the coset.
    pub shift: Fr,
    /// The distinct values of coefficients.
    pub values: Scalars<'a>,
    /// The signals.
    pub witness: Scalars<'a>,
    /// Coefficients of [`COEFFICIENT_BYTES`], in the order of their rows. Nothing of them has been checked: a job with
    /// one that is outside of the matrices, or out of order, is to be declined.
    pub coefficients: Scalars<'a>,
    /// Elements, in the order of the powers.
    pub output: Box<dyn WriteElements + 'a>,
    /// Seconds in which the disk moves what the processor's own way would move.
    pub disk_seconds: Box<dyn Fn() -> f64 + 'a>,
}

/// A transform: `output[i] = scale * after^i * sum over j of omega^(i * j) * before^j * input[j]`.
pub struct Transform<'a> {
    /// log2 of the number of elements, of the input (which pads itself with zeros) and of the output.
    pub log_n: u32,
    /// A primitive `2^log_n`-th root of unity.
    pub omega: Fr,
    /// Goes to the power of the input's index.
    pub before: Fr,
    /// Goes to the power of the output's index.
    pub after: Fr,
    /// Multiplies everything.
    pub scale: Fr,
    /// Elements, in natural order.
    pub input: Box<dyn ReadElements + 'a>,
    /// Elements, in natural order.
    pub output: Box<dyn WriteElements + 'a>,
    /// In place of both, for an accelerator that has no room for the whole.
    pub in_steps: Box<dyn InSteps + 'a>,
}

/// Neighbouring columns of a matrix, each of which is transformed by itself: what a rank has of a transform that is
/// dealt to ranks. Elements stand row after row, and are read and written in lines of some columns.
pub struct Panel<'a> {
    /// log2 of the number of rows, the length of a column.
    pub log_rows: u32,
    /// log2 of the number of columns.
    pub log_columns: u32,
    /// The place of the first one among all columns of the matrix.
    pub first_column: u64,
    /// What is made of the columns, one after the other.
    pub halves: Vec<Half>,
    /// The elements.
    pub input: Box<dyn ReadElements + 'a>,
    /// What was made of them, each in its own place.
    pub output: Box<dyn WriteElements + 'a>,
}

/// A half of a transform of `2^log_n` elements, over columns of r elements, where `c = 2^log_n / r`. Of the elements
/// `x[i]` of column j of the matrix, element k becomes
///
/// - in the first half `scale * omega^(k * j) * sum over i of omega^(c * i * k) * before^(c * i + j) * x[i]`,
/// - in the second half `after^(c * k + j) * sum over i of omega^(c * i * k) * x[i]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Half {
    /// log2 of the elements of the whole transform.
    pub log_n: u32,
    /// A primitive `2^log_n`-th root of unity.
    pub omega: Fr,
    /// Goes to the power of the input's index.
    pub before: Fr,
    /// Goes to the power of the output's index.
    pub after: Fr,
    /// Multiplies everything.
    pub scale: Fr,
    /// Whether it is the second one.
    pub is_second: bool,
}

/// A transform as a matrix of `2^log_rows` by `2^log_columns` elements, row after row, of which an
/// accelerator has `2^log_chunk` elements at one time: whole columns, then whole rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Matrix {
    /// log2 of the number of rows, the length of a column.
    pub log_rows: u32,
    /// log2 of the number of columns, the length of a row.
    pub log_columns: u32,
    /// log2 of a chunk's elements; no less than either of the others, no more than both together.
    pub log_chunk: u32,
}

/// Bytes of the shortest line of a transform in two steps that is written.
pub(crate) const LINE_BYTES_MIN: u64 = 4096;

impl Matrix {
    /// Elements of the tile that lines pass through, where so many bytes of the budget are left.
    pub(crate) fn tile_elements(&self, available_bytes: u64) -> u64 {
        let power = |log: u32| 1u64.checked_shl(log).unwrap_or(u64::MAX);
        let bytes = SCALAR_BYTES as u64;
        // Lines of the output are whole frames, or there are whole rows of it.
        let line = (LINE_BYTES_MIN / bytes).min(power(self.log_rows));
        let enough = (available_bytes / (3 * bytes)).checked_ilog2();
        power(self.log_chunk)
            .max(line.saturating_mul(power(self.log_columns)))
            .max(enough.map_or(0, power))
            .min(power(self.log_rows.saturating_add(self.log_columns)))
    }

    /// Bytes of that tile: what [`InSteps::ends`] lease first, and most of what they lease.
    pub fn tile_bytes(&self, available_bytes: u64) -> u64 {
        self.tile_elements(available_bytes)
            .saturating_mul(SCALAR_BYTES as u64)
    }
}

/// A transform's ends in two steps, the second of which starts when the first is done. A transform is written
/// in one way: whole, or in steps.
pub trait InSteps {
    /// Leases what both steps need, and gives their ends. Asked again it begins anew: what was written is
    /// void.
    ///
    /// # Errors
    /// For a matrix that is not the transform's; of the disk or the budget.
    fn ends(&mut self, matrix: Matrix) -> Result<StepEnds<'_>>;

    /// Seconds in which the disk moves what the processor's own transform would move.
    fn disk_seconds(&self) -> f64 {
        0.0
    }
}

/// Where lines of elements come from and go to. None of them is read or written twice, and none begins anew.
pub struct StepEnds<'a> {
    /// The input, in the order of chunks of columns: of each row in turn as many elements as a chunk has
    /// columns.
    pub input: Box<dyn ReadElements + 'a>,
    /// What is between the steps: written in the order in which the input is read; then read in natural
    /// order, whole rows of a chunk at a time.
    pub between: Box<dyn ReadWriteElements + 'a>,
    /// The output, a matrix of `2^log_columns` by `2^log_rows`: of each of its rows in turn as many elements
    /// as a chunk has rows.
    pub output: Box<dyn WriteElements + 'a>,
}

/// Elements that are written, and then read.
pub trait ReadWriteElements: ReadElements + WriteElements {}

impl<T: ReadElements + WriteElements> ReadWriteElements for T {}
