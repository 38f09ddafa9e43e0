//! The choice of devices: `auto`, `off`, `all`, or numbers.

use std::fmt;
use std::str::FromStr;

use crate::device::Gpu;
use crate::driver;
use crate::error::{Error, Result};
use crate::probed::NoGpu;
use crate::trace::Detail;

/// Which devices to use.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Choice {
    /// The first device if there is one, otherwise the processor.
    #[default]
    Auto,
    /// No device; the driver is not loaded.
    Off,
    /// All devices that open, otherwise the processor.
    All,
    /// This device, or an error.
    Device(usize),
    /// These devices, each once, or an error.
    Devices(Vec<usize>),
}

/// Why no device is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GpuAbsence {
    /// The choice is `off`.
    Off,
    /// There is no device.
    None(NoGpu),
    /// There is a device, and it did not open.
    WouldNotOpen(String),
}

impl fmt::Display for GpuAbsence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GpuAbsence::Off => f.write_str("no GPU: switched off"),
            GpuAbsence::None(reason) => reason.fmt(f),
            GpuAbsence::WouldNotOpen(reason) => write!(f, "no GPU: {reason}"),
        }
    }
}

/// A text that is no choice.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is no choice of GPUs: say `auto`, `off`, a number from 0, several with commas, each once, or `all`"
)]
pub struct ParseChoiceError {
    text: String,
}

impl FromStr for Choice {
    type Err = ParseChoiceError;

    fn from_str(text: &str) -> Result<Self, ParseChoiceError> {
        match text {
            "auto" => return Ok(Choice::Auto),
            "off" => return Ok(Choice::Off),
            "all" => return Ok(Choice::All),
            _ => {}
        }
        let no_choice = || ParseChoiceError {
            text: text.to_owned(),
        };
        let numbers = text.split(',').map(|number| {
            // The standard library accepts `+1` as a number.
            let digits = number.bytes().all(|byte| byte.is_ascii_digit());
            digits.then(|| number.parse().ok()).flatten()
        });
        let numbers: Vec<usize> = numbers.collect::<Option<_>>().ok_or_else(no_choice)?;
        let is_twice = |(at, number): (usize, &usize)| numbers[..at].contains(number);
        match numbers[..] {
            [number] => Ok(Choice::Device(number)),
            _ if numbers.iter().enumerate().any(is_twice) => Err(no_choice()),
            _ => Ok(Choice::Devices(numbers)),
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Choice::Auto => f.write_str("auto"),
            Choice::Off => f.write_str("off"),
            Choice::All => f.write_str("all"),
            Choice::Device(ordinal) => ordinal.fmt(f),
            Choice::Devices(ordinals) => {
                let numbers: Vec<String> = ordinals.iter().map(usize::to_string).collect();
                f.write_str(&numbers.join(","))
            }
        }
    }
}

impl Choice {
    /// What of this choice is for one of several ranks of a machine, all of which have it: devices in turn, those that are
    /// left over as well (of [`Choice::Auto`] one for each rank). Where there are fewer devices than ranks, some ranks
    /// have the same.
    #[must_use]
    pub fn of_rank(&self, rank: usize, ranks: usize) -> Self {
        let all: Vec<usize> = match self {
            Choice::Off => return Choice::Off,
            Choice::Device(ordinal) => vec![*ordinal],
            Choice::Devices(ordinals) => ordinals.clone(),
            Choice::Auto | Choice::All => match driver::devices() {
                Ok(devices) => (0..devices.len()).collect(),
                // It is said when they are opened.
                Err(_) => return self.clone(),
            },
        };
        let mut own = dealt(&all, rank, ranks);
        if *self == Choice::Auto {
            own.truncate(1);
        }
        match own[..] {
            [ordinal] => Choice::Device(ordinal),
            _ => Choice::Devices(own),
        }
    }

    /// Opens the first of the devices, or gives the reason for the processor. `auto` and `all` are never an
    /// error; a number is, if the device cannot be opened.
    ///
    /// # Errors
    /// As [`Gpu::open`], for a device that was named.
    pub fn open(&self, detail: Detail) -> Result<Result<Gpu, GpuAbsence>> {
        let first = match self {
            Choice::Off => return Ok(Err(GpuAbsence::Off)),
            Choice::All | Choice::Auto => Choice::Auto,
            Choice::Device(ordinal) => Choice::Device(*ordinal),
            Choice::Devices(ordinals) => ordinals
                .first()
                .map_or(Choice::Off, |first| Choice::Device(*first)),
        };
        Ok(first.open_all(detail)?.and_then(|gpus| {
            let first = gpus.into_iter().next();
            first.ok_or(GpuAbsence::None(NoGpu::NoDevice))
        }))
    }

