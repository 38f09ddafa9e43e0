//! What the engine allocates outside its leases is small, and grows at most as the square root of n (tables
//! of twiddles, lists of a panel's rows).
//!
//! A test binary of its own: its allocator counts the whole process.

#![allow(clippy::expect_used, clippy::unwrap_used)]

use ark_bn254::Fr;
use spillproof_commit::{HALO2_ROOT_OF_UNITY, generate_scratch, kzg, omega};
use spillproof_engine::budget::{Budget, CountingAlloc};
use spillproof_engine::column::{Placement, Workspace, Writer};
use spillproof_engine::storage::Storage;
use spillproof_engine::stream::{self, Scalars, Transform};

#[global_allocator]
static HEAP: CountingAlloc = CountingAlloc;

/// The most that lived outside leases while everything that streams ran once over `2^k` elements.
fn outside_peak_bytes(k: u32) -> u64 {
    let dir = tempfile::tempdir().expect("temporary directory");
    let storage = Storage::builder().dir(dir.path()).build().expect("storage");
    // Small enough that neither size fits: both take the streamed ways.
    let workspace = Workspace::new(storage, Budget::new(3 << 20));
    let srs = generate_scratch::<ark_bn254::Bn254>(&workspace, k, Fr::from(77u64), |_| ()).expect("SRS");

    CountingAlloc::reset_peaks();
    let before = CountingAlloc::outside_leases_peak_bytes();
    let mut writer = Writer::scratch(&workspace, "values", 1 << k, Placement::Disk).expect("room");
    for i in 0..1u64 << (k - 8) {
        writer.push(&[Fr::from(i); 256]).expect("written");
    }
    let values = writer.finish().expect("written");
    let coefficients = stream::ntt(
        &values,
        &Transform::inverse(k, omega(HALO2_ROOT_OF_UNITY, k).expect("k is small")).expect("a root"),
        Placement::Disk,
    )
    .expect("NTT");
    let by_values = kzg::commit_lagrange(&srs, &[Scalars::Column(&values)]).expect("committed");
    let by_coefficients = kzg::commit(&srs, &[Scalars::Column(&coefficients)]).expect("committed");
    assert_eq!(by_values, by_coefficients);
    let opening = kzg::open(&srs, &coefficients, Fr::from(5u64)).expect("opened");
    assert_eq!(
        stream::evaluate(&coefficients, Fr::from(5u64)).expect("value"),
        opening.value
    );
    CountingAlloc::outside_leases_peak_bytes() - before
}

#[test]
fn what_is_outside_leases_stays_small() {
    // The pool's threads and other things that are made once.
    outside_peak_bytes(14);
    let (small, large) = (outside_peak_bytes(14), outside_peak_bytes(18));
    println!("outside leases: {small} bytes at 2^14, {large} at 2^18");
    // Each thread keeps a strip for transforms in lanes: 320 KiB.
    let kept = rayon::current_num_threads() as u64 * (384 << 10);
    assert!(large < (1 << 20) + kept, "{large} bytes outside leases at 2^18");
    // Sixteen times the elements: four times the tables, strips that a thread had no use for before, and some
    // noise.
    assert!(
        large < 4 * small + kept + (128 << 10),
        "{small} bytes at 2^14 became {large} at 2^18"
    );
}
