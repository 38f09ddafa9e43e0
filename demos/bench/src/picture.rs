//! The benchmarks as pictures: ratios as bars, and time against memory, rows and threads where those were
//! varied.

use spillproof_circuits::Kind;
use spillproof_cli::report::svg::Picture;
use spillproof_cli::report::table::bytes;

use crate::chart::{self, Series, Vertical};
use crate::kernels::Line;
use crate::prover::Compared;

/// All of it, one picture below the other.
pub fn render(kernels: &[Line], provers: &[Compared]) -> String {
    let mut bars: Vec<(String, f64)> = (kernels.iter())
        .map(|line| (format!("{}, {}", line.what, line.peer), line.ratio))
        .collect();
    for prover in provers {
        let budget = prover.ours.budget_bytes.map_or("no budget".into(), bytes);
        let name = format!(
            "{:?} 2^{}, {budget}, {} threads",
            prover.circuit, prover.k, prover.threads
        );
        bars.push((format!("{name}, keys"), prover.keygen_ratio));
        bars.push((format!("{name}, proof"), prover.prove_ratio));
    }
    let mut pictures = vec![chart::ratios("time, by that of the peer in memory", &bars)];
    pictures.extend(
        provers
            .iter()
            .filter(|prover| !prover.curve.is_empty())
            .map(curve),
    );
    let varied = |of: fn(&Compared) -> u64| provers.iter().any(|prover| of(prover) != of(&provers[0]));
    if varied(|prover| u64::from(prover.k)) {
        let rows = |k: f64| format!("2^{:.0} rows", k.log2());
        let x = |prover: &Compared| f64::from(prover.k).exp2();
        pictures.push(chart::lines(
            "time of a proof, by rows",
            rows,
            Vertical::Logarithmic,
            &series(provers, x),
        ));
    }
    if varied(|prover| prover.threads as u64) {
        let threads = |threads: f64| format!("{threads:.0} threads");
        let x = |prover: &Compared| prover.threads as f64;
        pictures.push(chart::lines(
            "time of a proof, by threads",
            threads,
            Vertical::Logarithmic,
            &series(provers, x),
        ));
    }
    Picture::stack(pictures)
}

/// Time against the resident memory, measured from outside.
fn curve(prover: &Compared) -> Picture {
    let ours = prover.curve.iter().map(|point| {
        let budget = point.budget_bytes.map_or("all memory".into(), bytes);
        (point.taken.peak_bytes as f64, point.taken.prove_seconds, budget)
    });
    let stock = (
        prover.stock.peak_bytes as f64,
        prover.stock.prove_seconds,
        String::new(),
    );
    let series = [
        Series {
            name: "spillproof, by its budget".into(),
            points: ours.collect(),
        },
        Series {
            name: "unmodified halo2-axiom 0.5.3".into(),
            points: vec![stock],
        },
    ];
    let title = format!(
        "{:?}, 2^{} rows, {} threads: time of a proof against resident memory",
        prover.circuit, prover.k, prover.threads
    );
    chart::lines(&title, |memory| bytes(memory as u64), Vertical::Linear, &series)
}

/// Ours and stock, for each circuit.
fn series(provers: &[Compared], x: impl Fn(&Compared) -> f64) -> Vec<Series> {
    let mut all = Vec::new();
    for kind in [Kind::Chain, Kind::Wide, Kind::Lookups, Kind::Machine] {
        let of = |name: &str, seconds: fn(&Compared) -> f64| Series {
            name: format!("{kind:?}, {name}"),
            points: (provers.iter())
                .filter(|prover| prover.circuit == kind)
                .map(|prover| (x(prover), seconds(prover), format!("{:.1} s", seconds(prover))))
                .collect(),
        };
        all.push(of("spillproof", |prover| prover.ours.taken.prove_seconds));
        all.push(of("unmodified", |prover| prover.stock.prove_seconds));
    }
    all.retain(|series| !series.points.is_empty());
    all
}
