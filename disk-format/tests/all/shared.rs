//! What the property tests have in common.

use proptest::prelude::ProptestConfig;
use proptest::test_runner::{RngSeed, TestRunner};

/// A runner whose seed is on the terminal when a case fails.
pub fn runner() -> TestRunner {
    let mut config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    if matches!(config.rng_seed, RngSeed::Random) {
        config.rng_seed = RngSeed::Fixed(rand::random());
    }
    if let RngSeed::Fixed(seed) = config.rng_seed {
        println!("PROPTEST_RNG_SEED={seed} PROPTEST_CASES={}", config.cases);
    }
    TestRunner::new(config)
}
