//! Columns that outlive the process under a key of the caller's: the frames of a scratch column, sealed as there ([`super::seal`]), in a file of
//! their own with nothing before or behind them. Who has the key and the file's number can open it; its length has to be known.
//!
//! Memory: a tile, and the buffers of a reader and a writer ([`Column::sequential_chunk`] each), while a column is copied.

use std::sync::Arc;

use super::draft::{Draft, Writer, writer_bytes};
use super::frames::{Digests, Frames};
use super::seal::Seal;
use super::tag::TagPlaces;
use super::{Column, Element, Workspace, scratch_frame_bytes};
use crate::Result;
use crate::budget::SecretKey;
use crate::error::{Error, Invalid};
use crate::storage::File;
use spillproof_format::FrameKey;

/// Writes a copy of a column to a new file, sealed under `key` and the number `id`, which no other file of that key may have, and syncs it.
pub(crate) fn keep<E: Element>(column: &Column<E>, file: File, key: &Arc<SecretKey>, id: u64) -> Result<()> {
    let workspace = column.workspace();
    workspace.run(|| {
        let frames = Arc::new(frames_in::<E>(workspace, file.clone(), key, id, column.len())?);
        let mut writer = Writer::new(Draft::over(workspace, frames, 0, column.len()));
        writer.push_column(column)?;
        writer.finish()?;
        file.sync()
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
    column.count_read();
    if let Some(dry_run) = workspace.dry_run() {
        dry_run.moved(0, bytes.next_multiple_of(frame_bytes));
    }
    Ok(())
}

/// The column of `len` elements in a file that [`keep`] has written. Nothing is read before it is asked for.
///
/// # Errors
/// [`Error::Damaged`] for a file of another length.
pub(crate) fn kept<E: Element>(
    workspace: &Workspace,
    file: File,
    key: &Arc<SecretKey>,
    id: u64,
    len: u64,
) -> Result<Column<E>> {
    let (found_bytes, name) = (file.len_bytes(), file.name().to_owned());
    let frames = frames_in::<E>(workspace, file, key, id, len)?;
    let frame_bytes = frames.frame_bytes() as u64;
    let bytes = (len * E::BYTES as u64).next_multiple_of(frame_bytes);
    if found_bytes != bytes {
        let frame = found_bytes.min(bytes) / frame_bytes;
        return Err(Error::Damaged {
            file: name,
            frame,
            offset: frame * frame_bytes,
        });
    }
    Ok(Column {
        frames: Arc::new(frames),
        first_frame: 0,
        len,
        workspace: workspace.clone(),
        element: std::marker::PhantomData,
    })
}

fn frames_in<E: Element>(
    workspace: &Workspace,
    file: File,
    key: &Arc<SecretKey>,
    id: u64,
    len: u64,
) -> Result<Frames> {
    let frame_bytes = scratch_frame_bytes::<E>();
    let frames = len.div_ceil((frame_bytes / E::BYTES) as u64);
    let places = TagPlaces::of::<E>(frame_bytes as u64).and_then(|places| places.beside_tail(frame_bytes));
    if places.is_none() {
        // Their tags would be in memory only.
        return Err(Invalid::NoSpareBits {
            column: file.name().to_owned(),
        }
        .into());
    }
    let seal = Seal::new(key, id, frames, places, &workspace.budget)?;
    Ok(Frames::in_file(
        workspace,
        (file, 0),
        (frames, frame_bytes),
        FrameKey::new([0; 16], 0),
        Digests::Seal(seal),
    ))
}
