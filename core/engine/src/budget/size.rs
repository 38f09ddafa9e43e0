//! Sizes as people write them: `512MiB`, `2G`, `64k`, `1.5GiB`, `4096`, `auto`.
//!
//! All suffixes are binary: `k`, `Ki`, `KiB`, `KB` are 1024 bytes, and so on up to `T`; case does not matter.

use std::fmt;
use std::str::FromStr;

use super::{beside, process};
use crate::error::{Invalid, Result};

/// What `auto` leaves to others: an eighth of what is there, at least [`AUTO_MARGIN_MIN_BYTES`].
const AUTO_MARGIN_SHARE: u64 = 8;
/// The least that `auto` leaves, where there is more than twice as much: code, stacks, heap, and the kernel's
/// own memory for the process.
const AUTO_MARGIN_MIN_BYTES: u64 = 64 << 20;
/// The part that `auto` leaves to the budget at least, however little there is: verifying takes little.
const AUTO_BUDGET_SHARE: u64 = 8;

/// A number of bytes, or `auto`.
///
/// ```
/// use spillproof_engine::budget::ByteSize;
///
/// assert_eq!("1.5GiB".parse::<ByteSize>()?, ByteSize::Bytes(3 << 29));
/// assert_eq!("64k".parse::<ByteSize>()?.to_string(), "64KiB");
/// assert_eq!("auto".parse::<ByteSize>()?, ByteSize::Auto);
/// assert!("twelve".parse::<ByteSize>().is_err());
/// # Ok::<(), spillproof_engine::budget::ParseSizeError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ByteSize {
    /// This many bytes.
    Bytes(u64),
    /// The smaller of the cgroup's limit and the available memory, minus a margin of an eighth (at least 64
    /// MiB, or, where there is little memory, what the process takes beside its buffers).
    Auto,
}

/// A text that is no size.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a size ({reason}): write bytes, a suffix as in 512MiB, 2G, 64k, 1.5GiB, or auto")]
pub struct ParseSizeError {
    /// What was given.
    pub text: String,
    /// What is wrong with it.
    pub reason: &'static str,
}

impl ByteSize {
    /// The number of bytes; `Auto` looks at the machine now.
    ///
    /// # Errors
    /// [`Invalid::UnknownMemory`] if `Auto` finds neither a cgroup limit nor the available memory,
    /// [`Invalid::LittleMemory`].
    pub fn resolve(self) -> Result<u64> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            Self::Auto => auto_bytes(
                process::cgroup_limit_bytes(),
                process::available_bytes(),
                beside::of_process(std::thread::available_parallelism().map_or(1, |cores| cores.get())),
            ),
        }
    }
}

/// `beside_bytes` are resident of the process beside its buffers.
fn auto_bytes(
    cgroup_limit_bytes: Option<u64>,
    available_bytes: Option<u64>,
    beside_bytes: u64,
) -> Result<u64> {
    let there_bytes = match (cgroup_limit_bytes, available_bytes) {
        (Some(limit), Some(available)) => limit.min(available),
        (Some(bytes), None) | (None, Some(bytes)) => bytes,
        (None, None) => {
            return Err(Invalid::UnknownMemory.into());
        }
    };
    let beside_bytes = beside_bytes + beside::margin_bytes(there_bytes);
    let least_bytes = match there_bytes >= 2 * AUTO_MARGIN_MIN_BYTES {
        true => AUTO_MARGIN_MIN_BYTES,
        false => beside_bytes.min(there_bytes - there_bytes / AUTO_BUDGET_SHARE),
    };
    let margin_bytes = (there_bytes / AUTO_MARGIN_SHARE).max(least_bytes);
    there_bytes
        .checked_sub(margin_bytes)
        .filter(|&bytes| bytes > 0)
        .ok_or_else(|| {
            Invalid::LittleMemory {
                available_bytes: there_bytes,
                margin_bytes,
            }
            .into()
        })
}

/// Reads a size; see [`ByteSize`].
///
/// # Errors
/// [`ParseSizeError`] if it is none, negative, not a whole number of bytes, or more than `u64` holds.
pub fn parse_size(text: &str) -> Result<ByteSize, ParseSizeError> {
    let error = |reason| ParseSizeError {
        text: text.to_owned(),
        reason,
    };
    let trimmed = text.trim();
    if trimmed.eq_ignore_ascii_case("auto") {
        return Ok(ByteSize::Auto);
    }
    let digits_end = trimmed
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(trimmed.len());
    let (number, suffix) = trimmed.split_at(digits_end);
    let shift = match suffix.trim_start().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "ki" | "kb" | "kib" => 10,
        "m" | "mi" | "mb" | "mib" => 20,
        "g" | "gi" | "gb" | "gib" => 30,
        "t" | "ti" | "tb" | "tib" => 40,
        _ => return Err(error("unknown suffix")),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || (number.contains('.') && fraction.is_empty()) || fraction.contains('.') {
        return Err(error("no number"));
    }
    // In decimal fixed point, exactly: number = numerator / 10^fraction digits.
    let too_large = || error("more than 2^64 bytes");
    let numerator: u128 = format!("{whole}{fraction}").parse().map_err(|_| too_large())?;
    let denominator = u32::try_from(fraction.len())
        .ok()
        .and_then(|digits| 10u128.checked_pow(digits))
        .ok_or_else(too_large)?;
    let scaled = numerator.checked_mul(1u128 << shift).ok_or_else(too_large)?;
    if !scaled.is_multiple_of(denominator) {
        return Err(error("not a whole number of bytes"));
    }
    u64::try_from(scaled / denominator)
        .map(ByteSize::Bytes)
        .map_err(|_| too_large())
}

