//! `spillproof serve`: proofs over HTTP.

use std::io::Write;

use serde::Serialize;
use spillproof_engine::budget::ByteSize;
use spillproof_server::{Server, Settings};

use super::on_gpu::{OnGpu, Used};
use crate::args::{Global, Serve};
use crate::log;
use crate::run::{Result, Run, start_global_threads};
use crate::signals;

#[derive(Serialize)]
struct Served {
    address: String,
    keys: usize,
    /// The jobs of GPUs, if any were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu: Option<Used>,
}

/// Runs the command.
///
/// # Errors
/// The engine's and the server's.
pub fn run(global: &Global, serve: &Serve) -> Result<()> {
    // It has no end, so its steps are counted, and not kept.
    log::without_steps();
    serve.gpu.check_options()?;
    let mut run = Run::start(global);
    let gpu = OnGpu::open(&serve.gpu.gpu, serve.gpu.offload.into())?;
    let session = run.session_on(ByteSize::Auto, gpu.accelerator())?;
    if !serve.srs.is_empty() {
        // Proofs of midnight-proofs ask how many they are.
        start_global_threads()?;
    }
    let settings = Settings {
        parameters: serve.srs.clone(),
        listen: serve.listen,
        allows_anyone: serve.allow_anyone,
        token_file: serve.token_file.clone(),
        proofs: serve.proofs.into(),
        queue: serve.queue.into(),
        uploads: serve.uploads.into(),
        connections: serve.connections.into(),
        job_timeout: serve.job_timeout,
        keep: serve.keep,
        drain: serve.drain,
        body_timeout: serve.body_timeout,
        ..Settings::new(serve.keys.clone())
    };
    let server = Server::bind(session, settings)?;
    let mut served = Served {
        address: server.address().to_string(),
        keys: server.keys(),
        gpu: None,
    };
    let handle = server.handle();
    signals::hand_over(move || handle.drain());
    if global.json && !global.quiet {
        let event = serde_json::json!({"event": "listening", "address": served.address});
        // A closed standard error is no error.
        let _closed = writeln!(std::io::stderr(), "{event}");
    }
    run.say(format_args!(
        "listening on http://{}, keys: {}",
        served.address, served.keys
    ));
    server.run()?;
    run.say("all jobs have ended");
    served.gpu = gpu.used();
    if let Some(used) = &served.gpu {
        run.say(used.said());
    }
    run.finish_without_table("serve", &served)?;
    Ok(())
}
