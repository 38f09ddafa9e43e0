//! `spillproof-bench record --out FILE [--title TEXT] -- COMMAND ...`: a run of a command as an animated SVG.
//!
//! The command runs with its output in pipes; every line gets the time at which it arrived. The picture shows
//! the lines one after the other, each with its time in the margin. Waits are shortened so that the animation
//! takes [`SHOWN_SECONDS_MAX`] at most; the times in the margin are the real ones. The picture is one file
//! with a style sheet, without scripts and without anything that is fetched; a viewer without animations
//! shows all lines.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Instant;

use spillproof_cli::failure::Failure;
use spillproof_cli::report::svg::{document, escaped};
use spillproof_cli::run::Result;

use crate::args::Record;

/// How long the picture plays.
const SHOWN_SECONDS_MAX: f64 = 16.0;
/// Between lines that came together.
const LINE_SECONDS: f64 = 0.12;
const LINE_HEIGHT: usize = 18;
/// Of a character of the fixed-width font at 13 units.
const CHARACTER_WIDTH: f64 = 7.85;
const MARGIN: usize = 16;
/// Where the lines begin: the times stand to the left.
const TEXT_LEFT: usize = 84;
const COLUMNS_MAX: usize = 132;

/// A line of output.
struct Line {
    seconds: f64,
    text: String,
}

/// Runs the command, and writes the picture.
///
/// # Errors
/// [`Failure::Demonstration`] for a command that fails; [`Failure::File`] for one that cannot be started, and
/// for the picture.
pub fn run(args: &Record) -> Result<()> {
    let (lines, seconds) = record(&args.command)?;
    let name = |word: &String| {
        Path::new(word)
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
    };
    let words = args.command.iter().enumerate();
    let prompt: Vec<String> = words
        .map(|(index, word)| {
            if index == 0 {
                name(word).unwrap_or_default()
            } else {
                word.clone()
            }
        })
        .collect();
    let prompt = prompt.join(" ");
    let picture = render(args.title.as_deref().unwrap_or(&prompt), &prompt, &lines, seconds);
    std::fs::write(&args.out, picture).map_err(Failure::file(&args.out))
}

/// The lines of a run, as they come (also shown), and how long it took.
fn record(command: &[String]) -> Result<(Vec<Line>, f64)> {
    let Some((program, arguments)) = command.split_first() else {
        return Err(Failure::Usage("record needs a command after `--`".into()));
    };
    let started = Instant::now();
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(Failure::file(program))?;
    let (sender, receiver) = mpsc::channel();
    let both = [
        child
            .stdout
            .take()
            .map(|pipe| follow(pipe, started, sender.clone())),
        child.stderr.take().map(|pipe| follow(pipe, started, sender)),
    ];
    let lines: Vec<Line> = receiver
        .into_iter()
        .inspect(|line: &Line| println!("{:8.1} s  {}", line.seconds, line.text))
        .collect();
    for thread in both.into_iter().flatten() {
        let _it_reads_to_the_end = thread.join();
    }
    let status = child.wait().map_err(Failure::file(program))?;
    if status.success() {
        Ok((lines, started.elapsed().as_secs_f64()))
    } else {
        Err(Failure::Demonstration(format!(
            "{program} ended with {status}: no picture was written"
        )))
    }
}

fn follow(pipe: impl Read + Send + 'static, started: Instant, to: Sender<Line>) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        for text in BufReader::new(pipe).lines().map_while(Result::ok) {
            let seconds = started.elapsed().as_secs_f64();
            if to.send(Line { seconds, text }).is_err() {
                return;
            }
        }
    })
}

/// When each line is shown: in order, waits shortened alike where they are longer than [`LINE_SECONDS`].
fn shown_at(lines: &[Line], seconds: f64) -> Vec<f64> {
    let room = (SHOWN_SECONDS_MAX - LINE_SECONDS * (lines.len() + 1) as f64).max(1.0);
    let pace = (room / seconds.max(1e-9)).min(1.0);
    let steps = (1..=lines.len()).map(|line| line as f64 * LINE_SECONDS);
    lines
        .iter()
        .zip(steps)
        .map(|(line, steps)| line.seconds * pace + steps)
        .collect()
}

