//! Plans are compared with runs: bytes within 5 %, the peak within 10 %; the smallest budget works, a quarter
//! less is refused. What an accelerator is asked for is what was planned.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use halo2_axiom::spillproof::OpeningScheme;
use spillproof_circuits::axiom::dropin::{proof, prover};
use spillproof_circuits::{Kind, Scheme};
use spillproof_engine::Session;
use spillproof_engine::accelerator::{Accelerator, Answer, Coset, Sums, Totals, Transform};
use spillproof_engine::budget::{Budget, ByteSize};
use spillproof_engine::plan::{GRAIN_BYTES, Job, Offer, Phase, Plan, Rates};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

const THREADS: usize = 2;

fn planned(kind: Kind, k: u32, scheme: Scheme, budget_bytes: u64) -> spillproof_engine::Result<Plan> {
    shape(kind, k, scheme).plan(budget_bytes, THREADS, &Rates::default())
}

fn shape(kind: Kind, k: u32, scheme: Scheme) -> halo2_axiom::spillproof::Shape {
    let scheme = match scheme {
        Scheme::Shplonk => OpeningScheme::Shplonk,
        Scheme::Gwc => OpeningScheme::Gwc,
    };
    halo2_axiom::spillproof::shape(&proof::constraint_system(kind), k, 1, scheme)
}

fn session(dir: &Path, budget_bytes: u64, accelerator: Option<&Arc<Recording>>) -> Arc<Session> {
    let mut builder = Session::builder()
        .memory(ByteSize::Bytes(budget_bytes))
        .dir(dir)
        .threads(THREADS);
    if let Some(accelerator) = accelerator {
        builder = builder.accelerator(Arc::clone(accelerator) as Arc<dyn Accelerator>);
    }
    Arc::new(builder.build().unwrap())
}

/// What a phase takes: the peak, bytes read, bytes written.
pub type Taken = [u64; 3];
const NAMES: [&str; 3] = ["peak", "read", "written"];
const TOLERANCES: [f64; 3] = [0.10, 0.05, 0.05];

pub fn measured<T>(session: &Session, work: impl FnOnce() -> T) -> (T, Taken) {
    session.budget().restart_peak();
    let before = session.storage().stats();
    let made = work();
    let after = session.storage().stats();
    let read = after.bytes_read - before.bytes_read;
    let written = after.bytes_written - before.bytes_written;
    (made, [session.budget().peak_bytes(), read, written])
}

/// Keys and a proof; gives what each phase took.
fn happens(kind: Kind, k: u32, scheme: Scheme, budget_bytes: u64) -> [(Phase, Taken); 3] {
    happens_with(None, (kind, k, scheme, budget_bytes)).map(|(phase, taken, _)| (phase, taken))
}

/// The same with an accelerator that records its offers, and the offers of each phase.
fn happens_with(
    accelerator: Option<&Arc<Recording>>,
    (kind, k, scheme, budget_bytes): (Kind, u32, Scheme, u64),
) -> [(Phase, Taken, Vec<Offer>); 3] {
    // A process has one current session.
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let dir = tempfile::tempdir().unwrap();
    let session = session(dir.path(), budget_bytes, accelerator);
    let offered = || {
        accelerator
            .map(|accelerator| accelerator.all())
            .unwrap_or_default()
    };
    let _current = session.install();
    let params = proof::insecure_params(k, 1);
    assert_eq!(offered(), [], "parameters are the processor's");
    let (key, vk) = measured(&session, || proof::verifying_key(&params, kind, k).unwrap());
    let of_vk = offered();
    let (key, pk) = measured(&session, || prover::proving_key(&params, key, kind, k).unwrap());
    let of_pk = offered();
    let (_, proved) = measured(&session, || {
        prover::prove(&params, &key, kind, k, 7, scheme).unwrap()
    });
    [
        (Phase::VerifyingKey, vk, of_vk),
        (Phase::ProvingKey, pk, of_pk),
        (Phase::Proof, proved, offered()),
    ]
}

/// Writes down what it is offered, and declines it.
#[derive(Debug, Default)]
struct Recording(Mutex<Vec<Offer>>);

