//! Bytes on disk and what they mean: containers, frames, digests, importers. No syscalls, no unsafe.

/// What is wrong with bytes that should have been a container or an importable file.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum FormatError {}
