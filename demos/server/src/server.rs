//! A server, from the first key to the end of the last job.
//!
//! It listens before its keys are open, so that a probe finds it, and answers 503 until they are. When it is asked to
//! end, it takes no new jobs. Its running jobs have the settings' time to finish; the server then stops them. Clients
//! can ask for results until the last job has ended.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use spillproof_engine::Session;
use spillproof_engine::budget::Lease;
use spillproof_engine::control::Control;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::watch;

use crate::connection::Connections;
use crate::handlers::App;
use crate::jobs::{Jobs, results_bytes};
use crate::keys::{self, KeyFile, OpenKey};
use crate::parameters::AllParameters;
use crate::routes::router;
use crate::settings::{Error, Result, Settings};
use crate::token::Token;
use crate::upload::{STREAM_BYTES, Uploads};

/// How often deadlines are looked at.
const TICK: Duration = Duration::from_millis(50);
/// How long jobs that are stopped may take to end. They do within moments.
const STOP_PATIENCE: Duration = Duration::from_secs(30);
/// How long answers may take when everything else has ended.
const CLOSE_PATIENCE: Duration = Duration::from_secs(5);
/// Bytes of the stack of the threads that answer: they do not compute.
const STACK_BYTES: usize = 512 << 10;

/// A server that listens.
pub struct Server {
    app: Arc<App>,
    settings: Settings,
    files: Vec<KeyFile>,
    runtime: Runtime,
    listener: TcpListener,
    address: SocketAddr,
    asked: watch::Sender<Asked>,
    /// What is held of the budget as long as the server is there.
    _leases: [Lease; 2],
}

/// What a server is asked for from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Asked {
    GoOn,
    Drain,
    StopNow,
}

/// Ends a server, from any thread.
#[derive(Clone, Debug)]
pub struct Handle {
    asked: watch::Sender<Asked>,
}

impl Handle {
    /// Lets it take no new jobs, and end when it has none, or when the time for that is over. Asked again, it stops
    /// the jobs that it has.
    pub fn drain(&self) {
        self.asked.send_modify(|asked| {
            *asked = match asked {
                Asked::GoOn => Asked::Drain,
                Asked::Drain | Asked::StopNow => Asked::StopNow,
            }
        });
    }
}

