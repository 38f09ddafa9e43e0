//! Tests with random values say which.

use rand::SeedableRng;
use rand::rngs::StdRng;

/// The number in a variable of the environment.
pub fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// A generator, and its seed, which is printed: that of `SPILLPROOF_TEST_SEED`, or a random one.
pub fn seeded() -> (u64, StdRng) {
    let seed = variable("SPILLPROOF_TEST_SEED").unwrap_or_else(rand::random);
    println!("SPILLPROOF_TEST_SEED={seed}");
    (seed, StdRng::seed_from_u64(seed))
}
