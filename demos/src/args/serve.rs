//! Options of `spillproof serve`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::ProofOn;

/// Prove over HTTP: keys are opened once, and all jobs share one budget.
#[derive(Debug, Clone, Args)]
pub struct Serve {
    /// A key (.zkey, .arkzkey, a container of `groth16 import`, or the key of a circuit of one's own that its program
    /// saved), or a folder of keys. Their names are those of the files, without the ending. May be given several times.
    #[arg(long, value_name = "DIR|FILE", required = true)]
    pub keys: Vec<PathBuf>,
    /// The SRS that saved keys were made over, or a longer one: a container (`srs import`). It stays where it is. Keys
    /// of halo2-axiom take one over BN254, those of midnight-proofs one over BLS12-381: may be given for each curve.
    #[arg(long, value_name = "FILE")]
    pub srs: Vec<PathBuf>,
    /// Where to listen. Beside an address of this machine alone, --token-file is asked for.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,
    /// A file with the token that requests have to send (Authorization: Bearer), of 16 characters or more. Only its
    /// owner and group may read it.
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Listen where other machines can reach it, and ask for no token.
    #[arg(long, conflicts_with = "token_file")]
    pub allow_anyone: bool,
    /// Proofs at a time. They compute one after the other: with more, the next ones are prepared meanwhile, each has
    /// a share of the budget, and the jobs behind them wait no less.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub proofs: u16,
    /// Jobs that may wait. A request beyond is refused (429).
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..))]
    pub queue: u16,
    /// Witnesses that may come in at a time.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub uploads: u16,
    /// Connections at a time.
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u16).range(1..))]
    pub connections: u16,
    /// How long a proof may take: 90s, 10m, 1h.
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = time)]
    pub job_timeout: Duration,
    /// How long proofs are kept for requests that ask for them later.
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = time)]
    pub keep: Duration,
    /// How long jobs may go on after SIGTERM or SIGINT. Then, or at a second signal, they are stopped.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = time)]
    pub drain: Duration,
    /// How long a body may stand still.
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = time)]
    pub body_timeout: Duration,
    /// GPUs that take part in proofs, on which the points of keys stay.
    #[command(flatten)]
    pub gpu: ProofOn,
}

/// A time as people write it: a number with `ms`, `s`, `m`, `h` or, for seconds, nothing.
///
/// # Errors
/// Text that is no time, with the reason.
fn time(text: &str) -> Result<Duration, String> {
    const SECONDS_MAX: f64 = 1e9;
    let digits = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let seconds = match unit.trim() {
        "ms" => 1e-3,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        other => return Err(format!("`{other}` is no unit of time: ms, s, m and h are")),
    };
    let number: f64 = number.parse().map_err(|_| format!("`{number}` is no number"))?;
    let time = number * seconds;
    match time.is_finite() && time <= SECONDS_MAX {
        true => Ok(Duration::from_secs_f64(time)),
        false => Err(format!("{text} is longer than {SECONDS_MAX} seconds")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        for (text, millis) in [
            ("60s", 60_000),
            ("1.5h", 5_400_000),
            ("250ms", 250),
            ("2m", 120_000),
            ("7", 7000),
        ] {
            assert_eq!(time(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "s", "1d", "-1s", "1e30", "99999999999h", "1..2s"] {
            assert!(time(text).is_err(), "{text}");
        }
    }
}