fn render(title: &str, prompt: &str, lines: &[Line], seconds: f64) -> String {
    let shown: Vec<String> = lines.iter().map(|line| shortened(&line.text)).collect();
    let prompt = shortened(&format!("$ {prompt}"));
    let note = format!(
        "{seconds:.1} s in all; the times are those of the run, the waits between them are shortened"
    );
    let columns = shown
        .iter()
        .chain([&prompt, &note])
        .map(|line| line.chars().count())
        .max()
        .unwrap_or(0);
    let width = TEXT_LEFT + (columns as f64 * CHARACTER_WIDTH).ceil() as usize + MARGIN;
    let height = (lines.len() + 4) * LINE_HEIGHT + 2 * MARGIN;
    let mut svg = format!(
        "<title>{}</title>\n\
         <style>text{{font:13px ui-monospace,Menlo,Consolas,\"DejaVu Sans Mono\",monospace;white-space:pre;fill:#d8dee9}}\
         .t{{fill:#7b88a1;text-anchor:end}}.p{{fill:#a3be8c}}.n{{fill:#7b88a1}}\
         g{{animation:show .05s both}}@keyframes show{{from{{opacity:0}}to{{opacity:1}}}}\
         @media (prefers-reduced-motion){{g{{animation:none}}}}</style>\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"#22272e\"/>\n\
         <text class=\"p\" x=\"{MARGIN}\" y=\"{}\" xml:space=\"preserve\">{}</text>\n",
        escaped(title),
        MARGIN + LINE_HEIGHT,
        escaped(&prompt)
    );
    // Writing to a string cannot fail.
    let mut put = |y: usize, at: f64, time: &str, class: &str, text: &str| {
        let _ = writeln!(
            svg,
            "<g style=\"animation-delay:{at:.2}s\"><text class=\"t\" x=\"{}\" y=\"{y}\">{time}</text>\
             <text class=\"{class}\" x=\"{TEXT_LEFT}\" y=\"{y}\" xml:space=\"preserve\">{}</text></g>",
            TEXT_LEFT - 14,
            escaped(text)
        );
    };
    let times = shown_at(lines, seconds);
    let mut before = String::new();
    for (index, ((line, text), at)) in lines.iter().zip(&shown).zip(&times).enumerate() {
        let time = format!("{:.1} s", line.seconds);
        // A time that repeats is shown once.
        let said = if time == before { "" } else { &time };
        put(MARGIN + (index + 2) * LINE_HEIGHT, *at, said, "l", text);
        before = time;
    }
    let last = times.last().copied().unwrap_or(0.0) + LINE_SECONDS;
    let note = format!(
        "{seconds:.1} s in all; the times are those of the run, the waits between them are shortened"
    );
    put(MARGIN + (lines.len() + 3) * LINE_HEIGHT, last, "", "n", &note);
    document(width as f64, height as f64, &svg)
}

fn shortened(line: &str) -> String {
    if line.chars().count() <= COLUMNS_MAX {
        return line.to_owned();
    }
    line.chars().take(COLUMNS_MAX - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_in_order_and_waits_are_shortened() {
        let line = |seconds: f64| Line {
            seconds,
            text: "a < b".into(),
        };
        let lines = [line(0.1), line(0.1), line(300.0)];
        let at = shown_at(&lines, 300.0);
        assert!(at[0] < at[1] && at[1] < at[2] && at[2] <= SHOWN_SECONDS_MAX);
        let svg = render("title", "x & y", &lines, 300.0);
        assert!(svg.contains("$ x &amp; y") && svg.contains("a &lt; b") && svg.contains(">300.0 s<"));
        assert_eq!(svg.matches("<g style").count(), 4);
        assert_eq!(svg.matches("http").count(), 1);
    }

    #[test]
    fn a_run_is_recorded_and_a_failure_is_not() {
        let shell = |script: &str| record(&["/bin/sh", "-c", script].map(str::to_owned));
        let (lines, _) = shell("echo one; echo two >&2").expect("a run");
        let mut texts: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
        texts.sort_unstable();
        assert_eq!(texts, ["one", "two"]);
        assert!(shell("exit 3").is_err());
    }
}
