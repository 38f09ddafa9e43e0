//! A run as one self-contained page: memory against the budget, disk rates, busy cores, and the table of
//! phases and steps. Below 640 pixels pictures shrink with larger letters, and the table has fewer columns:
//! nothing is cut.

use std::fmt::Write;

use super::device::Crossed;
use super::svg::{self, escaped};
use super::table::bytes;
use super::{Phase, Report, wear};

const STYLE: &str = ":root{color-scheme:light dark;--ink:#222;--dim:#666;--line:#ddd;--share:#cfe0f1;--paper:#fff}\
                     @media(prefers-color-scheme:dark){:root{--ink:#d8d8d8;--dim:#999;--line:#333a42;--share:#274563;--paper:#16191d}}\
                     body{font:15px/1.5 sans-serif;max-width:1020px;margin:2em auto;padding:0 1em;color:var(--ink);background:var(--paper)}\
                     h1{font-size:1.6em}.wide{overflow-x:auto}\
                     table{border-collapse:collapse;width:100%}\
                     th,td{padding:.25em .6em;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}th{white-space:normal;vertical-align:bottom}\
                     th:first-child,td:first-child{text-align:left}\
                     table.facts td{text-align:left;white-space:normal;overflow-wrap:anywhere}\
                     table.facts td:first-child{color:var(--dim);width:12em;overflow-wrap:normal}\
                     tr.step td{color:var(--dim);font-size:90%}tr.step td:first-child{padding-left:2em}\
                     tr.total td{font-weight:bold;border-top:2px solid var(--ink)}\
                     td.share{background:linear-gradient(var(--share),var(--share)) no-repeat left}\
                     svg{width:100%;height:auto;display:block}\
                     @media(max-width:640px){body{margin:1em auto;padding:0 .5em}.more,svg .name{display:none}\
                     th,td{padding:.2em .25em;font-size:12px}table.facts td:first-child{width:7em}tr.step td{font-size:11px}tr.step td:first-child{padding-left:.8em}\
                     td:first-child,td:last-child{white-space:normal}svg{overflow:visible;box-sizing:border-box;padding-left:12px}svg text{font-size:22px}}";

/// The page. `facts` are lines with a name and a value.
pub fn render(report: &Report, title: &str, facts: &[(&str, String)]) -> String {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n<table class=\"facts\">\n",
        title = escaped(title)
    );
    // Writing to a string cannot fail.
    let mut put = |text: std::fmt::Arguments<'_>| {
        let _ = page.write_fmt(text);
    };
    let total = report.total();
    let highest = ("most resident memory", bytes(total.peak_bytes));
    let budget = report.budget_bytes.map(|budget| ("budget", bytes(budget)));
    let limit = (report.limit_bytes).map(|limit| ("limit on the process", bytes(limit)));
    let leased = report.curve_of_phases().leased(1)[0];
    let leased = (leased > 0).then(|| ("most leased of it", bytes(leased)));
    let totals = [
        highest,
        ("seconds", format!("{:.2}", total.seconds)),
        ("read", bytes(total.bytes_read)),
        ("written", bytes(total.bytes_written)),
        ("a drive of 600 TBW takes", takes(total.bytes_written)),
    ];
    for (name, value) in facts
        .iter()
        .cloned()
        .chain(limit)
        .chain(budget)
        .chain(leased)
        .chain(totals)
    {
        put(format_args!(
            "<tr><td>{}</td><td>{}</td></tr>\n",
            escaped(name),
            escaped(&value)
        ));
    }
    put(format_args!(
        "</table>\n<h2>Memory</h2>\n<div class=\"wide\">\n{}</div>\n<h2>Disk</h2>\n<div class=\"wide\">\n{}</div>\n\
         <h2>Processors</h2>\n<div class=\"wide\">\n{}</div>\n<h2>Phases</h2>\n<div class=\"wide\">\n<table>\n<tr><th>phase</th><th>seconds</th>\
         <th>read</th><th>written</th><th>peak memory</th><th class=\"more\">processors, s</th>\
         <th class=\"more\">waited for the disk, s</th><th class=\"more\">waited for a processor, s</th>\
         <th class=\"more\">idle, s</th><th>bound by</th></tr>\n",
        svg::render(report, "resident memory over time"),
        svg::render_rates(report, "disk, bytes a second"),
        svg::render_cores(report, "busy cores")
    ));
    for phase in &report.phases {
        put(format_args!("{}", row(phase, total.seconds, "")));
        for step in &phase.steps {
            put(format_args!("{}", row(step, total.seconds, " class=\"step\"")));
        }
    }
    if report.phases.len() > 1 {
        put(format_args!("{}", row(&total, total.seconds, " class=\"total\"")));
    }
    put(format_args!(
        "</table>\n</div>\n{}</body>\n</html>\n",
        on_devices(report)
    ));
    page
}

