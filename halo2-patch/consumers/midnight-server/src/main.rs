//! Midnight's proof server in one byte budget: its routes and bytes, over the drop-in for `midnight-proofs`.
//!
//! ```text
//!   options.rs   what the program is told
//!   server.rs    connections, routes, the end
//!   body.rs      bodies, in a share of the budget
//!   request.rs   what bodies hold, as the ledger's crates write it
//!   queue.rs     jobs that wait, workers, the time limit
//!   prover.rs    proofs and checks
//!   material.rs  circuits and keys, of requests and of files
//!   keys.rs      proving keys as handles
//!   failure.rs   what is answered instead
//!   now.rs       futures that do not wait
//! ```
//!
//! A request takes a place in the queue, then room for its body, then it is read and waits for a worker. The
//! session admits what a worker does when the budget has room for it.

#![forbid(unsafe_code)]

mod body;
mod failure;
mod keys;
mod material;
mod now;
mod options;
mod prover;
mod queue;
mod request;
mod server;

use std::error::Error;
use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

use midnight_proofs::spillproof::{Session, MEMORY_VARIABLE};
use spillproof_engine::budget::format_bytes;
use tokio::net::TcpListener;
use tokio::signal::unix::{signal, SignalKind};

use body::Bodies;
use options::{Options, HELP};
use prover::Prover;
use queue::Queue;
use server::Server;

/// Doesn't compile over stock: a patch that silently doesn't apply is the trap of `[patch.crates-io]`.
const _: () = midnight_proofs::spillproof::IS_HERE;

/// The part of the budget that bodies have.
const BODIES_SHARE: u64 = 4;

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1), options::variable) {
        Ok(Some(options)) => options,
        Ok(None) => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("midnight-server: {error}");
            return ExitCode::from(2);
        }
    };
    match run(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("midnight-server: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: Options) -> Result<(), Box<dyn Error>> {
    // No thread was started yet.
    for (name, value) in &options.variables {
        std::env::set_var(name, value);
    }
    // A panic's text may hold values of a witness; its place does not.
    std::panic::set_hook(Box::new(|panic| {
        let place = panic
            .location()
            .map_or_else(String::new, |place| format!(" at {place}"));
        eprintln!("midnight-server: a job gave up{place}");
    }));
    let session = Session::current()?
        .ok_or_else(|| format!("there is no budget: say --memory 512MiB, or set {MEMORY_VARIABLE}"))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(serve(options, session))?;
    // A job whose client has given up is not waited for; scratch files have no names.
    runtime.shutdown_background();
    Ok(())
}

async fn serve(options: Options, session: Arc<Session>) -> Result<(), Box<dyn Error>> {
    let limit_bytes = session.budget().limit_bytes();
    let share_bytes = limit_bytes / BODIES_SHARE;
    let bodies = Bodies::new(session.budget(), share_bytes, options.body_limit_bytes);
    let bodies = bodies.map_err(|failure| failure.sentence())?;
    let queue = Queue::new(options.capacity, options.time_limit);
    // Before anything is ready: handlers of signals, the port, the threads.
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let mut signals = async move || {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    let listener = TcpListener::bind((options.address, options.port)).await?;
    let address = listener.local_addr()?;
    let prover = Arc::new(Prover::new(session, options.params, options.keys));
    let workers = queue.start(options.workers)?;
    let server = Arc::new(Server {
        prover,
        bodies,
        queue,
        time_limit: options.time_limit,
        is_verbose: options.is_verbose,
    });
    println!(
        "midnight-server listens on http://{address} with {}",
        format_bytes(limit_bytes)
    );
    std::io::stdout().flush()?;
    let (ending, has_ended) = tokio::sync::oneshot::channel();
    tokio::spawn(async move {
        signals().await;
        eprintln!("midnight-server: ends when all requests are answered; a second signal ends it now");
        let _ = ending.send(());
        signals().await;
        std::process::exit(130);
    });
    server
        .serve(listener, async {
            let _ = has_ended.await;
        })
        .await;
    // Workers that no request waits for are left alone.
    drop(workers);
    Ok(())
}
