//! What a user says about devices: `auto`, `off`, or a number.

use std::fmt;
use std::str::FromStr;

use crate::device::Gpu;
use crate::error::{Error, Result};
use crate::trace::Detail;
use crate::{NoGpu, probe};

/// Which device to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Choice {
    /// The first one if there is any, else the processor.
    #[default]
    Auto,
    /// None; the driver is not even asked.
    Off,
    /// This one, or an error.
    Device(usize),
}

/// What came of a choice.
#[derive(Debug)]
pub enum Chosen {
    /// A device.
    Gpu(Gpu),
    /// The processor, and why.
    Processor(NotUsed),
}

/// Why no device is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotUsed {
    /// The user said so.
    Off,
    /// There is none.
    None(NoGpu),
    /// There is one, and it would not open.
    WouldNotOpen(String),
}

impl fmt::Display for NotUsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotUsed::Off => f.write_str("no GPU: switched off"),
            NotUsed::None(reason) => reason.fmt(f),
            NotUsed::WouldNotOpen(reason) => write!(f, "no GPU: {reason}"),
        }
    }
}

/// A choice that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no GPU: say `auto`, `off`, or a number from 0")]
pub struct ParseChoiceError {
    text: String,
}

impl FromStr for Choice {
    type Err = ParseChoiceError;

    fn from_str(text: &str) -> Result<Self, ParseChoiceError> {
        match text {
            "auto" => Ok(Choice::Auto),
            "off" => Ok(Choice::Off),
            // `+1` is a number to the standard library, and not to a user.
            number if number.bytes().all(|byte| byte.is_ascii_digit()) => {
                number.parse().map(Choice::Device).map_err(|_| ParseChoiceError {
                    text: text.to_owned(),
                })
            }
            _ => Err(ParseChoiceError {
                text: text.to_owned(),
            }),
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Choice::Auto => f.write_str("auto"),
            Choice::Off => f.write_str("off"),
            Choice::Device(ordinal) => ordinal.fmt(f),
        }
    }
}

impl Choice {
    /// Opens the device, or says why the processor has to do. `auto` is never an error; a number is, if that device is not to be had.
    ///
    /// # Errors
    /// Those of [`Gpu::open`], for a device that was named.
    pub fn open(self, detail: Detail) -> Result<Chosen> {
        match self {
            Choice::Off => Ok(Chosen::Processor(NotUsed::Off)),
            Choice::Device(ordinal) => {
                // A driver without devices would call it an error of its own.
                probe()?;
                Gpu::open(ordinal, detail).map(Chosen::Gpu)
            }
            Choice::Auto => match probe() {
                Err(reason) => Ok(Chosen::Processor(NotUsed::None(reason))),
                Ok(_) => Ok(match Gpu::open(0, detail) {
                    Ok(gpu) => Chosen::Gpu(gpu),
                    Err(Error::NoGpu(reason)) => Chosen::Processor(NotUsed::None(reason)),
                    Err(error) => Chosen::Processor(NotUsed::WouldNotOpen(error.to_string())),
                }),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_written_as_it_is_read() {
        for text in ["auto", "off", "0", "17"] {
            assert_eq!(text.parse::<Choice>().unwrap().to_string(), text);
        }
        for text in ["", "Auto", "-1", "+1", "0x0", "99999999999999999999999"] {
            let error = text.parse::<Choice>().unwrap_err();
            assert!(error.to_string().contains("say `auto`"), "{text}");
        }
    }

    #[test]
    fn off_asks_nobody() {
        let chosen = Choice::Off.open(Detail::Counts).unwrap();
        assert!(matches!(chosen, Chosen::Processor(NotUsed::Off)));
    }
}
