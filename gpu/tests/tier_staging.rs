//! Page-locked memory of the engine's second tier under the fake driver: slots that are kept between jobs, what lands in them straight
//! from disk, and what is in them before the device is taken.
#![allow(unsafe_code, clippy::unwrap_used)]

mod tier_sessions;
mod tier_support;

use std::sync::Arc;

use spillproof::budget::ByteSize;
use spillproof_fake_driver::FakeDriver;
use spillproof_gpu::tier::{GpuTier, Offload, Staging};
use spillproof_gpu::trace::Detail;
use spillproof_gpu::{Gpu, Pinned};
use tier_sessions::{Job, all_is_given_back, name_the_image, session};
use tier_support::with_kernels;

fn tier(vram: ByteSize, staging: Staging) -> Arc<GpuTier> {
    let gpu = Gpu::open(0, Detail::Counts).unwrap();
    Arc::new(GpuTier::over(gpu, vram, Offload::Always, staging))
}

fn locked(driver: &FakeDriver) -> u64 {
    driver.calls(Some("cuMemHostAlloc"))
}

#[test]
fn slots_are_kept_from_job_to_job() {
    with_kernels(
        module_path!(),
        "slots_are_kept_from_job_to_job",
        |driver, image| {
            let _file = name_the_image(image);
            for (vram, memory_bytes) in [
                (ByteSize::Auto, 8 << 20),
                (ByteSize::Bytes(256 << 10), 1 << 20),
                (ByteSize::Auto, 700 << 10),
            ] {
                let what = format!("{vram:?} {memory_bytes}");
                driver.reset(1, 64 << 20);
                let staging = Staging::default();
                let pinned = staging.pinned.clone();
                let tier = tier(vram, staging);
                let session = session(Some(&tier), memory_bytes);
                let budget = session.budget().clone();
                let job = Job::new(&session, 512);
                let held = budget.held_bytes();
                let mut counts = Vec::new();
                for _ in 0..4 {
                    job.check_sums(&session, &what);
                    job.check_transforms(&session, &what);
                    counts.push(locked(driver));
                    // The ledger counts what is kept, and who needs it has it.
                    assert_eq!(budget.held_bytes(), held, "{what}");
                    assert_eq!(budget.spare_bytes(), pinned.ledger().held_bytes(), "{what}");
                    assert!(budget.spare_bytes() > 0, "{what}");
                    assert_eq!(budget.available_bytes(), memory_bytes - held, "{what}");
                }
                assert!(counts[0] >= 5, "{what}: {counts:?}");
                assert_eq!(
                    counts[3], counts[0],
                    "{what}: locked once, however many jobs: {counts:?}"
                );
                assert_eq!(tier.report().by_the_processor(), 0, "{what}: {}", tier.report());
                // Somebody needs all there is, and gets it; afterwards slots are made anew.
                let all = budget.lease(budget.available_bytes(), "somebody else").unwrap();
                assert_eq!(
                    (budget.spare_bytes(), pinned.ledger().held_bytes()),
                    (0, 0),
                    "{what}"
                );
                assert_eq!(driver.live().pinned_memory, 0, "{what}");
                drop(all);
                job.check_sums(&session, &what);
                assert!(locked(driver) > counts[3], "{what}");
                assert_eq!(tier.report().by_the_processor(), 0, "{what}: {}", tier.report());
                drop(job);
                all_is_given_back(session, tier, driver, &what);
                assert_eq!(
                    (budget.spare_bytes(), pinned.ledger().held_bytes()),
                    (0, 0),
                    "{what}"
                );
            }
        },
    );
}

/// The tier's own budget of page-locked memory has room for the slots of one job: those of another kind of job go.
#[test]
fn a_small_pinned_budget_is_kept_to() {
    with_kernels(
        module_path!(),
        "a_small_pinned_budget_is_kept_to",
        |driver, image| {
            let _file = name_the_image(image);
            let what = "a small pinned budget";
            for (pinned_bytes, done) in [(1 << 20, 20), (192 << 10, 20), (20 << 10, 20), (4 << 10, 0)] {
                driver.reset(1, 64 << 20);
                let pinned = Pinned::new(pinned_bytes);
                let staging = Staging {
                    pinned: pinned.clone(),
                    ..Staging::default()
                };
                let tier = tier(ByteSize::Auto, staging);
                let session = session(Some(&tier), 8 << 20);
                let job = Job::new(&session, 512);
                for _ in 0..2 {
                    job.check_sums(&session, what);
                    job.check_transforms(&session, what);
                }
                assert!(pinned.ledger().peak_bytes() <= pinned_bytes);
                let report = tier.report();
                assert_eq!(
                    report.sums() + report.transforms() + report.by_the_processor(),
                    20
                );
                if done == 0 {
                    assert!(report.by_the_processor() > 0, "{report}");
                    assert!(report.to_string().contains("a pinned slot"), "{report}");
                } else {
                    assert_eq!(report.by_the_processor(), 0, "{pinned_bytes}: {report}");
                }
                drop(job);
                all_is_given_back(session, tier, driver, what);
            }
        },
    );
}

/// A tier that moves to another session leaves nothing of it in the ledger of the first.
#[test]
fn another_session_gets_slots_of_its_own() {
    with_kernels(
        module_path!(),
        "another_session_gets_slots_of_its_own",
        |driver, image| {
            let _file = name_the_image(image);
            driver.reset(1, 64 << 20);
            let tier = tier(ByteSize::Auto, Staging::default());
            let sessions = [session(Some(&tier), 4 << 20), session(Some(&tier), 4 << 20)];
            for (i, own) in [0, 1, 0].into_iter().map(|i| (i, &sessions[i])) {
                let job = Job::new(own, 64);
                job.check_sums(own, "another session");
                assert!(own.budget().spare_bytes() > 0);
                assert_eq!(sessions[1 - i].budget().spare_bytes(), 0);
            }
            let [one, other] = sessions;
            drop(one);
            all_is_given_back(other, tier, driver, "another session");
        },
    );
}
