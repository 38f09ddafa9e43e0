//! Links between ranks. A link has a name (`1g`), or `ranks bench` has measured it.
//!
//! In: what the command line says. Out: a [`Link`], what it is called, and the rates of the ranks between which
//! it was measured.

use std::fs;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use spillproof_circom::json::curve_name;
use spillproof_engine::plan::Rates;
use spillproof_format::Curve;
use spillproof_gpu::accelerator::DeviceRates;
use spillproof_ranks::Link;

use crate::args::{LinkName, LinkOf};
use crate::failure::Failure;
use crate::run::Result;
use crate::trial::Trial;

/// A link that is called something.
#[derive(Debug, Clone)]
pub struct KnownLink {
    /// Its name, or its file's.
    pub called: String,
    /// The link.
    pub link: Link,
    /// How fast each rank was when it was measured; empty for a link with a name.
    pub speeds: Vec<Speed>,
}

/// How fast a rank is.
#[derive(Debug, Clone, Serialize)]
pub struct Speed {
    /// Its kernels and its disk.
    #[serde(flatten)]
    pub rates: Rates,
    /// Its steps beside those.
    pub trial: Trial,
    /// Its device, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu: Option<DeviceRates>,
}

/// What `ranks bench` measures, and what files of links have: as they are printed, or on their own.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Measured {
    /// The link.
    pub link: LinkFigures,
    /// The curve of the trial, as snarkjs calls it.
    #[serde(default)]
    pub curve: Option<String>,
    /// The ranks between which it was measured.
    #[serde(default)]
    pub ranks: Vec<RankFigures>,
}

/// A link in a file.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct LinkFigures {
    /// Of a message without bytes.
    pub latency_seconds: f64,
    /// Through each port of a rank, in each direction at one time.
    pub port_bytes_per_second: f64,
    /// Of all ranks together, where that is less than their ports have.
    #[serde(default)]
    pub switch_bytes_per_second: Option<f64>,
}

/// What a rank does in a second, while the others do the same.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RankFigures {
    /// Its number.
    pub rank: usize,
    /// Its machine.
    pub host: String,
    /// Its compute threads.
    pub threads: usize,
    /// The rates.
    #[serde(flatten)]
    pub rates: Rates,
    /// Steps of a small proof beside their plan.
    pub trial: Trial,
    /// Its device, if one was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<DeviceRates>,
}

/// A document of `--json`.
#[derive(Deserialize)]
struct Printed {
    result: Measured,
}

impl KnownLink {
    /// The link with this name.
    pub fn named(name: LinkName) -> Self {
        // Gbit/s in each direction, and a latency that is usual there.
        let (called, gigabits, latency) = match name {
            LinkName::Gigabit => ("1 Gbit/s", 1.0, 100e-6),
            LinkName::TenGigabit => ("10 Gbit/s", 10.0, 50e-6),
            LinkName::HundredGigabit => ("100 Gbit/s", 100.0, 5e-6),
            LinkName::Nvlink => ("NVLink", 3600.0, 2e-6),
        };
        Self {
            called: called.into(),
            link: Link {
                latency,
                port_bytes_per_second: gigabits * 1e9 / 8.0,
                switch_bytes_per_second: None,
            },
            speeds: Vec::new(),
        }
    }

    /// All links with a name.
    pub fn all() -> impl Iterator<Item = Self> {
        LinkName::value_variants().iter().map(|name| Self::named(*name))
    }

    /// The link that the command line names, to go over it, or to plan for a key of this curve.
    ///
    /// # Errors
    /// [`Failure::File`], [`Failure::Content`].
    pub fn of(of: &LinkOf, key: Option<Curve>) -> Result<Self> {
        let file = match of {
            LinkOf::Named(name) => return Ok(Self::named(*name)),
            LinkOf::File(file) => file,
        };
        let text = fs::read_to_string(file).map_err(Failure::file(file))?;
        let content = |details: String| Failure::Content {
            file: file.clone(),
            details,
        };
        let Measured { link, curve, ranks } = parsed(&text).map_err(content)?;
        if let (Some(key), Some(curve)) = (key.map(curve_name), curve)
            && key != curve
        {
            return Err(content(format!(
                "measured with proofs over {curve}, and the key is over {key}: measure with ranks bench --curve {key}"
            )));
        }
        let speed = |rank: RankFigures| Speed {
            rates: rank.rates,
            trial: rank.trial,
            gpu: rank.gpu,
        };
        Ok(Self {
            called: file
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            link: link.checked().map_err(content)?,
            speeds: ranks.into_iter().map(speed).collect(),
        })
    }
}

