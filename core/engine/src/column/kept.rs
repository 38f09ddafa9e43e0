//! Columns that outlive the process under a key of the caller's: the frames of scratch columns of equal
//! length, sealed as there ([`super::seal`]), in one file with nothing before, between or behind them. Who
//! has the key can open them; their number and length have to be known.
//!
//! Memory: a tile, and the buffers of a reader and a writer ([`Column::sequential_chunk`] each), while a
//! column is copied.

use std::sync::Arc;

use super::draft::{Draft, Writer, digests_bytes, writer_bytes};
use super::frames::{Digests, Frames};
use super::seal::Seal;
use super::tag::TagPlaces;
use super::{Column, Element, Workspace, scratch_frame_bytes};
use crate::Result;
use crate::budget::SecretKey;
use crate::error::{Error, Invalid};
use crate::storage::File;
use spillproof_format::FrameKey;

/// Writes a copy of a column as the `index`-th one of a new file, sealed under `key`, which belongs to that
/// file alone. It is not synced.
pub(crate) fn keep<E: Element>(
    column: &Column<E>,
    file: &File,
    key: &Arc<SecretKey>,
    index: u64,
) -> Result<()> {
    let workspace = column.workspace();
    workspace.run(|| {
        let frames = Arc::new(frames_in::<E>(workspace, file, key, index, column.len())?);
        let mut writer = Writer::new(Draft::over(workspace, frames, 0, column.len()));
        writer.push_column(column)?;
        writer.finish()?;
        Ok(())
    })
}

/// The dry run of [`keep`].
pub(crate) fn rehearse_keep<E: Element>(column: &Column<E>) -> Result<()> {
    let (workspace, chunk) = (column.workspace(), column.sequential_chunk());
    let (bytes, frame_bytes) = (column.len() * E::BYTES as u64, scratch_frame_bytes::<E>() as u64);
    let chunk_bytes = chunk * E::BYTES as u64;
    let _tile = workspace.hold(chunk_bytes, "column being copied")?;
    let _reader = workspace.hold(column.reader_bytes(chunk, 2), "column reader")?;
    let _writer = workspace.hold(writer_bytes(bytes, chunk_bytes, frame_bytes), "column writer")?;
    let digests_bytes = digests_bytes::<E>(bytes, frame_bytes);
    let _digests = (digests_bytes > 0)
        .then(|| workspace.hold(digests_bytes, "frame digests"))
        .transpose()?;
    column.count_read();
    if let Some(dry_run) = workspace.dry_run() {
        dry_run.moved(0, bytes.next_multiple_of(frame_bytes));
    }
    Ok(())
}

/// The `count` columns of `len` elements in a file that [`keep`] has written. Nothing is read before it is
/// asked for.
///
/// # Errors
/// [`Error::Damaged`] for a file of another length.
pub(crate) fn kept<E: Element>(
    workspace: &Workspace,
    file: &File,
    key: &Arc<SecretKey>,
    (count, len): (u64, u64),
) -> Result<Vec<Column<E>>> {
    let (frames, frame_bytes) = shape::<E>(len);
    let (found_bytes, bytes) = (file.len_bytes(), count * frames * frame_bytes as u64);
    if found_bytes != bytes {
        let frame = found_bytes.min(bytes) / frame_bytes as u64;
        return Err(Error::Damaged {
            file: file.name().to_owned(),
            frame,
            offset: frame * frame_bytes as u64,
        });
    }
    let column = |index| {
        Ok(Column {
            frames: Arc::new(frames_in::<E>(workspace, file, key, index, len)?),
            first_frame: 0,
            len,
            workspace: workspace.clone(),
            element: std::marker::PhantomData,
        })
    };
    (0..count).map(column).collect()
}

/// The frames of a column, and their bytes.
fn shape<E: Element>(len: u64) -> (u64, usize) {
    let frame_bytes = scratch_frame_bytes::<E>();
    (len.div_ceil((frame_bytes / E::BYTES) as u64), frame_bytes)
}

fn frames_in<E: Element>(
    workspace: &Workspace,
    file: &File,
    key: &Arc<SecretKey>,
    index: u64,
    len: u64,
) -> Result<Frames> {
    let (frames, frame_bytes) = shape::<E>(len);
    let places = TagPlaces::of::<E>(frame_bytes as u64).and_then(|places| places.beside_tail(frame_bytes));
    if places.is_none() {
        // Their tags would be in memory only.
        return Err(Invalid::NoSpareBits {
            column: file.name().to_owned(),
        }
        .into());
    }
    let seal = Seal::new(key, index, frames, places, &workspace.budget)?;
    Ok(Frames::in_file(
        workspace,
        (file.clone(), index * frames * frame_bytes as u64),
        (frames, frame_bytes),
        FrameKey::new([0; 16], 0),
        Digests::Seal(seal),
    ))
}
