//! Columns that are written and read in pieces: a polynomial, or bases of sums, that the caller never holds
//! whole.
//!
//! Memory, leased: while a column is filled, a writer's buffers (up to three mebibytes, less in a small
//! budget), and a tile of `PIECE` elements.

use std::sync::{Mutex, OnceLock, PoisonError};

use ark_bn254::{G1Affine, g1};
use spillproof_commit::{G1, SRS_FRAME_BYTES, Scalar};
use spillproof_engine::budget::LeasedVec;
use spillproof_engine::column::{Column, Draft, Element, Placement, Region, Workspace, Writer};
use spillproof_engine::error::Invalid;

use crate::bytes::{self, POINT_BYTES, SCALAR_BYTES, Scalars};
use crate::{Error, Result};

/// Elements that are converted at a time.
const PIECE: usize = 1 << 12;

/// A column of the caller's: it is filled in pieces, from its start, and used when it is full. Pieces that
/// several threads push come in the order in which they came.
pub struct CallerColumn<E> {
    len: u64,
    workspace: Workspace,
    /// None when it is full, and after an error.
    filling: Mutex<Option<Filling<E>>>,
    full: OnceLock<Column<E>>,
}

struct Filling<E> {
    writer: Writer<E>,
    written: u64,
}

impl<E> std::fmt::Debug for CallerColumn<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallerColumn")
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

impl<E: Element> From<Column<E>> for CallerColumn<E> {
    fn from(column: Column<E>) -> Self {
        Self {
            len: column.len(),
            workspace: column.workspace().clone(),
            filling: Mutex::new(None),
            full: OnceLock::from(column),
        }
    }
}

impl CallerColumn<Scalar> {
    /// For `count` scalars.
    ///
    /// # Errors
    /// The engine's.
    pub fn of_scalars(workspace: &Workspace, count: u64) -> Result<Self> {
        let draft = Draft::scratch(workspace, "scalars of the caller", count, Placement::Disk)?;
        Self::begin(workspace, draft)
    }

    /// Appends scalars.
    ///
    /// # Errors
    /// [`Error::Scalar`], [`Error::GivenUp`], the engine's: with the last, the column is given up.
    pub fn push(&self, scalars: &[u8]) -> Result<()> {
        self.push_checked(&Scalars::new("scalars", scalars)?)
    }

    /// Appends scalars that were looked at.
    pub(crate) fn push_checked(&self, scalars: &Scalars<'_>) -> Result<()> {
        self.fill(scalars.iter().len(), |writer| {
            let mut tile = self.tile(scalars.iter().len(), Scalar::default())?;
            for piece in scalars.pieces(PIECE) {
                let values = &mut tile[..piece.iter().len()];
                values
                    .iter_mut()
                    .zip(piece.iter())
                    .for_each(|(out, value)| *out = value);
                writer.push(values)?;
            }
            Ok(())
        })
    }
}

impl CallerColumn<G1> {
    /// For `count` points.
    ///
    /// # Errors
    /// The engine's.
    pub fn of_points(workspace: &Workspace, count: u64) -> Result<Self> {
        let (what, place) = ("points of the caller", Placement::Disk);
        let draft = Draft::scratch_with_frames(workspace, what, count, place, SRS_FRAME_BYTES)?;
        Self::begin(workspace, draft)
    }

    /// Appends points, each of which is checked.
    ///
    /// # Errors
    /// [`Error::Point`], [`Error::GivenUp`], the engine's: with these, the column is given up.
    pub fn push(&self, points: &[u8]) -> Result<()> {
        let points = bytes::elements::<POINT_BYTES>("points", points)?;
        self.fill(points.len(), |writer| {
            let mut tile = self.tile(points.len(), G1::INFINITY)?;
            for (piece, start) in points.chunks(PIECE).zip((0..).step_by(PIECE)) {
                let values = &mut tile[..piece.len()];
                for ((out, bytes), index) in values.iter_mut().zip(piece).zip(start..) {
                    let point: G1Affine = bytes::point(bytes).map_err(|fault| Error::Point {
                        what: "points",
                        index,
                        fault,
                    })?;
                    *out = G1::from_affine::<g1::Config>(&point);
                }
                writer.push(values)?;
            }
            Ok(())
        })
    }
}

