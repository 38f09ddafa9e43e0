//! The probe returns on any machine.

use crate::support::skipped;

#[test]
fn devices_are_described_or_their_absence_explained() {
    match spillproof_gpu::probe() {
        Ok(devices) => {
            assert!(!devices.is_empty());
            for device in devices {
                println!("{device}");
                assert!(device.memory_bytes > 0 && device.multiprocessors > 0);
                assert!(!device.name.is_empty());
            }
        }
        Err(reason) => {
            assert!(reason.to_string().starts_with("no GPU: "));
            skipped(&reason);
        }
    }
}

#[test]
fn asking_twice_gives_the_same_answer() {
    assert_eq!(spillproof_gpu::probe(), spillproof_gpu::probe());
}