impl Server {
    /// Finds the keys, reads the token, takes of the session's budget what is not for proofs, and listens.
    ///
    /// # Errors
    /// [`enum@Error`]: settings, files, the token, the address; those of the budget.
    pub fn bind(session: Arc<Session>, settings: Settings) -> Result<Self> {
        settings.check()?;
        let token = settings.token_file.as_deref().map(Token::read).transpose()?;
        let files = keys::find(&settings.keys)?;
        let budget = session.budget();
        let results_bytes = results_bytes(budget.limit_bytes());
        let leases = [
            budget.lease(settings.uploads as u64 * STREAM_BYTES, "witnesses on their way")?,
            budget.lease(results_bytes, "results")?,
        ];
        let system = |source| Error::System { source };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .max_blocking_threads(settings.uploads + 2)
            .thread_stack_size(STACK_BYTES)
            .thread_name("spillproof-http")
            .enable_all()
            .build()
            .map_err(system)?;
        let listen = settings.listen;
        let failed = |source| Error::Listen { listen, source };
        let listener = runtime.block_on(TcpListener::bind(listen)).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self {
            app: Arc::new(App {
                token,
                keys: OnceLock::new(),
                jobs: Arc::new(Jobs::new(session, &settings, results_bytes as usize)),
                uploads: Uploads::new(settings.uploads, settings.body_timeout)?,
                since: Instant::now(),
            }),
            settings,
            files,
            runtime,
            listener,
            address,
            asked: watch::Sender::new(Asked::GoOn),
            _leases: leases,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many keys it has.
    pub fn keys(&self) -> usize {
        self.files.len()
    }

    /// Ends it.
    pub fn handle(&self) -> Handle {
        Handle {
            asked: self.asked.clone(),
        }
    }

    /// Opens the keys, and answers until it is asked to end and has ended its jobs.
    ///
    /// # Errors
    /// [`Error::Key`] for a key that does not open; [`Error::System`] without threads.
    pub fn run(self) -> Result<()> {
        let Self {
            app,
            settings,
            files,
            runtime,
            listener,
            asked,
            _leases,
            ..
        } = self;
        let mut threads = Vec::new();
        for number in 0..settings.proofs {
            let jobs = Arc::clone(&app.jobs);
            let named = thread::Builder::new().name(format!("spillproof-job-{number}"));
            threads.push(
                named
                    .spawn(move || jobs.work())
                    .map_err(|source| Error::System { source })?,
            );
        }
        let opening = Control::new();
        let (control, of_thread) = (opening.clone(), Arc::clone(&app));
        let parameters = settings.parameters.clone();
        let (sender, opened) = watch::channel(false);
        let keys = thread::Builder::new()
            .name("spillproof-keys".into())
            .spawn(move || {
                let _entered = control.enter();
                let done = open_keys(&of_thread, files, &parameters);
                sender.send_replace(true);
                done
            });
        let keys = keys.map_err(|source| Error::System { source })?;
        runtime.block_on(until_drained(
            &app,
            &settings,
            &listener,
            asked.subscribe(),
            opened,
        ));
        // Keys that are not open yet are not needed any more.
        opening.stop();
        app.jobs.end_threads();
        let is_drained = *asked.borrow() != Asked::GoOn;
        let done = keys
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        // A proof that does not end ends with the process.
        if app.jobs.counts().running == 0 {
            for thread in threads {
                let _its_job_is_told = thread.join();
            }
        }
        runtime.shutdown_timeout(CLOSE_PATIENCE);
        match done {
            Err(_) if is_drained => Ok(()),
            done => done,
        }
    }
}

fn open_keys(app: &App, files: Vec<KeyFile>, parameters: &[PathBuf]) -> Result<()> {
    let session = app.jobs.session();
    let parameters = AllParameters::open(session, parameters)?;
    let mut keys = Vec::with_capacity(files.len());
    for file in files {
        let since = Instant::now();
        let key = OpenKey::open(session, file, &parameters)?;
        tracing::info!(
            key = key.name,
            seconds = since.elapsed().as_secs_f64(),
            "a key is open"
        );
        keys.push(Arc::new(key));
    }
    app.jobs.fix_held();
    let limit_bytes = session.budget().limit_bytes();
    for key in &keys {
        let needed_bytes = app.jobs.needed_bytes(key.need.minimum_bytes);
        if needed_bytes > limit_bytes {
            tracing::warn!(
                key = key.name,
                needed_bytes,
                limit_bytes,
                "no proof with this key fits into the budget"
            );
        }
    }
    // Nothing else sets them.
    let _are_first = app.keys.set(keys);
    Ok(())
}

/// Answers until jobs have ended after a request to end, or a key did not open.
async fn until_drained(
    app: &Arc<App>,
    settings: &Settings,
    listener: &TcpListener,
    mut asked: watch::Receiver<Asked>,
    mut opened: watch::Receiver<bool>,
) {
    let connections = Connections::new(router(Arc::clone(app)), Arc::clone(&app.jobs.metrics), settings);
    let ticks = async {
        let mut ticks = tokio::time::interval(TICK);
        loop {
            ticks.tick().await;
            app.jobs.tick();
        }
    };
    let end = async {
        tokio::select! {
            () = reached(&mut asked, Asked::Drain) => {}
            () = failed(app, &mut opened) => return,
        }
        tracing::info!("the server ends: no new jobs");
        app.jobs.close();
        tokio::select! {
            () = app.jobs.all_ended() => return,
            () = tokio::time::sleep(settings.drain) => {}
            () = reached(&mut asked, Asked::StopNow) => {}
        }
        app.jobs.stop_all();
        if tokio::time::timeout(STOP_PATIENCE, app.jobs.all_ended())
            .await
            .is_err()
        {
            tracing::error!("jobs that were stopped did not end");
        }
    };
    tokio::select! {
        () = end => {}
        () = ticks => {}
        () = connections.accept(listener) => {}
    }
    connections.close(CLOSE_PATIENCE).await;
}

async fn reached(asked: &mut watch::Receiver<Asked>, least: Asked) {
    if asked.wait_for(|asked| *asked >= least).await.is_err() {
        // No one is left who could ask.
        std::future::pending::<()>().await;
    }
}

/// Waits for keys that do not open.
async fn failed(app: &App, opened: &mut watch::Receiver<bool>) {
    let _either_way = opened.wait_for(|opened| *opened).await.is_ok();
    if app.keys.get().is_some() {
        std::future::pending::<()>().await;
    }
}
