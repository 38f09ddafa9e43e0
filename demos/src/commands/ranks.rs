//! `spillproof ranks`: what is between the ranks of a job.

use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;
use spillproof_circom::json::curve_name;
use spillproof_engine::Session;
use spillproof_engine::accelerator::Answer;
use spillproof_engine::budget::ByteSize;
use spillproof_engine::plan::Rates;
use spillproof_gpu::accelerator::{DeviceRates, Offload};
use spillproof_ranks::{Link, Ranks, measure_link};

use super::on_gpu::OnGpu;
use super::temporary::{Removed, scratch_file};
use crate::args::{self, Global, RanksBench};
use crate::failure::Failure;
use crate::link::{LinkFigures, Measured, RankFigures};
use crate::pace;
use crate::ranks::Job;
use crate::report::table::{bytes, grid};
use crate::run::{Result, Run, start_global_threads};
use crate::trial::Example;

/// The budget of a rank, unless another one is asked for.
const BUDGET_BYTES: u64 = 128 << 20;
/// How often rates are measured.
const TURNS: usize = 3;

/// Runs the command.
///
/// # Errors
/// [`Failure::Usage`] of a rank alone; those of ranks, disk and budget.
pub fn run(global: &Global, command: &args::Ranks) -> Result<()> {
    let args::Ranks::Bench(args) = command;
    let Some(job) = Job::join(&args.messages, 0)? else {
        let build = match cfg!(feature = "mpi") {
            true => "",
            false => ", with a program that `cargo build --release --features mpi` built",
        };
        return Err(Failure::Usage(format!(
            "the link between ranks is measured, and this process is one rank alone: start several, as with mpirun -n 2 spillproof ranks bench{build}"
        )));
    };
    let measured = bench(&job.quiet(global), args, &job);
    job.end(measured)
}

#[derive(Serialize)]
struct Benched {
    #[serde(flatten)]
    measured: Measured,
    /// Bytes of a message.
    piece_bytes: usize,
    /// Bytes of each stream.
    stream_bytes: u64,
}

fn bench(global: &Global, args: &RanksBench, job: &Job) -> Result<()> {
    let mut run = Run::start(global);
    let session = run.session(ByteSize::Bytes(BUDGET_BYTES))?;
    let gpu = OnGpu::open_of_rank(&args.gpu, Offload::Measured, job.neighbours()?, false)?;
    job.check_devices(&gpu.uuids(), args.gpu.vram != ByteSize::Auto)?;
    let ranks = job.ranks(b"ranks bench", session.budget().limit_bytes())?;
    let stream_bytes = match args.bytes {
        ByteSize::Bytes(bytes) => bytes,
        ByteSize::Auto => {
            return Err(Failure::Usage(
                "--bytes is a number of bytes, and auto is none".into(),
            ));
        }
    };
    let link = run
        .recorder
        .phase("link", |_| link_of(&session, &ranks, stream_bytes))?;
    let of_ranks = speeds_of(&mut run, (&session, &gpu), &ranks, args)?;
    let (Some(link), Some(of_ranks)) = (link, of_ranks) else {
        return Ok(());
    };
    let benched = Benched {
        measured: Measured {
            link: link.into(),
            curve: Some(curve_name(args.curve.into()).into()),
            ranks: of_ranks,
        },
        piece_bytes: ranks.piece_bytes(),
        stream_bytes,
    };
    run.say(text(&benched));
    run.finish_without_table("ranks bench", &benched)?;
    Ok(())
}

fn link_of(session: &Session, ranks: &Ranks, stream_bytes: u64) -> Result<Option<Link>> {
    let held_bytes = 2 * ranks.buffer_bytes() + ranks.held_bytes();
    let _lease = session.budget().lease(held_bytes as u64, "messages")?;
    Ok(measure_link(ranks, stream_bytes).map_err(spillproof_engine::Error::from)?)
}

