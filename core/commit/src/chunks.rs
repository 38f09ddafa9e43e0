//! How many points are passed over at a time, and their frames.

use spillproof_engine::column::{Element, Workspace};

/// Points of G1 in a chunk, at most: 1 MiB of them.
const CHUNK_POINTS_MAX: u64 = 16 * 1024;

/// Points in a chunk that leaves most of the budget to others, in whole frames of `frame_points`.
pub(super) fn chunk_points(workspace: &Workspace, frame_points: u64) -> u64 {
    let affordable = workspace.budget.available_bytes() / 16 / 64;
    let points = affordable.min(CHUNK_POINTS_MAX);
    (points / frame_points).max(1) * frame_points
}

/// Bytes of a frame of these points, in containers and in scratch.
pub const fn points_frame_bytes<T: Element>() -> usize {
    spillproof_format::frame_bytes_for(T::BYTES, super::SRS_FRAME_BYTES)
}
