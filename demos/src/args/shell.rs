//! What is made of the command line's own description: completions for shells, the manual page.

use clap::{Args, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use super::Arguments;

/// A script that completes command lines.
#[derive(Debug, Clone, Copy, Args)]
pub struct Completions {
    /// The shell.
    #[arg(value_enum)]
    pub shell: Shell,
}

/// The script for a shell.
pub fn completions(shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "spillproof", &mut script);
    script
}

/// The name of the command whose help has the options of every command.
const OPTIONS: &str = "options";

/// The description with the options of every command in the help of one command alone, `help options`. They
/// are parsed as before.
pub fn for_help(command: clap::Command) -> clap::Command {
    let shown: Vec<_> = command
        .get_arguments()
        .filter(|arg| arg.is_global_set())
        .cloned()
        .collect();
    let command = command
        .mut_args(|arg| {
            let is_global = arg.is_global_set();
            arg.hide(is_global)
        })
        // Where a command has an argument of that name, the hidden one is not put into it.
        .mut_subcommand(OPTIONS, |options| options.args(shown));
    pointing_to_options(command)
}

/// With a line about the options of every command behind the help of a command and of those below it.
fn pointing_to_options(command: clap::Command) -> clap::Command {
    const LINE: &str = "`spillproof help options` prints the options of every command (--memory, --limit, --dir, --json, --threads, --quiet...).";
    command
        .after_help(LINE)
        .mut_subcommands(|command| match command.get_name() == OPTIONS {
            true => command,
            false => pointing_to_options(command),
        })
}

/// The options of every command, as `help options` prints them.
pub fn options() -> String {
    let mut command = for_help(Arguments::command());
    command.build();
    match command.find_subcommand_mut(OPTIONS) {
        Some(options) => options.render_long_help().to_string(),
        None => String::new(),
    }
}

/// What the manual page takes from the tour of the commands.
const TOUR: &str = include_str!("../../../docs/cli.md");

/// Command lines with what they do.
const EXAMPLES: [(&str, &str); 6] = [
    (
        "spillproof",
        "The demo: a proof from disk and the same from memory.",
    ),
    (
        "spillproof plan --circuit chain --k 20 --memory 96MiB",
        "What keys and a proof of a built-in circuit take, before they are made.",
    ),
    (
        "spillproof prove --circuit chain --k 20 --memory 96MiB --dir /nvme --out chain.proof --report run.html",
        "The proof within that budget, and a page of the run.",
    ),
    (
        "spillproof verify --circuit chain --k 20 chain.proof",
        "Its verification by the unmodified halo2-axiom.",
    ),
    (
        "spillproof srs import ceremony.params --out ceremony.srs",
        "The parameters of a ceremony, each point checked.",
    ),
    (
        "spillproof groth16 prove c.zkey c.wtns proof.json public.json --memory 128MiB",
        "A Groth16 proof over files of circom and snarkjs.",
    ),
];

/// The manual page, with a section for each command; examples, exit codes and variables follow.
///
/// # Errors
/// None, but that of writing into memory.
pub fn man() -> std::io::Result<Vec<u8>> {
    let mut command = Arguments::command();
    command.build();
    let mut page = Vec::new();
    Man::new(command.clone()).render(&mut page)?;
    sections(&command, "spillproof", &mut page)?;
    let mut roff = Roff::new();
    roff.control("SH", ["EXAMPLES"]);
    for (line, words) in EXAMPLES {
        roff.control("TP", []).text([bold(line)]).text([roman(words)]);
    }
    for (heading, title) in [("Exit codes", "EXIT STATUS"), ("Variables", "ENVIRONMENT")] {
        roff.control("SH", [title]);
        for [term, words] in rows_of(heading) {
            roff.control("TP", []).text([bold(term)]).text([roman(words)]);
        }
    }
    roff.to_writer(&mut page)?;
    Ok(page)
}

/// The first two cells of each row of the table below a heading of the tour, without its marks.
fn rows_of(heading: &str) -> Vec<[String; 2]> {
    let section = TOUR
        .split_once(&format!("\n## {heading}\n"))
        .unwrap_or_default()
        .1;
    let section = section.split("\n## ").next().unwrap_or_default();
    let body = section.lines().skip_while(|line| !line.starts_with("|---"));
    let rows = body.filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    rows.filter_map(|row| row.split_once(" | "))
        .map(|(term, words)| [plain(term), plain(words)])
        .collect()
}

/// Words without the marks of code and links.
fn plain(marked: &str) -> String {
    let mut words = String::new();
    let mut rest = marked;
    while let Some((before, link)) = rest.split_once('[') {
        let (text, after) = link.split_once("](").unwrap_or((link, ""));
        words.push_str(before);
        words.push_str(text);
        rest = after.split_once(')').map_or("", |(_, rest)| rest);
    }
    words.push_str(rest);
    words.replace('`', "")
}

