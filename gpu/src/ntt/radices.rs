//! How a row is split into passes through shared memory.

/// log2 of the elements of a tile: 32 KiB of shared memory, which every device has by default.
pub(crate) const LOG_TILE: u32 = 10;

/// The radices of the passes of a row, as logarithms; one pass even for one element.
pub(crate) fn log_radices(log_n: u32, log_tile: u32) -> Vec<u32> {
    let passes = log_n.div_ceil(log_tile).max(1);
    (0..passes)
        .map(|pass| log_n / passes + u32::from(pass < log_n % passes))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_have_even_radices() {
        assert_eq!(log_radices(0, LOG_TILE), [0]);
        assert_eq!(log_radices(10, LOG_TILE), [10]);
        assert_eq!(log_radices(11, LOG_TILE), [6, 5]);
        assert_eq!(log_radices(28, LOG_TILE), [10, 9, 9]);
        assert_eq!(log_radices(12, 4), [4, 4, 4]);
    }
}