impl Recording {
    fn enter<T>(&self, job: Job, budget: &Budget) -> spillproof_engine::Result<Answer<T>> {
        self.0.lock().unwrap().push(Offer {
            job,
            count: 1,
            available_bytes: budget.available_bytes(),
        });
        Ok(Answer::Declined("it is only written down".into()))
    }

    /// What was offered since this was asked last.
    fn all(&self) -> Vec<Offer> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl Accelerator for Recording {
    fn sums(&self, job: &mut Sums<'_>, budget: &Budget) -> spillproof_engine::Result<Answer<Totals>> {
        let points = job.scalars.iter().map(|scalars| scalars.len).max();
        let leased = job.scalars.iter().map(|scalars| scalars.source.lease_bytes());
        let job = Job::Sums {
            points: points.unwrap_or(0),
            bases: job.bases.counts(),
            columns: job.scalars.len() as u64,
            step: job.parts.as_ref().map(|parts| parts.step),
            bases_bytes: job.bases.iter().map(|bases| bases.source.lease_bytes()).sum(),
            scalars_bytes: leased.max().unwrap_or(0),
        };
        self.enter(job, budget)
    }

    fn transform(&self, job: &mut Transform<'_>, budget: &Budget) -> spillproof_engine::Result<Answer<()>> {
        self.enter(Job::Transform { log_n: job.log_n }, budget)
    }

    fn quotient(&self, job: &mut Coset<'_>, budget: &Budget) -> spillproof_engine::Result<Answer<()>> {
        let job = Job::Coset {
            log_rows: job.log_rows,
            log_columns: job.log_columns,
            columns: job.inputs.len() as u64,
            ends_bytes: job.in_tiles.lease_bytes(),
        };
        self.enter(job, budget)
    }
}

#[test]
fn an_accelerator_is_offered_what_is_planned() {
    let _alone = alone();
    for (kind, k, scheme, budget_bytes) in [
        (Kind::Chain, 6, Scheme::Gwc, 3 << 20),
        (Kind::Chain, 11, Scheme::Shplonk, 4 << 20),
        (Kind::Lookups, 8, Scheme::Shplonk, 16 << 20),
        (Kind::Lookups, 11, Scheme::Gwc, 6 << 20),
        (Kind::Lookups, 11, Scheme::Shplonk, 24 << 20),
        (Kind::Wide, 8, Scheme::Shplonk, 32 << 20),
    ] {
        let accelerator = Arc::new(Recording::default());
        let plan = {
            let dir = tempfile::tempdir().unwrap();
            let shape =
                shape(kind, k, scheme).in_session(&session(dir.path(), budget_bytes, Some(&accelerator)));
            shape.plan(budget_bytes, THREADS, &Rates::default()).unwrap()
        };
        for (phase, _, offered) in happens_with(Some(&accelerator), (kind, k, scheme, budget_bytes)) {
            let mut made: Vec<Offer> = Vec::new();
            for offer in offered {
                match made.iter_mut().find(|known| known.job == offer.job) {
                    Some(known) => {
                        known.count += 1;
                        known.available_bytes = known.available_bytes.min(offer.available_bytes);
                    }
                    None => made.push(offer),
                }
            }
            // Steps of one name are one, so the order may differ.
            let sorted = |mut offers: Vec<Offer>| {
                offers.sort_by_key(|offer| format!("{offer:?}"));
                offers
            };
            let what = format!("{kind:?} {k} {scheme:?} {budget_bytes}, {}", phase.name());
            assert!(!made.is_empty(), "{what}");
            assert_eq!(sorted(plan.of(Some(phase)).offers), sorted(made), "{what}");
        }
    }
}

/// One test at a time: a span that another thread meets first, while there is just one subscriber, is
/// switched off for all of them (`tracing` asks that thread's subscriber, and it has none).
pub fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where a phase took more or less than was planned, by more than is tolerated; a line each.
pub fn differences(what: &str, plan: &Plan, phase: Phase, happened: Taken) -> Vec<String> {
    let total = plan.of(Some(phase));
    let planned: Taken = [total.peak_bytes, total.bytes_read, total.bytes_written];
    let mut wrong = Vec::new();
    for at in 0..3 {
        let off = if planned[at] == happened[at] {
            0.0
        } else {
            planned[at] as f64 / happened[at] as f64 - 1.0
        };
        let line = format!(
            "{what}, {}, {}: {} planned, {} happened, {:+.2} %",
            phase.name(),
            NAMES[at],
            planned[at],
            happened[at],
            100.0 * off
        );
        println!("{line}");
        if off.abs() > TOLERANCES[at] {
            wrong.push(line);
        }
    }
    wrong
}

#[test]
fn what_is_planned_happens() {
    let _alone = alone();
    let mut wrong = Vec::new();
    for (kind, k, scheme, budget_bytes) in [
        (Kind::Chain, 10, Scheme::Shplonk, 4 << 20),
        (Kind::Chain, 13, Scheme::Shplonk, 4 << 20),
        (Kind::Chain, 13, Scheme::Gwc, 24 << 20),
        (Kind::Lookups, 11, Scheme::Gwc, 6 << 20),
        (Kind::Lookups, 12, Scheme::Shplonk, 16 << 20),
    ] {
        let plan = match planned(kind, k, scheme, budget_bytes) {
            Ok(plan) => plan,
            Err(error) => {
                wrong.push(format!("{kind:?} {k}: {error}"));
                continue;
            }
        };
        for (phase, happened) in happens(kind, k, scheme, budget_bytes) {
            let what = format!("{kind:?} {k} {scheme:?} {} MiB", budget_bytes >> 20);
            wrong.extend(differences(&what, &plan, phase, happened));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_smallest_budget_works_and_a_quarter_less_is_refused() {
    let _alone = alone();
    for (kind, k) in [(Kind::Chain, 11), (Kind::Lookups, 11)] {
        let plan = planned(kind, k, Scheme::Shplonk, 1 << 30).unwrap();
        let smallest = plan.smallest_budget_bytes;
        println!("{kind:?} {k}: {smallest} bytes");
        let refused = planned(kind, k, Scheme::Shplonk, smallest / 4 * 3);
        assert!(matches!(
            refused,
            Err(spillproof_engine::Error::BudgetTooSmall { needed_bytes, .. }) if needed_bytes == smallest
        ));
        happens(kind, k, Scheme::Shplonk, smallest);
    }
}

/// Four times the rows take twice the memory.
#[test]
fn the_smallest_budget_grows_with_the_square_root_of_the_rows() {
    let _alone = alone();
    let smallest = |kind, k| {
        let plan = planned(kind, k, Scheme::Shplonk, 1 << 40).unwrap();
        println!("{kind:?} {k}: {} bytes", plan.smallest_budget_bytes);
        plan.smallest_budget_bytes
    };
    for (kind, k, most_mib) in [
        (Kind::Chain, 20, 16),
        (Kind::Chain, 24, 64),
        // The field has roots of unity for 2^26 rows in four cosets.
        (Kind::Chain, 26, 128),
        (Kind::Lookups, 24, 64),
        (Kind::Wide, 24, 160),
    ] {
        let found = smallest(kind, k);
        assert!(found <= most_mib << 20, "{kind:?} {k}: {found} bytes");
    }
    for kind in [Kind::Chain, Kind::Wide] {
        let [few, many] = [20, 26].map(|k| smallest(kind, k));
        assert!(many <= 9 * few, "{kind:?}: {few} bytes grow to {many}");
    }
}

/// Columns that are kept in memory leave what later steps need: a short circuit of many columns works in its
/// smallest budget and in all larger ones, and a smaller one is refused before anything is written.
#[test]
fn every_budget_from_the_smallest_on_works() {
    let _alone = alone();
    for (kind, k) in [(Kind::Wide, 9), (Kind::Lookups, 8), (Kind::Chain, 8)] {
        let smallest = planned(kind, k, Scheme::Gwc, 1 << 30)
            .unwrap()
            .smallest_budget_bytes
            .max(
                planned(kind, k, Scheme::Shplonk, 1 << 30)
                    .unwrap()
                    .smallest_budget_bytes,
            );
        for sixteenths in [16, 17, 20, 24, 32, 48, 80, 200] {
            let budget_bytes = smallest / 16 * sixteenths;
            println!("{kind:?} {k}: {budget_bytes} bytes");
            happens(kind, k, Scheme::Shplonk, budget_bytes.max(smallest));
        }
        let dir = tempfile::tempdir().unwrap();
        let session = Session::builder()
            .memory(ByteSize::Bytes(smallest - GRAIN_BYTES))
            .dir(dir.path());
        let session = Arc::new(session.threads(THREADS).build().unwrap());
        let _current = session.install();
        let params = proof::insecure_params(k, 1);
        let written = session.storage().stats().bytes_written;
        let refusal = proof::verifying_key(&params, kind, k).unwrap_err().to_string();
        let needed = smallest.to_string();
        assert!(refusal.contains(&needed), "{refusal} does not name {needed}");
        assert_eq!(session.storage().stats().bytes_written, written);
    }
}

/// Runs the binary with room for its scratch files in `dir`, and gives the last JSON value that it writes.
fn spillproof(dir: &Path, arguments: &str) -> serde_json::Value {
    let output = Command::new(env!("CARGO_BIN_EXE_spillproof"))
        .args(arguments.split_whitespace())
        .args(["--json", "--threads", "2", "--dir"])
        .arg(dir)
        .current_dir(dir)
        .env_remove("SPILLPROOF_MEMORY")
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments}: {output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let values = serde_json::Deserializer::from_str(&text).into_iter();
    values.map(Result::unwrap).last().unwrap()
}

/// A plan counts the parameters that are there already; reading them from a file must not take more.
#[test]
fn the_smallest_budget_reads_parameters_and_proves() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    for (circuit, k) in [("chain", 10), ("lookups", 10), ("chain", 14)] {
        let shape = format!("--circuit {circuit} --k {k}");
        spillproof(dir, &format!("srs gen --k {k} --out {k}.srs"));
        spillproof(dir, &format!("srs export {k}.srs --out {k}.params --format raw"));
        std::fs::remove_file(dir.join(format!("{k}.srs"))).unwrap();
        let plan = spillproof(dir, &format!("plan {shape} --memory 1GiB"));
        let smallest = plan["result"]["plan"]["smallest_budget_bytes"].as_u64();
        let smallest = smallest.unwrap_or_else(|| panic!("{plan}"));
        println!("{shape}: {smallest} bytes");
        let made = |out: &str, how: &str| {
            spillproof(
                dir,
                &format!("prove {shape} --params {k}.params --out {out} {how}"),
            );
            std::fs::read(dir.join(out)).unwrap()
        };
        let within = made("within", &format!("--memory {smallest}"));
        assert!(within == made("memory", "--no-session"), "{shape}: another proof");
        // The unmodified crate reads the same parameters.
        spillproof(dir, &format!("verify {shape} --params {k}.params within"));
    }
}

/// The names of the drop-in's spans.
#[derive(Clone, Default)]
struct Names(Arc<Mutex<BTreeSet<&'static str>>>);

impl<S: tracing::Subscriber> Layer<S> for Names {
    fn on_new_span(&self, span: &tracing::span::Attributes<'_>, _: &tracing::span::Id, _: Context<'_, S>) {
        if span.metadata().target() == "spillproof::step" {
            self.0.lock().unwrap().insert(span.metadata().name());
        }
    }
}

#[test]
fn planned_steps_have_the_names_of_the_spans() {
    let _alone = alone();
    for (kind, scheme) in [(Kind::Chain, Scheme::Gwc), (Kind::Lookups, Scheme::Shplonk)] {
        let plan = planned(kind, 9, scheme, 16 << 20).unwrap();
        let of_plan: BTreeSet<_> = plan.steps.iter().map(|step| step.name).collect();
        let of_spans = Names::default();
        tracing::subscriber::with_default(tracing_subscriber::registry().with(of_spans.clone()), || {
            happens(kind, 9, scheme, 16 << 20)
        });
        let mut of_spans = of_spans.0.lock().unwrap();
        // Upstream's verifier, after the engine's work.
        assert!(of_spans.remove("verify"));
        assert_eq!(of_plan, *of_spans);
    }
}
