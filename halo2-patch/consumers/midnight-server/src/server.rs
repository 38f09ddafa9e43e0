//! Routes, connections, and the end.

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::{SecondsFormat, Utc};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{watch, Semaphore};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::body::{Bodies, Body};
use crate::failure::{Failure, Result};
use crate::prover::Prover;
use crate::queue::{Queue, Slot};
use crate::request;

/// The release of the ledger whose bytes are taken and given.
const LEDGER: &str = "8.1.3";
/// Connections at a time, with this much of a buffer each.
const CONNECTIONS_MAX: usize = 512;
const CONNECTION_BYTES: usize = 32 << 10;
/// A client has so long to send the head of its request.
const HEAD_TIME: Duration = Duration::from_secs(30);
/// A refused request's body is read away for so long, so that its client gets to read why.
const DRAIN_TIME: Duration = Duration::from_secs(1);

const BYTES: &str = "application/octet-stream";
const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";

/// The server's parts.
pub struct Server {
    pub prover: Arc<Prover>,
    pub bodies: Bodies,
    pub queue: Queue,
    pub time_limit: Duration,
    pub is_verbose: bool,
}

/// An answer's content.
struct Content {
    kind: &'static str,
    bytes: Vec<u8>,
    status: StatusCode,
}

impl Content {
    fn new(kind: &'static str, bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            kind,
            bytes: bytes.into(),
            status: StatusCode::OK,
        }
    }

    fn json(value: &serde_json::Value) -> Self {
        Self::new(JSON, value.to_string())
    }

    fn of(failure: &Failure) -> Self {
        let value = json!({ "error": failure.word(), "message": failure.sentence() });
        Self {
            status: failure.status(),
            ..Self::json(&value)
        }
    }
}

impl Server {
    /// Serves until `end` comes; then takes no more connections, and is done when all requests are.
    pub async fn serve(self: Arc<Self>, listener: TcpListener, end: impl Future<Output = ()>) {
        let (ending, has_ended) = watch::channel(false);
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let mut connections = JoinSet::new();
        let mut end = std::pin::pin!(end);
        loop {
            let accepted = async {
                let place = Arc::clone(&places).acquire_owned().await;
                (listener.accept().await, place)
            };
            tokio::select! {
                (accepted, place) = accepted => match accepted {
                    Ok((stream, _)) => {
                        let (server, has_ended) = (Arc::clone(&self), has_ended.clone());
                        connections.spawn(async move {
                            server.connected(stream, has_ended).await;
                            drop(place);
                        });
                    }
                    // Out of files, say: others will be closed.
                    Err(error) => {
                        eprintln!("no connection: {error}");
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                },
                Some(_) = connections.join_next() => {}
                () = &mut end => break,
            }
        }
        drop(listener);
        self.queue.close();
        // The receivers may have gone.
        let _ = ending.send(true);
        while connections.join_next().await.is_some() {}
    }

    async fn connected(self: Arc<Self>, stream: TcpStream, mut has_ended: watch::Receiver<bool>) {
        let service = service_fn(|request| {
            let server = Arc::clone(&self);
            async move { Ok::<_, Infallible>(server.logged(request).await) }
        });
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIME)
            .max_buf_size(CONNECTION_BYTES);
        let mut connection = std::pin::pin!(http.serve_connection(TokioIo::new(stream), service));
        let is_done = tokio::select! {
            // An error is a client that went away, or sent what is no HTTP.
            _ = &mut connection => true,
            _ = has_ended.wait_for(|ended| *ended) => false,
        };
        if !is_done {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }

    async fn logged(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let mut line = self.is_verbose.then(|| Line::new(&request));
        let content = self.answer(request).await.unwrap_or_else(|failure| {
            if let Some(line) = &mut line {
                line.word = failure.word();
            }
            Content::of(&failure)
        });
        if let Some(line) = &mut line {
            line.status = Some(content.status);
        }
        response(content)
    }

    async fn answer(&self, request: Request<Incoming>) -> Result<Content> {
        let (head, mut incoming) = request.into_parts();
        let path = head.uri.path();
        let is_post = matches!(path, "/k" | "/check" | "/prove" | "/prove-tx");
        match head.method {
            // Browsers ask before they post from a page of another origin, as wallets do.
            Method::OPTIONS => {
                return Ok(Content {
                    status: StatusCode::NO_CONTENT,
                    ..Content::new(TEXT, "")
                });
            }
            Method::POST if is_post => {
                let slot = self.queue.slot();
                let answered = match slot {
                    Ok(slot) => self.job(path, slot, &mut incoming).await,
                    Err(failure) => Err(failure),
                };
                if answered.is_err() {
                    drain(&mut incoming).await;
                }
                return answered;
            }
            Method::GET | Method::HEAD if !is_post => {}
            _ => {
                drain(&mut incoming).await;
                let allowed = if is_post { "POST" } else { "GET" };
                return Err(Failure::Method { allowed });
            }
        }
        match path {
            "/" | "/health" => Ok(Content::json(
                &json!({ "status": "ok", "timestamp": timestamp() }),
            )),
            "/version" => Ok(Content::new(TEXT, LEDGER)),
            "/proof-versions" => Ok(Content::json(&json!(["V2"]))),
            "/ready" => Ok(self.ready()),
            _ => match path.strip_prefix("/fetch-params/").map(str::parse) {
                Some(Ok(k)) => match self.prover.find_params(k) {
                    Ok(()) => Ok(Content::new(TEXT, "these parameters are on the disk")),
                    // Nothing is fetched: they are not here.
                    Err(failure) => Err(Failure::NotFound {
                        what: failure.sentence(),
                    }),
                },
                _ => Err(Failure::NotFound {
                    what: "this route".to_owned(),
                }),
            },
        }
    }

    /// Reads the body, and what it holds on a thread of its own; then the job waits for a worker.
    async fn job(&self, path: &str, slot: Slot, incoming: &mut Incoming) -> Result<Content> {
        let time_limit = self.time_limit;
        let body = timeout(time_limit, self.bodies.read(incoming)).await;
        let body = body.map_err(|_| Failure::TimeLimit {
            seconds: time_limit.as_secs(),
        })??;
        let prover = Arc::clone(&self.prover);
        let ticket = match path {
            "/k" => {
                let circuit = parsed(body, request::k).await?;
                slot.queue(move || prover.k(circuit))
            }
            "/check" => {
                let check = parsed(body, request::check).await?;
                slot.queue(move || prover.check(check))
            }
            "/prove" => {
                let preparing = Arc::clone(&prover);
                let job = parsed(body, move |body| preparing.prepare(request::prove(body)?)).await?;
                slot.queue(move || prover.prove(job))
            }
            _ => {
                let transaction = parsed(body, request::prove_transaction).await?;
                slot.queue(move || prover.prove_transaction(transaction))
            }
        };
        let answer = ticket.answer().await?;
        Ok(Content::new(if path == "/k" { TEXT } else { BYTES }, answer))
    }

    fn ready(&self) -> Content {
        let filling = self.queue.filling();
        let budget = self.prover.session().budget();
        let (share_bytes, taken_bytes) = self.bodies.share_and_taken_bytes();
        let keys = self.prover.keys();
        let value = json!({
            "status": if filling.is_full() { "busy" } else { "ok" },
            "jobsProcessing": filling.processing,
            "jobsPending": filling.pending,
            "jobCapacity": filling.capacity,
            "timestamp": timestamp(),
            "budget": {
                "limitBytes": budget.limit_bytes(),
                "heldBytes": budget.held_bytes(),
                "spareBytes": budget.spare_bytes(),
                "peakBytes": budget.peak_bytes(),
            },
            "bodies": { "shareBytes": share_bytes, "takenBytes": taken_bytes },
            "keys": { "held": keys.held(), "capacity": keys.held_max() },
            "params": self.prover.opened(),
        });
        Content {
            status: match filling.is_full() {
                true => StatusCode::SERVICE_UNAVAILABLE,
                false => StatusCode::OK,
            },
            ..Content::json(&value)
        }
    }
}

/// What a body holds; a large one takes a while.
async fn parsed<T: Send + 'static>(
    body: Body,
    parse: impl FnOnce(Body) -> Result<T> + Send + 'static,
) -> Result<T> {
    let parsed = tokio::task::spawn_blocking(move || parse(body)).await;
    parsed.unwrap_or_else(|error| {
        Err(match error.try_into_panic() {
            Ok(payload) => Failure::of_panic(&*payload),
            Err(_) => Failure::Ending,
        })
    })
}

