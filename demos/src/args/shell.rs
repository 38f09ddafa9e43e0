//! What is made of the command line's own description: completions for shells, the manual page.

use clap::{Args, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;

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

/// The manual page, with a section for each command.
///
/// # Errors
/// None, but that of writing into memory.
pub fn man() -> std::io::Result<Vec<u8>> {
    let mut command = Arguments::command();
    command.build();
    let mut page = Vec::new();
    Man::new(command.clone()).render(&mut page)?;
    sections(&command, "spillproof", &mut page)?;
    Ok(page)
}

/// A section for each command that has no commands of its own.
fn sections(command: &clap::Command, path: &str, page: &mut Vec<u8>) -> std::io::Result<()> {
    for command in command
        .get_subcommands()
        .filter(|command| command.get_name() != "help")
    {
        let path = format!("{path} {}", command.get_name());
        if command.has_subcommands() {
            sections(command, &path, page)?;
            if command.is_subcommand_required_set() || command.is_arg_required_else_help_set() {
                continue;
            }
        }
        page.extend(format!(".SH \"{}\"\n", path.to_uppercase()).into_bytes());
        // The options of every command are in the page's own section.
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
    }
}
