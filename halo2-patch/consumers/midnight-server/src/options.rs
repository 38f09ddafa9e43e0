//! What the program is told: arguments, and variables for some of them.

use std::env;
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use midnight_proofs::spillproof::{DIR_VARIABLE, LIMIT_VARIABLE, MEMORY_VARIABLE, SCRATCH_VARIABLE};
use spillproof_engine::budget::{parse_size, ByteSize};

/// The help.
pub const HELP: &str = "\
midnight-server: Midnight's proof server, with all requests in one byte budget

    midnight-server --memory 512MiB [OPTIONS]

  --memory SIZE        the budget of all requests together: 512MiB, 2G, auto     (SPILLPROOF_MEMORY)
  --limit SIZE         a limit on the whole process instead, which leaves a budget (SPILLPROOF_LIMIT)
  --dir DIR            folder of scratch files, preferably on NVMe                (SPILLPROOF_DIR)
  --scratch KIND       sealed (the default) or plain                              (SPILLPROOF_SCRATCH)
  --params DIR         folder of bls_midnight_2p* and built-in keys
                       (MIDNIGHT_PP, else $XDG_CACHE_HOME or ~/.cache, midnight/zk-params)
  --address IP         127.0.0.1
  --port PORT          6300; 0 is any that is free                      (MIDNIGHT_PROOF_SERVER_PORT)
  --num-workers N      jobs that are worked on at a time, 2
  --job-capacity N     jobs that wait, 64
  --job-timeout S      seconds that a job has, from when it waits: 600
  --body-limit SIZE    the largest body, 64MiB, and a quarter of the budget at most
  --keys N             proving keys that are held, on the disk where memory has no room: 8
  --no-fetch-params    is taken and changes nothing: this server never fetches
  -v, --verbose        a line for each request
";

/// The options.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    pub params: PathBuf,
    pub address: IpAddr,
    pub port: u16,
    pub workers: usize,
    pub capacity: usize,
    pub time_limit: Duration,
    pub body_limit_bytes: u64,
    pub keys: usize,
    pub is_verbose: bool,
    /// Variables that arguments stand for: the session is made from these.
    pub variables: Vec<(&'static str, String)>,
}

impl Options {
    /// Those of the arguments, and of variables of Midnight's server. `None` if help is asked for.
    ///
    /// # Errors
    /// Says which argument is wrong, and why.
    pub fn parse(
        arguments: impl IntoIterator<Item = String>,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Option<Self>, String> {
        let mut port = 6300;
        if let Some(text) = variable("MIDNIGHT_PROOF_SERVER_PORT") {
            port = parsed("MIDNIGHT_PROOF_SERVER_PORT", &text.to_string_lossy())?;
        }
        let mut options = Self {
            params: params_folder(variable),
            address: Ipv4Addr::LOCALHOST.into(),
            port,
            workers: 2,
            capacity: 64,
            time_limit: Duration::from_secs(600),
            body_limit_bytes: 64 << 20,
            keys: 8,
            is_verbose: false,
            variables: Vec::new(),
        };
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            let (name, given) = match argument.split_once('=') {
                Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                None => (argument, None),
            };
            match name.as_str() {
                "--help" | "-h" => return Ok(None),
                "--verbose" | "-v" => {
                    options.is_verbose = true;
                    continue;
                }
                "--no-fetch-params" => continue,
                _ => {}
            }
            let missing = || format!("{name} takes a value");
            let mut value = || given.clone().or_else(|| arguments.next()).ok_or_else(missing);
            match name.as_str() {
                "--memory" => options.variables.push((MEMORY_VARIABLE, value()?)),
                "--limit" => options.variables.push((LIMIT_VARIABLE, value()?)),
                "--dir" => options.variables.push((DIR_VARIABLE, value()?)),
                "--scratch" => options.variables.push((SCRATCH_VARIABLE, value()?)),
                "--params" => options.params = value()?.into(),
                "--address" => options.address = parsed(&name, &value()?)?,
                "--port" => options.port = parsed(&name, &value()?)?,
                "--num-workers" => options.workers = counted(&name, &value()?, 64)?,
                "--job-capacity" => options.capacity = counted(&name, &value()?, 4096)?,
                "--keys" => options.keys = counted(&name, &value()?, 4096)?,
                "--job-timeout" => {
                    let seconds = parsed::<f64>(&name, &value()?)?;
                    options.time_limit = Duration::try_from_secs_f64(seconds)
                        .ok()
                        .filter(|limit| !limit.is_zero() && limit.as_secs() <= 1 << 20)
                        .ok_or_else(|| format!("{name}: {seconds} is no number of seconds"))?;
                }
                "--body-limit" => {
                    let size = value()?;
                    options.body_limit_bytes = match parse_size(&size) {
                        Ok(ByteSize::Bytes(bytes)) => bytes,
                        Ok(_) => return Err(format!("{name}: `{size}` is no number of bytes")),
                        Err(error) => return Err(format!("{name}: {error}")),
                    };
                }
                _ => return Err(format!("there is no option {name}; --help names all")),
            }
        }
        Ok(Some(options))
    }
}

