//! A load on a server that runs: many jobs of mixed sizes from several clients. Every proof is verified, and the times
//! of each size are compared with its time alone.
//!
//! ```text
//! for k in 10 11 12 13 14 15 16; do spillproof groth16 example keys/k$k.zkey witnesses/k$k.wtns --k $k; done
//! spillproof serve --keys keys --memory 256MiB &
//! cargo run --release -p spillproof-server --example load -- 127.0.0.1:8080 witnesses 200 16 even
//! ```
//!
//! Sizes are drawn `even`ly, or `skewed`: each half as often as the next smaller one, so that all sizes are about as
//! much work. The exit status is 1 if a proof is missing or does not verify.
#![allow(clippy::expect_used, clippy::unwrap_used)]

#[path = "../tests/server/client.rs"]
#[allow(dead_code)]
mod client;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use client::Request;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use spillproof_circom::prove::verify;
use spillproof_engine::Session;

const SEED: u64 = 1;
/// Proofs of each key before the load, one after the other.
const ALONE: usize = 3;
/// Times its time alone in which the largest is to be done, its wait in the queue included.
const WITHIN: f64 = 3.0;

/// A witness and its key.
struct Work {
    name: String,
    witness: Vec<u8>,
    verification_key: Vec<u8>,
}

/// A proof as its client saw it.
struct Done {
    /// Which work.
    work: usize,
    /// When its request was sent.
    since: Instant,
    /// From the request's first byte to the answer's last.
    seconds: f64,
    /// In the server, from the job's beginning.
    ran_seconds: f64,
    is_right: bool,
}

struct Load {
    address: SocketAddr,
    session: Session,
    works: Vec<Work>,
}

