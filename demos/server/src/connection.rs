//! Connections: HTTP/1.1, with limits on heads, on slow clients and on their number.
//!
//! hyper answers what is no request by itself, with a status and no body. Such an answer is known by its empty body
//! (all others have one, or no error), and gets the body of a problem here.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, Sleep, sleep};
use tower_service::Service;

use crate::metrics::Metrics;
use crate::problem::{Code, PROBLEM, Problem};
use crate::settings::Settings;

/// What of a connection is in memory at most, in each direction: the head of a request, pieces of a body.
const BUFFER_BYTES: usize = 64 << 10;
const HEADERS_MAX: usize = 64;
const HEAD_BYTES_MAX: usize = 32 << 10;
/// How long a client may take nothing of an answer.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// What of a request that is refused is still read when the answer has gone, so that its client sees the answer.
const LINGER_BYTES: usize = 1 << 20;
const LINGER: Duration = Duration::from_millis(500);
const PIECE_BYTES: usize = 4096;
/// After an error of the listener, such as too many open files.
const BREATH: Duration = Duration::from_millis(100);

/// Connections of a listener.
pub(crate) struct Connections {
    router: Router,
    metrics: Arc<Metrics>,
    head_timeout: Duration,
    places: Arc<Semaphore>,
    count: usize,
    closing: watch::Sender<bool>,
}

impl Connections {
    pub fn new(router: Router, metrics: Arc<Metrics>, settings: &Settings) -> Self {
        Self {
            router,
            metrics,
            head_timeout: settings.head_timeout,
            places: Arc::new(Semaphore::new(settings.connections)),
            count: settings.connections,
            closing: watch::Sender::new(false),
        }
    }

    /// Takes connections for good. Beyond their number, clients wait in the system's queue.
    pub async fn accept(&self, listener: &TcpListener) {
        loop {
            let Ok(place) = Arc::clone(&self.places).acquire_owned().await else {
                return;
            };
            let stream = match listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::debug!(%error, "no connection");
                    sleep(BREATH).await;
                    continue;
                }
            };
            let (router, metrics) = (self.router.clone(), Arc::clone(&self.metrics));
            let (head_timeout, closing) = (self.head_timeout, self.closing.subscribe());
            tokio::spawn(async move {
                serve(stream, router, metrics, head_timeout, closing).await;
                drop(place);
            });
        }
    }

    /// Closes idle connections at once and the others after their answers. Returns when all are closed, or when
    /// `patience` is over.
    pub async fn close(&self, patience: Duration) {
        self.closing.send_replace(true);
        let all = self.places.acquire_many(self.count as u32);
        let _either_way = tokio::time::timeout(patience, all).await;
    }
}

async fn serve(
    stream: TcpStream,
    router: Router,
    metrics: Arc<Metrics>,
    head_timeout: Duration,
    mut closing: watch::Receiver<bool>,
) {
    // Answers are short: they go at once.
    let _best_effort = stream.set_nodelay(true);
    let service = service_fn(move |request: Request<Incoming>| {
        // A router is always ready.
        router.clone().call(request.map(Body::new))
    });
    let io = Typed {
        stream: TokioIo::new(stream),
        metrics,
        instead: None,
        stalled: None,
        lingering: None,
    };
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(head_timeout)
        .max_buf_size(BUFFER_BYTES)
        .max_headers(HEADERS_MAX)
        .max_header_size(HEAD_BYTES_MAX);
    let connection = builder.serve_connection(io, service);
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = asked_to_close(&mut closing) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}

async fn asked_to_close(closing: &mut watch::Receiver<bool>) {
    let _either_way = closing.wait_for(|closing| *closing).await.is_ok();
}

