//! The page of a run of some seconds: small, with an axis that ends with the run, and without what was
//! measured before it.
#![allow(clippy::unwrap_used)]

use spillproof_report::curve::{Curve, Mark, Sample};
use spillproof_report::{Bound, Phase, Report, html, machine, svg};

const MIB: u64 = 1 << 20;

fn phase(name: &str, started_seconds: f64, seconds: f64, steps: Vec<Phase>) -> Phase {
    Phase {
        name: name.into(),
        started_seconds,
        seconds,
        bytes_read: 64 * MIB,
        bytes_written: 32 * MIB,
        peak_bytes: 47 * MIB,
        processor_seconds: 1.4 * seconds,
        waited_seconds: 0.1,
        queued_seconds: 0.1,
        idle_seconds: 0.2,
        bound: Bound::Compute,
        device: None,
        steps,
    }
}

/// Twenty seconds: rates of the machine are measured in the first one, and phases are under way from 1.5 to
/// 19 seconds.
fn run() -> Report {
    let steps = ["synthesize", "commit advice", "lookups", "quotient", "opening"];
    let steps = (steps.iter().enumerate())
        .map(|(index, step)| phase(step, 7.0 + 2.0 * index as f64, 2.0, vec![]))
        .collect();
    let phases = vec![
        phase("parameters", 1.5, 4.0, vec![]),
        phase("verifying key", 5.5, 0.5, vec![]),
        phase("proving key", 6.0, 0.4, vec![]),
        phase("prove", 6.4, 12.6, steps),
    ];
    let samples = (0..2000u64).map(|index| {
        let seconds = index as f64 / 100.0;
        let resident = 18.0 + 28.0 * (seconds / 3.0).sin().abs() * f64::from(u8::from(seconds > 5.5));
        // 2 GiB in the first second, then 5 MiB in each.
        let measured = 2048.0 * seconds.min(1.0);
        Sample {
            seconds,
            resident_bytes: (resident * MIB as f64) as u64,
            leased_bytes: ((resident * 0.6) * MIB as f64) as u64,
            bytes_read: ((measured + 5.0 * seconds) * MIB as f64) as u64,
            bytes_written: ((measured + 3.0 * seconds) * MIB as f64) as u64,
            processor_seconds: 1.4 * seconds,
        }
    });
    let marks = phases.iter().map(|phase| Mark {
        name: phase.name.clone(),
        seconds: phase.started_seconds,
    });
    Report {
        curve: Curve {
            samples: samples.collect(),
            marks: marks.collect(),
        },
        phases,
        budget_bytes: Some(32 * MIB),
        limit_bytes: Some(64 * MIB),
    }
}

#[test]
fn a_page_of_some_seconds() {
    let report = run();
    let mut facts = machine::facts();
    facts.push(("command", "spillproof prove --k 14 --limit 64MiB".into()));
    let page = html::render(&report, "a proof", &facts);
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    std::fs::write(folder.join("page.html"), &page).unwrap();
    assert!(page.len() < 100_000, "{} bytes", page.len());
    for word in [
        "prefers-color-scheme:dark",
        "<td>limit on the process</td><td>64.0 MiB</td>",
        ">48 MiB</text>",
        ">17.5 s</text>",
        ">15 s</text>",
        "prove: quotient",
        "<td>date</td>",
    ] {
        assert!(page.contains(word), "{word}");
    }
    // On a narrow screen nothing is wider than the page.
    assert!(!page.contains("min-width:640") && page.contains("@media(max-width:640px)"));
    assert!(!page.contains(">20 s</text>") && !page.contains("NaN") && !page.contains("inf"));
    let rates = svg::render_rates(&report, "rates");
    assert!(rates.contains(">4 MiB/s</text>"), "no spike of the first second");
    assert!(!rates.contains("GiB/s"));
}