async fn drain(incoming: &mut Incoming) {
    let all = async { while let Some(Ok(_)) = incoming.frame().await {} };
    // What comes later meets a closed connection.
    let _ = timeout(DRAIN_TIME, all).await;
}

fn response(content: Content) -> Response<Full<Bytes>> {
    let is_for_later = matches!(
        content.status,
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
    );
    let mut response = Response::new(Full::new(content.bytes.into()));
    *response.status_mut() = content.status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content.kind));
    for name in [
        header::ACCESS_CONTROL_ALLOW_ORIGIN,
        header::ACCESS_CONTROL_ALLOW_METHODS,
        header::ACCESS_CONTROL_ALLOW_HEADERS,
    ] {
        headers.insert(name, HeaderValue::from_static("*"));
    }
    if is_for_later {
        headers.insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
    }
    response
}

/// A line of the log: what was asked for, what became of it, and how long it took; nothing of a body.
struct Line {
    start: Instant,
    method: Method,
    path: String,
    word: &'static str,
    status: Option<StatusCode>,
}

impl Line {
    fn new(request: &Request<Incoming>) -> Self {
        const LETTERS_MAX: usize = 40;
        // Of the known routes, and of others a part that cannot break a line.
        let path = request.uri().path().chars().take(LETTERS_MAX);
        Self {
            start: Instant::now(),
            method: request.method().clone(),
            path: path.filter(char::is_ascii_graphic).collect(),
            word: "",
            status: None,
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        let Self {
            method,
            path,
            word,
            status,
            ..
        } = self;
        let status = status.map_or_else(
            || "the client went away".to_owned(),
            |status| status.as_u16().to_string(),
        );
        let (now, took) = (timestamp(), self.start.elapsed().as_secs_f64());
        eprintln!("{now} {method} {path} {status} {word} {took:.3} s");
    }
}

/// Now, as RFC 3339 has it, in UTC.
fn timestamp() -> String {
    Utc::now().to_rfc3339_opts(SecondsFormat::Millis, true)
}