/// Bytes with the largest binary suffix that keeps them exact with at most three decimals, else plain bytes:
/// `1536` is `1.5KiB`, `1025` is `1025B`. Reads back to the same number with [`parse_size`].
pub fn format_bytes(bytes: u64) -> String {
    for (shift, suffix) in [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")] {
        let unit = 1u128 << shift;
        let thousandths = u128::from(bytes) * 1000;
        if u128::from(bytes) >= unit && thousandths.is_multiple_of(unit) {
            let (whole, rest) = (thousandths / unit / 1000, thousandths / unit % 1000);
            let text = format!("{whole}.{rest:03}");
            return format!("{}{suffix}", text.trim_end_matches('0').trim_end_matches('.'));
        }
    }
    format!("{bytes}B")
}

/// A size, or text that may be one.
pub trait IntoByteSize {
    /// The size.
    ///
    /// # Errors
    /// [`ParseSizeError`] for text that is no size.
    fn into_byte_size(self) -> Result<ByteSize, ParseSizeError>;
}

impl IntoByteSize for ByteSize {
    fn into_byte_size(self) -> Result<ByteSize, ParseSizeError> {
        Ok(self)
    }
}

impl IntoByteSize for &str {
    fn into_byte_size(self) -> Result<ByteSize, ParseSizeError> {
        self.parse()
    }
}

impl FromStr for ByteSize {
    type Err = ParseSizeError;

    fn from_str(text: &str) -> Result<Self, ParseSizeError> {
        parse_size(text)
    }
}

impl From<u64> for ByteSize {
    fn from(bytes: u64) -> Self {
        Self::Bytes(bytes)
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => f.pad(&format_bytes(*bytes)),
            Self::Auto => f.pad("auto"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sizes_that_people_write() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("17b", 17),
            ("64k", 64 << 10),
            ("64 KiB", 64 << 10),
            ("512MiB", 512 << 20),
            (" 512mb ", 512 << 20),
            ("2G", 2 << 30),
            ("2Gi", 2 << 30),
            ("2GB", 2 << 30),
            ("1.5GiB", 3 << 29),
            ("0.5k", 512),
            ("1T", 1 << 40),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(parse_size(text), Ok(ByteSize::Bytes(bytes)), "{text}");
        }
        for text in [
            "",
            "k",
            ".5k",
            "1.",
            "1..5k",
            "-1",
            "1e9",
            "0.3b",
            "16777216T",
            "5 apples",
            "1,5G",
            "18446744073709551616",
        ] {
            let error = parse_size(text).unwrap_err();
            assert!(error.to_string().contains("512MiB"), "{error}");
        }
        assert_eq!(parse_size("AUTO"), Ok(ByteSize::Auto));
    }

    #[test]
    fn auto_takes_the_smaller_and_leaves_a_margin() {
        let (mib, gib) = (1u64 << 20, 1u64 << 30);
        let auto = |limit, available| auto_bytes(limit, available, 30 * mib);
        assert_eq!(auto(Some(gib), Some(8 * gib)).unwrap(), gib - gib / 8);
        assert_eq!(auto(None, Some(8 * gib)).unwrap(), 7 * gib);
        assert_eq!(auto(Some(128 * mib), None).unwrap(), 64 * mib);
        assert!(auto(None, None).is_err());
        // In little memory, what the process takes is left, and no more.
        assert_eq!(auto(Some(96 * mib), None).unwrap(), 63 * mib);
        assert_eq!(auto(Some(64 * mib), None).unwrap(), 32 * mib);
        assert_eq!(
            auto(Some(40 * mib), None).unwrap(),
            40 * mib - 30 * mib - 40 * mib / 32
        );
        assert_eq!(auto(Some(16 * mib), None).unwrap(), 2 * mib);
        assert!(auto(Some(0), None).is_err());
        assert!(ByteSize::Auto.resolve().unwrap() > 0);
    }

    proptest! {
        #[test]
        fn displayed_sizes_read_back(bytes: u64, shift in 0u32..64) {
            for bytes in [bytes, bytes >> shift, (bytes >> shift) << shift, 1 << shift, 3u64 << shift >> 1] {
                let size = ByteSize::Bytes(bytes);
                prop_assert_eq!(parse_size(&size.to_string()), Ok(size));
            }
        }

        #[test]
        fn no_text_panics(text in ".{0,24}", number in "[0-9.]{0,45}", suffix in "[a-zA-Z ]{0,4}") {
            let _ = parse_size(&text);
            let _ = parse_size(&format!("{number}{suffix}"));
        }
    }
}