/// A number from 1 on.
fn counted(name: &str, text: &str, most: usize) -> Result<usize, String> {
    match parsed(name, text)? {
        number if (1..=most).contains(&number) => Ok(number),
        number => Err(format!("{name}: {number} is not between 1 and {most}")),
    }
}

fn parsed<T: FromStr>(name: &str, text: &str) -> Result<T, String> {
    text.parse()
        .map_err(|_| format!("{name}: `{text}` is no such value"))
}

fn params_folder(variable: impl Fn(&str) -> Option<OsString>) -> PathBuf {
    let cached = |folder: OsString| PathBuf::from(folder).join("midnight").join("zk-params");
    let given = variable("MIDNIGHT_PP").map(PathBuf::from);
    let of_cache = || variable("XDG_CACHE_HOME").map(cached);
    let of_home = || Some(cached(PathBuf::from(variable("HOME")?).join(".cache").into()));
    given
        .or_else(of_cache)
        .or_else(of_home)
        .unwrap_or_else(|| ".".into())
}

/// A variable that is set to something.
pub fn variable(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Option<Options>, String> {
        let home = |name: &str| (name == "HOME").then(|| "/home/me".into());
        Options::parse(arguments.iter().map(ToString::to_string), home)
    }

    #[test]
    fn arguments_are_taken_with_a_space_or_an_equals_sign() {
        let options = parse(&[
            "--memory",
            "512MiB",
            "--dir=/scratch",
            "--port=0",
            "--job-timeout",
            "1.5",
            "-v",
        ]);
        let options = options.unwrap().unwrap();
        let variables = [
            (MEMORY_VARIABLE, "512MiB".to_owned()),
            (DIR_VARIABLE, "/scratch".to_owned()),
        ];
        assert_eq!(options.variables, variables);
        assert_eq!((options.port, options.is_verbose), (0, true));
        assert_eq!(options.time_limit, Duration::from_millis(1500));
        assert_eq!(
            options.params,
            PathBuf::from("/home/me/.cache/midnight/zk-params")
        );
        assert_eq!(parse(&["--help"]), Ok(None));
    }

    #[test]
    fn wrong_arguments_are_named() {
        for (arguments, words) in [
            (&["--memroy", "1"][..], "no option --memroy"),
            (&["--memory"], "--memory takes a value"),
            (&["--num-workers", "0"], "between 1 and 64"),
            (&["--job-capacity", "many"], "`many`"),
            (&["--job-timeout", "-1"], "no number of seconds"),
            (&["--job-timeout", "nan"], "no number of seconds"),
            (&["--body-limit", "big"], "--body-limit"),
            (&["--port", "65536"], "`65536`"),
        ] {
            let refused = parse(arguments).unwrap_err();
            assert!(refused.contains(words), "{refused}");
        }
    }
}