/// What a file of a link says.
fn parsed(text: &str) -> Result<Measured, String> {
    let printed = serde_json::from_str(text).map(|Printed { result }| result);
    let parsed = printed.or_else(|_| serde_json::from_str(text));
    parsed.map_err(|error| {
        format!(
            "no link as `spillproof ranks bench --json` prints it ({error}): the least is {{\"link\": {{\"latency_seconds\": 5e-5, \
             \"port_bytes_per_second\": 1.25e9}}}}"
        )
    })
}

impl LinkFigures {
    fn checked(self) -> Result<Link, String> {
        let rates = [Some(self.port_bytes_per_second), self.switch_bytes_per_second];
        if let Some(rate) = rates.into_iter().flatten().find(|rate| *rate < 1.0) {
            return Err(format!("a link of {rate} bytes a second: give it at least 1"));
        }
        if self.latency_seconds < 0.0 {
            let latency = self.latency_seconds;
            return Err(format!("a latency of {latency} seconds: give it at least 0"));
        }
        Ok(Link {
            latency: self.latency_seconds,
            port_bytes_per_second: self.port_bytes_per_second,
            switch_bytes_per_second: self.switch_bytes_per_second,
        })
    }
}

impl From<Link> for LinkFigures {
    fn from(link: Link) -> Self {
        Self {
            latency_seconds: link.latency,
            port_bytes_per_second: link.port_bytes_per_second,
            switch_bytes_per_second: link.switch_bytes_per_second,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_printed_json_or_a_link_alone() {
        let link = r#"{"link": {"latency_seconds": 1e-3, "port_bytes_per_second": 2e6}}"#;
        for text in [
            link.to_owned(),
            format!(r#"{{"command": "ranks bench", "result": {link}}}"#),
        ] {
            let Measured { link, ranks, .. } = parsed(&text).unwrap();
            assert!(ranks.is_empty());
            let link = link.checked().unwrap();
            assert_eq!((link.latency, link.port_bytes_per_second), (1e-3, 2e6));
            assert_eq!(link.switch_bytes_per_second, None);
        }
        let refused = parsed("{}").unwrap_err();
        assert!(refused.contains("ranks bench --json"), "{refused}");
    }

    #[test]
    fn what_is_written_is_read() {
        let rates = Rates::default();
        let measured = Measured {
            link: KnownLink::named(LinkName::Gigabit).link.into(),
            curve: Some("bn128".into()),
            ranks: vec![RankFigures {
                rank: 0,
                host: "a".into(),
                threads: 2,
                rates,
                trial: Trial::usual(Curve::Bn254),
                gpu: None,
            }],
        };
        let again = parsed(&serde_json::to_string(&measured).unwrap()).unwrap();
        assert_eq!(again.ranks[0].rates, rates);
        assert_eq!(again.ranks[0].trial.factor("sum over B2"), 2.4);
        assert_eq!(again.link.checked(), measured.link.checked());
    }

    #[test]
    fn a_link_without_bytes_is_refused() {
        let figures = LinkFigures {
            latency_seconds: 0.0,
            port_bytes_per_second: 0.0,
            switch_bytes_per_second: None,
        };
        assert!(figures.checked().unwrap_err().contains("0 bytes a second"));
        let figures = LinkFigures {
            latency_seconds: -1.0,
            port_bytes_per_second: 1e9,
            switch_bytes_per_second: None,
        };
        assert!(figures.checked().unwrap_err().contains("-1 seconds"));
    }
}
