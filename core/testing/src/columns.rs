//! What tests over columns share: a folder with a ledger, columns and values in it, one thread or two.

use std::path::Path;
use std::time::{Duration, Instant};

use ark_bn254::Fr;
use ark_ff::UniformRand;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use spillproof_commit as commit;
use spillproof_commit::HALO2_ROOT_OF_UNITY;
use spillproof_engine::budget::Budget;
use spillproof_engine::column::{Column, Element, Placement, Scratch, Workspace, Writer};
use spillproof_engine::storage::Storage;

use crate::Mounted;
pub use crate::skipped;

/// halo2's root of unity of order `2^log_n`.
pub fn omega(log_n: u32) -> Fr {
    commit::omega(HALO2_ROOT_OF_UNITY, log_n).expect("order 2^28 at most")
}

/// A folder and a ledger; when it goes, nothing may be held.
pub struct Place {
    pub workspace: Workspace,
    _dir: tempfile::TempDir,
}

pub fn place(budget_bytes: u64) -> Place {
    let dir = tempfile::tempdir().expect("temporary directory");
    let storage = Storage::builder().dir(dir.path()).build().expect("storage");
    let workspace = Workspace::new(storage, Budget::new(budget_bytes)).with_scratch(Scratch::Sealed);
    Place {
        workspace: workspace.expect("a key"),
        _dir: dir,
    }
}

impl Place {
    /// A column on disk.
    pub fn column<E: Element>(&self, values: &[E]) -> Column<E> {
        column_in(&self.workspace, values, Placement::Disk)
    }

    pub fn assert_nothing_held(&self) {
        assert_nothing_held(&self.workspace.budget);
    }
}

/// Waits until the budget has all bytes back, and asserts it: a read that nobody waits for ends later than its reader.
pub fn assert_nothing_held(budget: &Budget) {
    let patience = Instant::now();
    while budget.held_bytes() > 0 && patience.elapsed() < Duration::from_secs(10) {
        std::thread::yield_now();
    }
    assert_eq!(budget.held_bytes(), 0, "{:?}", budget.report());
}

impl Drop for Place {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.assert_nothing_held();
        }
    }
}

pub fn column_in<E: Element>(workspace: &Workspace, values: &[E], placement: Placement) -> Column<E> {
    let mut writer = Writer::scratch(workspace, "input", values.len() as u64, placement).expect("a column");
    writer.push(values).expect("room");
    writer.finish().expect("written")
}

/// A column on disk for each vector.
pub fn columns_on_disk<E: Element>(workspace: &Workspace, values: &[Vec<E>]) -> Vec<Column<E>> {
    let on_disk = |values: &Vec<E>| column_in(workspace, values, Placement::Disk);
    values.iter().map(on_disk).collect()
}

pub fn scalars(len: usize, seed: u64) -> Vec<Fr> {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    (0..len).map(|_| Fr::rand(&mut rng)).collect()
}

/// A file system of 1 MiB at `dir`; `None`, and a line that says so, where it cannot be mounted. Unmounted
/// when it goes.
pub fn small_tmpfs(dir: &Path) -> Option<Mounted<'_>> {
    let mounted = Mounted::new("-t tmpfs -o size=1m none", dir);
    if mounted.is_none() {
        skipped("a small tmpfs cannot be mounted here (needs root)");
    }
    mounted
}

/// The same bytes in another library's type.
pub fn converted<A: Element, B: Element>(value: &A) -> B {
    let mut bytes = vec![0; A::BYTES];
    value.encode(&mut bytes);
    B::decode(&bytes)
}

/// Runs `work` in pools of one and of two threads.
pub fn on_one_and_two_threads(work: impl Fn() + Sync) {
    for threads in [1, 2] {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .expect("threads");
        pool.install(&work);
    }
}
