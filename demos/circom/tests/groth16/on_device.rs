//! Proofs with one key, one after the other, on a device under the fake driver: the same as another library's, for the same
//! random values.

use std::sync::Arc;

use ark_bn254::{Bn254, Fr};
use ark_ff::Field;
use spillproof_engine::Session;
use spillproof_engine::accelerator::Accelerator;
use spillproof_engine::budget::ByteSize;
use spillproof_engine::column::Placement;
use spillproof_fake_driver::{Code, FakeDriver, under_with_kernels};
use spillproof_gpu::Choice;
use spillproof_gpu::accelerator::{GpuAccelerator, Offload, Request};
use spillproof_gpu::trace::SpanKind;
use spillproof_groth16::{ProvingKey, prove_in};

use crate::common::column_in;
use crate::proofs::{blinding, key_on_disk};
use crate::r1cs::{Circuit, Key, Values, text};

/// A circuit with several witnesses, and its proofs by another library.
struct Batch {
    circuit: Circuit<Fr>,
    made: Key<Bn254>,
    witnesses: Vec<Vec<Fr>>,
    expected: Vec<[Vec<u8>; 3]>,
}

/// A key in a session with a device.
struct Opened {
    accelerator: Arc<GpuAccelerator>,
    session: Arc<Session>,
    key: ProvingKey<Bn254>,
    _dir: tempfile::TempDir,
}

impl Batch {
    fn new(constraints: usize, count: usize) -> Self {
        let seed = 7;
        let mut circuit = Circuit::<Fr>::random(seed, constraints, 2, Values::Bits);
        let made = Key::<Bn254>::new(&circuit, seed);
        let (mut witnesses, mut expected) = (Vec::new(), Vec::new());
        for at in 0..count {
            // Each signal is its own square: other bits satisfy, too.
            for signal in circuit.witness.iter_mut().skip(1).step_by(at + 2) {
                *signal = Fr::ONE - *signal;
            }
            expected.push(made.prove(&circuit, blinding(at as u64)));
            witnesses.push(circuit.witness.clone());
        }
        Self {
            circuit,
            made,
            witnesses,
            expected,
        }
    }

    fn open(&self, vram: ByteSize) -> Opened {
        let request = Request {
            choice: Choice::Device(0),
            vram,
            offload: Offload::Always,
            ..Request::default()
        };
        let accelerator = GpuAccelerator::open(&request).unwrap().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let session = Session::builder()
            .memory(ByteSize::Bytes(8 << 20))
            .dir(dir.path())
            .threads(2)
            .accelerator(Arc::clone(&accelerator) as Arc<dyn Accelerator>)
            .build();
        let session = Arc::new(session.unwrap());
        let key = key_on_disk(session.workspace(), &self.circuit, &self.made);
        Opened {
            accelerator,
            session,
            key,
            _dir: dir,
        }
    }

    /// Proves with a witness, and compares.
    fn prove(&self, opened: &Opened, at: usize, what: &str) {
        let workspace = opened.session.workspace();
        let witness = column_in(workspace, &self.witnesses[at], Placement::Disk);
        let proof = prove_in(&opened.session, &opened.key, &witness, blinding(at as u64));
        let proof = proof.unwrap_or_else(|error| panic!("{what}, proof {at}: {error}"));
        assert!(text(&proof) == self.expected[at], "{what}, proof {at}");
    }
}

/// Bytes that crossed to the device, and back.
fn crossed(opened: &Opened) -> [u64; 2] {
    let trace = opened.accelerator.gpus()[0].trace();
    [SpanKind::ToDevicePinned, SpanKind::FromDevicePinned].map(|kind| trace.total(kind).bytes)
}

#[test]
fn the_points_of_a_key_cross_once_for_all_proofs() {
    const TEST: &str = "the_points_of_a_key_cross_once_for_all_proofs";
    under_with_kernels(module_path!(), TEST, |driver| {
        let batch = Batch::new(500, 4);
        let (signals, rows) = (
            batch.circuit.witness.len() as u64,
            1 << batch.circuit.log_domain(),
        );
        let points_bytes = signals * (3 * 64 + 128) + rows * 64;
        for (vram, stays) in [(ByteSize::Auto, true), (ByteSize::Bytes(300 << 10), false)] {
            driver.reset(1, 64 << 20);
            let opened = batch.open(vram);
            let (mut bytes, mut back) = (Vec::new(), Vec::new());
            for at in 0..4 {
                let before = crossed(&opened);
                batch.prove(&opened, at, &format!("{vram:?}"));
                let after = crossed(&opened);
                bytes.push(after[0] - before[0]);
                back.push(after[1] - before[1]);
            }
            let report = opened.accelerator.report();
            let jobs = (report.sums(), report.transforms(), report.constraints());
            assert_eq!(jobs, (20, 0, 4), "{vram:?}: {report}");
            assert_eq!(report.by_the_processor(), 0, "{report}");
            // Of the rows only the quotient comes back.
            assert_eq!(back, [rows * 32; 4], "{vram:?}");
            if stays {
                let section = |elements: u64| (32 * elements).next_multiple_of(1 << 14);
                let constraints = &opened.key.constraints;
                // The witness is there when the constraints come.
                let system_bytes = section(constraints.values().len()) + 16 * constraints.len();
                assert_eq!(bytes[1], 32 * signals + system_bytes + 32 * rows);
                assert_eq!(bytes[1..], [bytes[0] - points_bytes; 3], "{bytes:?}");
            } else {
                assert!(bytes[3] > points_bytes, "{bytes:?}");
            }
        }
    });
}

