//! Sessions with a folder of their own.

use std::sync::Arc;

use spillproof_engine::Session;
use spillproof_engine::budget::ByteSize;

/// A session, and its folder, which goes when it is dropped.
pub fn session(memory_bytes: u64, threads: usize) -> (tempfile::TempDir, Arc<Session>) {
    let dir = tempfile::tempdir().expect("a folder");
    let session = Session::builder()
        .memory(ByteSize::Bytes(memory_bytes))
        .dir(dir.path())
        .threads(threads)
        .build();
    (dir, Arc::new(session.expect("a session")))
}