    /// Opens all devices of the choice, at least one. `all` skips devices that do not open.
    ///
    /// # Errors
    /// As [`Choice::open`].
    pub fn open_all(&self, detail: Detail) -> Result<Result<Vec<Gpu>, GpuAbsence>> {
        let named = |ordinals: &[usize]| -> Result<Vec<Gpu>> {
            // Gives the better error where the driver reports no device.
            driver::devices()?;
            ordinals
                .iter()
                .map(|&ordinal| Gpu::open(ordinal, detail))
                .collect()
        };
        let wanted = match self {
            Choice::Off => return Ok(Err(GpuAbsence::Off)),
            Choice::Device(ordinal) => return named(&[*ordinal]).map(Ok),
            Choice::Devices(ordinals) => return named(ordinals).map(Ok),
            Choice::Auto => 1,
            Choice::All => usize::MAX,
        };
        let there = match driver::devices() {
            Ok(devices) => devices.len(),
            Err(reason) => return Ok(Err(GpuAbsence::None(reason))),
        };
        let (mut gpus, mut reason) = (Vec::new(), GpuAbsence::None(NoGpu::NoDevice));
        for ordinal in 0..there.min(wanted) {
            match Gpu::open(ordinal, detail) {
                Ok(gpu) => gpus.push(gpu),
                Err(error) => {
                    tracing::warn!(device = ordinal, %error, "a device does not open and is not used");
                    reason = match error {
                        Error::NoGpu(reason) => GpuAbsence::None(reason),
                        error => GpuAbsence::WouldNotOpen(error.to_string()),
                    };
                }
            }
        }
        Ok(if gpus.is_empty() { Err(reason) } else { Ok(gpus) })
    }
}

/// The devices of one of several ranks.
fn dealt(all: &[usize], rank: usize, ranks: usize) -> Vec<usize> {
    let own: Vec<usize> = all.iter().copied().skip(rank).step_by(ranks.max(1)).collect();
    match own.is_empty() {
        false => own,
        true => all
            .iter()
            .copied()
            .cycle()
            .skip(rank % all.len().max(1))
            .take(1)
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_written_as_it_is_read() {
        for text in ["auto", "off", "all", "0", "17", "0,1", "3,0,2"] {
            assert_eq!(text.parse::<Choice>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "Auto",
            "-1",
            "+1",
            "0x0",
            "99999999999999999999999",
            "0,",
            ",",
            "0,0",
            "0, 1",
            "auto,1",
        ] {
            let error = text.parse::<Choice>().unwrap_err();
            assert!(error.to_string().contains("say `auto`"), "{text}");
        }
    }

    #[test]
    fn devices_go_to_ranks_in_turn() {
        for (all, ranks, expected) in [
            (&[0, 1, 2, 3][..], 4, &[&[0][..], &[1], &[2], &[3]][..]),
            (&[0, 1, 2, 3, 4], 2, &[&[0, 2, 4], &[1, 3]]),
            (&[5, 7], 3, &[&[5], &[7], &[5]]),
            (&[1], 2, &[&[1], &[1]]),
        ] {
            let own: Vec<_> = (0..ranks).map(|rank| dealt(all, rank, ranks)).collect();
            assert_eq!(own, expected);
        }
        assert_eq!(Choice::Off.of_rank(1, 2), Choice::Off);
        assert_eq!(Choice::Device(3).of_rank(1, 2), Choice::Device(3));
        assert_eq!(Choice::Devices(vec![3, 0]).of_rank(1, 2), Choice::Device(0));
        assert_eq!(
            Choice::Devices(vec![3, 0]).of_rank(0, 1),
            Choice::Devices(vec![3, 0])
        );
    }

    #[test]
    fn off_loads_no_driver() {
        let opened = Choice::Off.open(Detail::Counts).unwrap();
        assert_eq!(opened.err(), Some(GpuAbsence::Off));
    }
}