/// A device without room for the rows of the constraints makes single transforms, of columns that cross.
#[test]
fn without_room_for_all_rows_transforms_are_made_one_by_one() {
    const TEST: &str = "without_room_for_all_rows_transforms_are_made_one_by_one";
    under_with_kernels(module_path!(), TEST, |driver| {
        let batch = Batch::new(3000, 1);
        driver.reset(1, 64 << 20);
        let opened = batch.open(ByteSize::Bytes(400 << 10));
        batch.prove(&opened, 0, TEST);
        let report = opened.accelerator.report();
        let jobs = (report.sums(), report.transforms(), report.constraints());
        assert_eq!(jobs, (5, 6, 0), "{report}");
        assert_eq!(report.by_the_processor(), 1, "{report}");
        assert!(
            report.to_string().contains("the constraints of 2^12 rows"),
            "{report}"
        );
        assert_eq!(crossed(&opened)[1], 6 * (32 << 12), "{report}");
    });
}

/// Proves all witnesses with a failure that `inject` sets up before the third; returns the jobs of the device.
fn with_a_failure(
    driver: &FakeDriver,
    batch: &Batch,
    what: &str,
    inject: impl FnOnce(&FakeDriver),
) -> [u64; 2] {
    driver.reset(1, 64 << 20);
    let opened = batch.open(ByteSize::Auto);
    let jobs = || {
        let report = opened.accelerator.report();
        report.sums() + report.transforms() + report.constraints()
    };
    batch.prove(&opened, 0, what);
    batch.prove(&opened, 1, what);
    assert_eq!(jobs(), 12, "{what}");
    inject(driver);
    batch.prove(&opened, 2, what);
    let third = jobs() - 12;
    batch.prove(&opened, 3, what);
    assert!(driver.failures() > 0, "{what}: nothing failed");
    [third, jobs() - 12 - third]
}

#[test]
fn a_device_that_is_lost_between_proofs_leaves_the_rest_to_the_processor() {
    const TEST: &str = "a_device_that_is_lost_between_proofs_leaves_the_rest_to_the_processor";
    under_with_kernels(module_path!(), TEST, |driver| {
        let batch = Batch::new(100, 4);
        for nth in [1, 40, 150, 300] {
            let lost = |driver: &FakeDriver| driver.fail(None, nth, Code::LaunchFailed, true);
            let [third, fourth] = with_a_failure(driver, &batch, &format!("lost at call {nth}"), lost);
            assert!(third < 6 && fourth == 0, "{nth}: {third} and {fourth} jobs");
            // One that only fails goes on.
            let once = |driver: &FakeDriver| driver.fail(None, nth, Code::OutOfMemory, false);
            let [_, fourth] = with_a_failure(driver, &batch, &format!("call {nth} fails"), once);
            assert_eq!(fourth, 6, "{nth}");
        }
    });
}

/// Sums that are missing, though the device says that they are made, and then no job for a device that is not trusted.
#[test]
fn a_wrong_sum_is_found_and_the_device_makes_no_more() {
    const TEST: &str = "a_wrong_sum_is_found_and_the_device_makes_no_more";
    under_with_kernels(module_path!(), TEST, |driver| {
        let batch = Batch::new(100, 4);
        // Each chunk has a launch for buckets, then one for ones, of each sum: all that such a witness has. H comes last.
        for (kernel, nth) in [
            ("spk_msm_accumulate_bn254", 2),
            ("spk_msm_accumulate_bn254", 10),
            ("spk_msm_accumulate_bn254_g2", 2),
            ("spk_ntt_pass_bn254_fr", 2),
            ("spk_sparse_runs_bn254_fr", 1),
            ("spk_mul_bn254_fr", 1),
        ] {
            let wrong = |driver: &FakeDriver| driver.fail(Some(kernel), nth, Code::Lie, false);
            let jobs = with_a_failure(driver, &batch, kernel, wrong);
            assert_eq!(jobs, [6, 0], "{kernel}");
        }
    });
}