/// How fast all ranks are at one time, on rank 0: ranks of one machine share its disk and its cores.
fn speeds_of(
    run: &mut Run,
    (session, gpu): (&Arc<Session>, &OnGpu),
    ranks: &Ranks,
    args: &RanksBench,
) -> Result<Option<Vec<RankFigures>>> {
    let together = || ranks.barrier().map_err(spillproof_engine::Error::from);
    together()?;
    let rates = run.recorder.phase("rates", |_| best_rates(session))?;
    let files = ["trial-key", "trial-witness"].map(|what| scratch_file(&run.global, what));
    let files = files.each_ref().map(PathBuf::as_path);
    let _removed = files.map(Removed);
    start_global_threads()?;
    let trial = Example::write((args.curve.into(), args.k), files)?;
    together()?;
    let trial = trial.prove(run, session, &rates)?;
    together()?;
    let gpu = match gpu {
        OnGpu::Accelerator { accelerator, .. } => {
            let measured = run
                .recorder
                .phase("GPU", |_| session.run(|| accelerator.rates(session.budget())))?;
            match measured {
                Answer::Done(rates) => Some(rates),
                Answer::Declined(why) => {
                    tracing::warn!(rank = ranks.rank(), why, "the rates of a device are not measured");
                    None
                }
            }
        }
        OnGpu::Off | OnGpu::None(_) => None,
    };
    let own = RankFigures {
        rank: ranks.rank(),
        host: pace::host(),
        threads: session.threads(),
        rates,
        trial,
        gpu,
    };
    let gathered = ranks.gather(0, &serde_json::to_vec(&own)?);
    let gathered = gathered.map_err(spillproof_engine::Error::from)?;
    let parsed = |figures: Vec<Vec<u8>>| -> Result<Vec<RankFigures>> {
        figures
            .iter()
            .map(|figures| Ok(serde_json::from_slice(figures)?))
            .collect()
    };
    gathered.map(parsed).transpose()
}

/// The best of some turns: while one was measured, another program may have used the disk.
fn best_rates(session: &Session) -> Result<Rates> {
    let turn = || session.run(|| Rates::measure(session.workspace()));
    let mut best = turn()?;
    for _ in 1..TURNS {
        let rates = turn()?;
        best = Rates {
            bytes_read: best.bytes_read.max(rates.bytes_read),
            bytes_written: best.bytes_written.max(rates.bytes_written),
            butterflies: best.butterflies.max(rates.butterflies),
            additions: best.additions.max(rates.additions),
            products: best.products.max(rates.products),
        };
    }
    Ok(best)
}

fn text(benched: &Benched) -> String {
    let Measured { link, ranks, .. } = &benched.measured;
    let LinkFigures {
        latency_seconds,
        port_bytes_per_second: port,
        switch_bytes_per_second: switch,
    } = *link;
    let per_second = |rate: f64| format!("{}/s ({:.2} Gbit/s)", bytes(rate as u64), rate * 8e-9);
    let mut text = format!(
        "{} ranks, messages of {}, streams of {}\n\
         latency of a message       {:.1} us\n\
         two ranks to each other    {} in each direction\n\
         all ranks to each other    {}\n\n",
        ranks.len(),
        bytes(benched.piece_bytes as u64),
        bytes(benched.stream_bytes),
        latency_seconds * 1e6,
        per_second(port),
        match switch {
            Some(switch) => format!("{} together", per_second(switch)),
            None => "as fast as two".into(),
        },
    );
    let row = |figures: &RankFigures| {
        let RankFigures {
            rank,
            host,
            threads,
            rates,
            trial,
            ..
        } = figures;
        let millions = |rate: f64| format!("{:.2} M/s", rate / 1e6);
        [
            rank.to_string(),
            host.clone(),
            threads.to_string(),
            format!("{}/s", bytes(rates.bytes_read as u64)),
            format!("{}/s", bytes(rates.bytes_written as u64)),
            millions(rates.additions),
            millions(rates.butterflies),
            millions(rates.products),
            format!("{:.2}", trial.factor("sum over A")),
            format!("{:.2}", trial.factor("quotient")),
        ]
    };
    let rows: Vec<_> = ranks.iter().map(row).collect();
    text += &grid(
        &[
            "rank",
            "host",
            "threads",
            "reads",
            "writes",
            "additions",
            "butterflies",
            "products",
            "sum",
            "transforms",
        ],
        &rows,
        rows.len(),
    );
    for figures in ranks {
        if let Some(DeviceRates { sums, transforms }) = &figures.gpu {
            let layers = f64::from(1 << 20) * 20.0;
            text += &format!(
                "rank {}: a GPU with {:.2} M terms/s of a sum, and a transform of 2^20 in {:.3} s\n",
                figures.rank,
                1e-6 / sums.device_each.max(f64::MIN_POSITIVE),
                transforms.device_fixed + transforms.device_each * layers
            );
        }
    }
    text + "each rank while the others did the same; sum, transforms: their time in a proof, of the time at these rates\n\
            groth16 plan --link FILE takes this command's --json"
}