impl<E: Element> CallerColumn<E> {
    fn begin(workspace: &Workspace, draft: Draft<E>) -> Result<Self> {
        let len = draft.len();
        let column = Self {
            len,
            workspace: workspace.clone(),
            filling: Mutex::new(Some(Filling {
                writer: Writer::new(draft),
                written: 0,
            })),
            full: OnceLock::new(),
        };
        if len == 0 {
            column.fill_now(0, |_| Ok(()))?;
        }
        Ok(column)
    }

    /// Number of elements, when it is full.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether it is for none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn tile(&self, len: usize, fill: E) -> Result<LeasedVec<E>> {
        let budget = &self.workspace.budget;
        Ok(budget.vec(PIECE.min(len), fill, "elements being copied")?)
    }

    /// Lets `write` append `count` elements.
    fn fill(&self, count: usize, write: impl FnOnce(&mut Writer<E>) -> Result<()>) -> Result<()> {
        match count {
            0 => Ok(()),
            _ => self.fill_now(count as u64, write),
        }
    }

    /// After an error the column has a gap: it is given up.
    fn fill_now(&self, count: u64, write: impl FnOnce(&mut Writer<E>) -> Result<()>) -> Result<()> {
        let mut place = self.filling.lock().unwrap_or_else(PoisonError::into_inner);
        let written = match place.as_ref() {
            Some(filling) => filling.written,
            None if self.full.get().is_some() => self.len,
            None => return Err(Error::GivenUp),
        };
        let room = self.len - written;
        Invalid::unless_at_most("elements for a column", count, room)
            .map_err(spillproof_engine::Error::from)?;
        let Some(mut filling) = place.take() else {
            return Ok(());
        };
        self.workspace.run_here(|| {
            Ok(write(&mut filling.writer).and_then(|()| {
                filling.written += count;
                if filling.written < self.len {
                    *place = Some(filling);
                } else {
                    let _ = self.full.set(filling.writer.finish()?);
                }
                Ok(())
            }))
        })?
    }

    /// The column, when it is full.
    ///
    /// # Errors
    /// [`Error::GivenUp`]; the engine's, if elements are missing.
    pub fn full(&self) -> Result<&Column<E>> {
        if let Some(column) = self.full.get() {
            return Ok(column);
        }
        let place = self.filling.lock().unwrap_or_else(PoisonError::into_inner);
        let filling = place.as_ref().ok_or(Error::GivenUp)?;
        let unwritten = Invalid::Unwritten {
            column: "a column".into(),
            written: filling.written,
            len: self.len,
        };
        Err(spillproof_engine::Error::from(unwritten).into())
    }
}

/// Reads scalars `start ..`, as many as `out` has room for.
///
/// # Errors
/// [`Error::Bytes`], the engine's.
pub fn read(column: &Column<Scalar>, start: u64, out: &mut [u8]) -> Result<()> {
    let count = (out.len() / SCALAR_BYTES) as u64;
    let out = bytes::room::<SCALAR_BYTES>("room for scalars", out, count)?;
    let end = start.saturating_add(count);
    if end > column.len() {
        let (what, len) = ("scalars of a column".into(), column.len());
        return Err(spillproof_engine::Error::from(Invalid::OutOfRange {
            what,
            start,
            end,
            len,
        })
        .into());
    }
    let chunk = column.sequential_chunk().min(count);
    if chunk == 0 {
        return Ok(());
    }
    let workspace = column.workspace();
    workspace.run_here(|| {
        let mut tile = workspace
            .budget
            .vec(chunk as usize, Scalar::default(), "scalars being read")?;
        let regions = (start..end)
            .step_by(chunk as usize)
            .map(move |start| Region::Span {
                start,
                len: chunk.min(end - start),
            });
        let mut reader = column.reader(regions, 2)?;
        for out in out.chunks_mut(chunk as usize) {
            reader.next_into(&mut tile)?;
            for (out, value) in out.iter_mut().zip(tile.iter()) {
                *out = bytes::of_scalar(value);
            }
        }
        Ok(())
    })?;
    Ok(())
}

/// Reads all scalars; `out` has room for exactly these.
///
/// # Errors
/// [`Error::Count`], [`Error::Bytes`], the engine's.
pub fn read_all(column: &Column<Scalar>, out: &mut [u8]) -> Result<()> {
    bytes::room::<SCALAR_BYTES>("room for scalars", out, column.len())?;
    read(column, 0, out)
}