/// A stream, where hyper's own answers become problems, and a client that takes nothing is given up.
struct Typed {
    stream: TokioIo<TcpStream>,
    metrics: Arc<Metrics>,
    /// The bytes that go instead of hyper's, and how many have gone.
    instead: Option<(Vec<u8>, usize)>,
    stalled: Option<Pin<Box<Sleep>>>,
    /// Until when it lingers, and over how many bytes more.
    lingering: Option<(Pin<Box<Sleep>>, usize)>,
}

impl Typed {
    /// The problem that an answer of hyper's stands for.
    fn problem(answer: &[u8]) -> Option<Problem> {
        let status = answer.strip_prefix(b"HTTP/1.1 ")?.get(..3)?;
        let head = String::from_utf8_lossy(answer).to_ascii_lowercase();
        if !head.contains("\r\ncontent-length: 0\r\n") || head.contains("\r\ncontent-type:") {
            return None;
        }
        let (code, detail) = match status {
            b"400" => (Code::Malformed, "the bytes are no request of HTTP/1.1"),
            b"414" => (Code::UriTooLong, "no route has such a path"),
            b"431" => (
                Code::HeadTooLarge,
                "the head of a request has 64 headers and 32 KiB at most",
            ),
            _ => return None,
        };
        Some(Problem::new(code, detail))
    }

    /// The whole answer.
    fn answer(problem: &Problem) -> Vec<u8> {
        let (status, body) = (problem.code.status(), problem.value().to_string());
        let reason = status.canonical_reason().unwrap_or_default();
        format!(
            "HTTP/1.1 {} {reason}\r\ncontent-type: {PROBLEM}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            status.as_u16(),
            body.len(),
        )
        .into_bytes()
    }

    /// Gives a client up that takes nothing for too long.
    fn patient<T>(&mut self, cx: &mut Context<'_>, done: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if done.is_ready() {
            self.stalled = None;
            return done;
        }
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(WRITE_TIMEOUT)));
        if stalled.deadline() <= Instant::now() || stalled.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        Poll::Pending
    }

    fn stream(&mut self) -> Pin<&mut TokioIo<TcpStream>> {
        Pin::new(&mut self.stream)
    }

    /// Reads what the client still sends: closed before, the connection would be reset, and the answer lost.
    fn linger(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some((over, rest_bytes)) = &mut self.lingering else {
            return Poll::Ready(());
        };
        let mut piece = [0; PIECE_BYTES];
        while *rest_bytes > 0 {
            let mut into = ReadBuf::new(&mut piece);
            match Pin::new(self.stream.inner_mut()).poll_read(cx, &mut into) {
                Poll::Pending => return over.as_mut().poll(cx),
                Poll::Ready(Ok(())) if !into.filled().is_empty() => {
                    *rest_bytes = rest_bytes.saturating_sub(into.filled().len());
                }
                Poll::Ready(_) => break,
            }
        }
        Poll::Ready(())
    }

    fn write_instead(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some((bytes, gone)) = &mut self.instead {
            if *gone == bytes.len() {
                self.instead = None;
                break;
            }
            let rest = &bytes[*gone..];
            match ready!(Pin::new(&mut self.stream).poll_write(cx, rest))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => *gone += written,
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl Read for Typed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        self.stream().poll_read(cx, into)
    }
}

impl Write for Typed {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        if this.instead.is_none()
            && let Some(problem) = Self::problem(bytes)
        {
            this.metrics
                .answered(problem.code.status().as_u16(), Some(problem.code));
            this.instead = Some((Self::answer(&problem), 0));
        }
        let done = match this.instead.is_some() {
            true => this.write_instead(cx).map_ok(|()| bytes.len()),
            false => this.stream().poll_write(cx, bytes),
        };
        this.patient(cx, done)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = self.stream().poll_flush(cx);
        self.patient(cx, done)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.lingering.is_none() {
            ready!(this.stream().poll_shutdown(cx))?;
            this.lingering = Some((Box::pin(sleep(LINGER)), LINGER_BYTES));
        }
        this.linger(cx).map(Ok)
    }
}