/// A section for each command that has no commands of its own.
fn sections(command: &clap::Command, path: &str, page: &mut Vec<u8>) -> std::io::Result<()> {
    for command in command
        .get_subcommands()
        // The options of every command are in the page's own section.
        .filter(|command| !["help", OPTIONS].contains(&command.get_name()))
    {
        let path = format!("{path} {}", command.get_name());
        if command.has_subcommands() {
            sections(command, &path, page)?;
            if command.is_subcommand_required_set() || command.is_arg_required_else_help_set() {
                continue;
            }
        }
        page.extend(format!(".SH \"{}\"\n", path.to_uppercase()).into_bytes());
        let own = command.clone().mut_args(|arg| {
            let is_global = arg.is_global_set();
            arg.hide(is_global)
        });
        let man = Man::new(own);
        man.render_synopsis_section(page)?;
        man.render_description_section(page)?;
        man.render_options_section(page)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::{FromArgMatches, Parser};

    use super::*;

    #[test]
    fn completions_know_the_commands() {
        for shell in [
            Shell::Bash,
            Shell::Zsh,
            Shell::Fish,
            Shell::Elvish,
            Shell::PowerShell,
        ] {
            let script = String::from_utf8(completions(shell)).unwrap();
            for word in ["prove", "verify-key", "checkpoint-key", "limit"] {
                assert!(script.contains(word), "{shell}: {word}");
            }
        }
    }

    #[test]
    fn the_page_has_a_section_for_each_command() {
        let page = String::from_utf8(man().unwrap()).unwrap();
        assert!(page.contains(".TH spillproof 1"), "{}", &page[..200]);
        for heading in [
            "SPILLPROOF PROVE",
            "SPILLPROOF SRS EXPORT",
            "SPILLPROOF GROTH16 VERIFY\\-KEY",
            "SPILLPROOF DEMO",
        ] {
            assert!(
                page.contains(&format!(".SH \"{heading}\""))
                    || page.contains(&format!(".SH \"{}\"", heading.replace('\\', ""))),
                "{heading}"
            );
        }
        assert!(page.contains("\\-\\-checkpoint\\-key"));
        let after = |heading: &str| {
            page.split_once(&format!(".SH \"{heading}\""))
                .or(page.split_once(&format!(".SH {heading}")))
        };
        for (heading, words) in [
            ("EXAMPLES", "spillproof plan"),
            ("EXIT STATUS", "SIGTERM"),
            ("ENVIRONMENT", "SPILLPROOF_LOG"),
        ] {
            assert!(
                after(heading)
                    .expect(heading)
                    .1
                    .contains(&words.replace('-', "\\-")),
                "{heading}"
            );
        }
        for (line, _) in EXAMPLES {
            assert!(
                Arguments::try_parse_from(line.split_whitespace()).is_ok(),
                "{line}"
            );
        }
        assert_eq!(plain("the [budget](#memory): `512MiB`"), "the budget: 512MiB");
    }

    #[test]
    fn options_of_every_command_are_printed_once() {
        let mut command = for_help(Arguments::command());
        command.build();
        let all = options();
        let mut commands = vec![&mut command];
        let mut printed = 0;
        while let Some(command) = commands.pop() {
            let help = command.clone().render_long_help().to_string();
            let name = command.get_name().to_owned();
            if name == OPTIONS {
                printed += 1;
                for option in [
                    "--memory",
                    "--limit",
                    "--dir",
                    "--json",
                    "--strict-secrets",
                    "--verbose",
                ] {
                    assert!(all.contains(option) && help.contains(option), "{option}: {help}");
                }
            } else if name != "help" {
                assert!(!help.contains("SPILLPROOF_LIMIT"), "{name}: {help}");
                assert!(help.contains("spillproof help options"), "{name}: {help}");
            }
            for line in help.lines().filter(|line| !line.starts_with("Usage")) {
                assert!(line.chars().count() <= 80, "{name}: {line}");
            }
            commands.extend(
                command
                    .get_subcommands_mut()
                    .filter(|command| command.get_name() != "help"),
            );
        }
        assert_eq!(printed, 1);
    }

    /// They are hidden, and not gone.
    #[test]
    fn options_of_every_command_are_parsed() {
        let command = for_help(Arguments::command());
        for line in [
            "spillproof --memory 1GiB srs inspect x",
            "spillproof srs inspect x --memory 1GiB --json",
            "spillproof options --memory 1GiB",
        ] {
            let matches = command.clone().try_get_matches_from(line.split_whitespace());
            let matches = matches.unwrap_or_else(|error| panic!("{line}: {error}"));
            let arguments = Arguments::from_arg_matches(&matches).unwrap();
            assert!(arguments.global.memory.is_some(), "{line}");
        }
    }
}
