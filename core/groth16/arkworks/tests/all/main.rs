//! The proofs of each version of ark-groth16, byte for byte.

#![allow(clippy::expect_used, clippy::unwrap_used)]
// What is another version's to two of three modules is the third one's own.
#![allow(unused_qualifications)]
// The same tests over the types of each version.
#![allow(clippy::duplicate_mod, clippy::single_component_path_imports)]

mod v0_4;
mod v0_5;
mod v0_6;

use std::sync::Arc;

use spillproof_engine::Session;
use spillproof_engine::budget::ByteSize;
use spillproof_testing::r1cs;

const MIB: u64 = 1 << 20;

/// A session with a folder of its own.
fn session(memory_bytes: u64, threads: usize) -> (tempfile::TempDir, Arc<Session>) {
    let dir = tempfile::tempdir().expect("a folder");
    let session = Session::builder()
        .memory(ByteSize::Bytes(memory_bytes))
        .dir(dir.path())
        .threads(threads)
        .build();
    (dir, Arc::new(session.expect("a session")))
}