/// The table of what crossed to devices and back; none without devices.
fn on_devices(report: &Report) -> String {
    let Some(total) = report.total().device else {
        return String::new();
    };
    let mut text = "<h2>Devices</h2>\n<div class=\"wide\">\n<table>\n<tr><th>phase</th><th>to device</th><th>from pageable memory</th>\
                    <th>from device</th><th>to pageable memory</th><th>hard synchronisations</th><th>kernels</th><th>busy, s</th><th>idle, s</th></tr>\n"
        .to_owned();
    let mut row = |name: &str, crossed: Option<Crossed>, class: &str| {
        let Some(crossed) = crossed else { return };
        let _infallible = writeln!(
            text,
            "<tr{class}><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{:.3}</td><td>{:.3}</td></tr>",
            escaped(name),
            bytes(crossed.counts.to_device_bytes),
            bytes(crossed.counts.to_device_pageable_bytes),
            bytes(crossed.counts.from_device_bytes),
            bytes(crossed.counts.from_device_pageable_bytes),
            crossed.counts.hard_syncs,
            crossed.counts.kernels,
            crossed.busy_seconds,
            crossed.idle_seconds
        );
    };
    for phase in &report.phases {
        row(&phase.name, phase.device, "");
        for step in &phase.steps {
            row(&step.name, step.device, " class=\"step\"");
        }
    }
    row("total", Some(total), " class=\"total\"");
    text + "</table>\n</div>\n"
}

/// How often a drive takes what a run writes.
fn takes(bytes_written: u64) -> String {
    match wear::runs_a_day(bytes_written) {
        None => "any number of such runs: nothing is written".into(),
        Some(runs) => format!("{runs} such runs a day for {} years", wear::RATED_YEARS),
    }
}

/// A line of the table; behind its seconds, their share of `all_seconds` as a bar.
fn row(phase: &Phase, all_seconds: f64, class: &str) -> String {
    format!(
        "<tr{class}><td>{}</td><td class=\"share\" style=\"background-size:{:.1}% 100%\">{:.2}</td><td>{}</td><td>{}</td>\
         <td>{}</td><td class=\"more\">{:.2}</td><td class=\"more\">{:.2}</td><td class=\"more\">{:.2}</td>\
         <td class=\"more\">{:.2}</td><td>{}</td></tr>\n",
        escaped(&phase.name),
        100.0 * phase.seconds / all_seconds.max(1e-9),
        phase.seconds,
        bytes(phase.bytes_read),
        bytes(phase.bytes_written),
        bytes(phase.peak_bytes),
        phase.processor_seconds,
        phase.waited_seconds,
        phase.queued_seconds,
        phase.idle_seconds,
        phase.bound.words()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Recorder;

    #[test]
    fn a_page_has_a_table_of_devices_where_there_are_some() {
        let mut recorder = Recorder::start();
        let done: Result<(), ()> = recorder.phase("prove", |_| Ok(()));
        assert_eq!(done, Ok(()));
        let mut report = recorder.finish();
        assert!(!render(&report, "title", &[]).contains("Devices"));
        let crossed = crate::device::OnDevices {
            devices: 1,
            counts: crate::device::Counts {
                to_device_bytes: 3 << 20,
                hard_syncs: 7,
                ..crate::device::Counts::default()
            },
            busy_seconds: 0.0,
        };
        report.phases[0].device = Crossed::between(None, Some(crossed), 2.0);
        let page = render(&report, "title", &[]);
        assert!(
            page.contains("<h2>Devices</h2>") && page.contains("<td>3.0 MiB</td>"),
            "{page}"
        );
        assert!(
            page.contains("<td>7</td>") && page.contains("<td>2.000</td>"),
            "{page}"
        );
    }

    #[test]
    fn a_page_stands_alone() {
        let mut recorder = Recorder::start();
        let done: Result<(), ()> = recorder.phase("a < b", |_| Ok(()));
        assert_eq!(done, Ok(()));
        let page = render(&recorder.finish(), "title", &[("circuit", "chain & co".into())]);
        assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
        assert!(page.contains("a &lt; b") && page.contains("chain &amp; co"));
        assert_eq!(page.matches("<svg ").count(), 3);
        // Nothing is fetched: the only address is the name of SVG's namespace.
        assert_eq!(page.matches("http").count(), 3);
        assert!(!page.contains("NaN") && !page.contains("<script") && !page.contains("src="));
    }
}