impl Load {
    fn metric(&self, name: &str) -> f64 {
        let answer = Request::get("/metrics").send(self.address);
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|value| value.parse().ok()).unwrap_or(f64::NAN)
    }

    /// One proof, verified.
    fn prove(&self, work: usize) -> Done {
        let Work {
            name,
            witness,
            verification_key,
        } = &self.works[work];
        let path = format!("/v1/keys/{name}/proofs");
        let since = Instant::now();
        let answer = Request::post(&path, witness).send(self.address);
        let seconds = since.elapsed().as_secs_f64();
        if answer.status != 200 {
            eprintln!("{name}: {answer:?}");
        }
        let job = answer
            .header("content-location")
            .map(|job| Request::get(job).send(self.address));
        let ran_seconds = job.and_then(|job| job.json()["seconds"]["ran"].as_f64());
        let is_right = answer.status == 200 && {
            let result = answer.json();
            let [proof, public] = ["proof", "publicSignals"].map(|part| result[part].to_string());
            let files = [
                ("the key".as_ref(), &**verification_key),
                ("the public signals".as_ref(), public.as_bytes()),
                ("the proof".as_ref(), proof.as_bytes()),
            ];
            verify(&self.session, files).is_ok_and(|verified| verified.verifies)
        };
        Done {
            work,
            since,
            seconds,
            ran_seconds: ran_seconds.unwrap_or(f64::NAN),
            is_right,
        }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, folder, jobs, clients, sizes] = &arguments[..] else {
        eprintln!("load ADDRESS FOLDER-OF-WITNESSES JOBS CLIENTS even|skewed");
        return ExitCode::from(2);
    };
    let address: SocketAddr = address.parse().expect("ADDRESS is one, such as 127.0.0.1:8080");
    let (jobs, clients): (usize, usize) = (jobs.parse().expect("JOBS"), clients.parse().expect("CLIENTS"));
    let mut works = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the folder of witnesses") {
        let file = entry.expect("an entry").path();
        let name = file.file_stem().expect("a name").to_string_lossy().into_owned();
        let said = Request::get(&format!("/v1/keys/{name}")).send(address);
        assert_eq!(said.status, 200, "the server has no key {name}: {said:?}");
        works.push(Work {
            name,
            witness: std::fs::read(&file).expect("a witness"),
            verification_key: said.json()["verificationKey"].to_string().into_bytes(),
        });
    }
    works.sort_by_key(|work| work.witness.len());
    let largest = works.len() - 1;
    let session = Session::builder()
        .memory("64MiB")
        .threads(1)
        .build()
        .expect("a session");
    let load = Load {
        address,
        session,
        works,
    };
    let alone_seconds: Vec<f64> = (0..load.works.len())
        .map(|work| median((0..ALONE).map(|_| load.prove(work).seconds).collect()))
        .collect();
    println!(
        "{} alone: {:.2} s, the median of {ALONE}; the server has {:.0} MiB resident",
        load.works[largest].name,
        alone_seconds[largest],
        load.metric("spillproof_resident_bytes") / f64::from(1 << 20)
    );
    let mut rng = StdRng::seed_from_u64(SEED);
    let drawn: Vec<usize> = (0..jobs)
        .map(|_| match sizes.as_str() {
            "skewed" => (0..largest).find(|_| rng.r#gen()).unwrap_or(largest),
            _ => rng.gen_range(0..=largest),
        })
        .collect();
    let (next, done, resident) = (
        AtomicUsize::new(0),
        Mutex::new(Vec::new()),
        Mutex::new(Vec::new()),
    );
    let since = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..clients {
            scope.spawn(|| {
                while let Some(work) = drawn.get(next.fetch_add(1, Relaxed)) {
                    let proof = load.prove(*work);
                    resident
                        .lock()
                        .unwrap()
                        .push(load.metric("spillproof_resident_bytes"));
                    done.lock().unwrap().push(proof);
                }
            });
        }
    });
    let seconds = since.elapsed().as_secs_f64();
    let (done, resident) = (done.into_inner().unwrap(), resident.into_inner().unwrap());
    let right = done.iter().filter(|done| done.is_right).count();
    println!("{jobs} jobs, {sizes} sizes, from {clients} clients: {right} right, in {seconds:.1} s");
    let mut by_work: BTreeMap<usize, Vec<&Done>> = BTreeMap::new();
    done.iter()
        .for_each(|done| by_work.entry(done.work).or_default().push(done));
    println!(
        "| key | jobs | alone, s | median, s | longest, s | longest from its beginning, s |\n|---|---|---|---|---|---|"
    );
    let most = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max);
    for (work, done) in &by_work {
        println!(
            "| {} | {} | {:.2} | {:.2} | {:.2} | {:.2} |",
            load.works[*work].name,
            done.len(),
            alone_seconds[*work],
            median(done.iter().map(|done| done.seconds).collect()),
            most(&mut done.iter().map(|done| done.seconds)),
            most(&mut done.iter().map(|done| done.ran_seconds)),
        );
    }
    if let Some(done) = by_work.get(&largest) {
        let alone_seconds = alone_seconds[largest];
        let times = |value: fn(&Done) -> f64| done.iter().map(move |done| value(done) / alone_seconds);
        println!(
            "the largest, beside its time alone: {:.2} with its wait in the queue, {:.2} from its beginning, at most",
            most(&mut times(|done| done.seconds)),
            most(&mut times(|done| done.ran_seconds)),
        );
        // How many others of them had been sent before, and were not done.
        let ahead = |of: &Done| {
            let is_ahead = |other: &&&Done| {
                let end = other.since + Duration::from_secs_f64(other.seconds);
                other.since < of.since && end > of.since
            };
            done.iter().filter(is_ahead).count()
        };
        for (others, said) in [(usize::MAX, "any number"), (1, "at most one")] {
            let of: Vec<_> = done.iter().filter(|done| ahead(done) <= others).collect();
            let within = of
                .iter()
                .filter(|done| done.seconds <= WITHIN * alone_seconds)
                .count();
            println!(
                "within {WITHIN} times, with {said} of them ahead: {within} of {}",
                of.len()
            );
        }
    }
    let mebibytes = |part: &[f64]| most(&mut part.iter().copied()) / f64::from(1 << 20);
    let quarters: Vec<_> = resident.chunks(jobs.div_ceil(4).max(1)).map(mebibytes).collect();
    println!("resident, most of each quarter of the jobs, MiB: {quarters:.0?}");
    println!(
        "budget, MiB: {:.0} held at most, {:.0} held now",
        load.metric("spillproof_budget_bytes{kind=\"peak\"}") / f64::from(1 << 20),
        load.metric("spillproof_budget_bytes{kind=\"held\"}") / f64::from(1 << 20)
    );
    ExitCode::from(u8::from(right != jobs))
}
