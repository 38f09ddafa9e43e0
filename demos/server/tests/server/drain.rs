//! The end of a server.

use std::time::{Duration, Instant};

use crate::client::{Request, answer_of};
use crate::fixture::{KEYS, Running, check, proofs};

#[test]
fn jobs_end_before_the_server_does() {
    let server = Running::with("64MiB", |settings| settings.proofs = 1);
    let held = server.hold();
    let waiting = Request::post(&proofs("medium"), KEYS.witness("medium")).begin(server.address);
    server.until("it runs", || {
        server.metric("spillproof_jobs{state=\"running\"}") == 1.0
    });
    let queued = Request::post(&proofs("small"), KEYS.witness("small")).begin(server.address);
    server.until("it waits", || {
        server.metric("spillproof_jobs{state=\"waiting\"}") == 1.0
    });
    server.handle.drain();
    server.until("it ends", || server.get("/readyz").status == 503);
    assert_eq!(server.get("/readyz").code(), "draining");
    assert_eq!(server.get("/healthz").status, 200);
    let refused = Request::post(&proofs("small"), KEYS.witness("small")).send(server.address);
    assert_eq!((refused.status, refused.code().as_str()), (503, "draining"));
    assert!(refused.header("retry-after").is_some());
    drop(held);
    check("medium", &answer_of(waiting).expect("an answer").json());
    check("small", &answer_of(queued).expect("an answer").json());
    server.end();
}

#[test]
fn jobs_are_stopped_when_the_time_is_over() {
    let server = Running::with("64MiB", |settings| {
        settings.proofs = 1;
        settings.drain = Duration::from_millis(300);
    });
    let held = server.hold();
    let path = proofs("small");
    let post = || Request::post(&path, KEYS.witness("small")).begin(server.address);
    let requests = [post(), post()];
    server.until("they are there", || {
        server.metric("spillproof_jobs{state=\"running\"}")
            + server.metric("spillproof_jobs{state=\"waiting\"}")
            == 2.0
    });
    let since = Instant::now();
    server.handle.drain();
    for request in requests {
        let answer = answer_of(request).expect("an answer");
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (503, "draining"),
            "{answer:?}"
        );
    }
    assert!(since.elapsed() < Duration::from_secs(10), "{:?}", since.elapsed());
    drop(held);
    server.end();
}

/// A second request to end does not wait.
#[test]
fn asked_twice() {
    let server = Running::with("64MiB", |settings| settings.proofs = 1);
    let held = server.hold();
    let request = Request::post(&proofs("small"), KEYS.witness("small")).begin(server.address);
    server.until("it runs", || {
        server.metric("spillproof_jobs{state=\"running\"}") == 1.0
    });
    let handle = server.handle.clone();
    handle.drain();
    handle.drain();
    let answer = answer_of(request).expect("an answer");
    assert_eq!(answer.code(), "draining");
    drop(held);
    server.ended().expect("a good end");
}

/// Keys are of no use any more: they are not opened to the end.
#[test]
fn a_server_that_ends_while_it_starts() {
    use crate::fixture::session;
    use spillproof_server::{Server, Settings};
    let scratch = tempfile::tempdir().expect("a folder");
    let settings = Settings {
        listen: "127.0.0.1:0".parse().expect("an address"),
        ..Settings::new(vec![KEYS.dir().to_owned()])
    };
    let session = session("64MiB", &scratch);
    let server = Server::bind(session.clone(), settings).expect("a server");
    let (handle, address) = (server.handle(), server.address());
    // The opening of keys waits for the session.
    let (release, released) = std::sync::mpsc::channel::<()>();
    let (held, is_held) = std::sync::mpsc::channel();
    let holder = std::thread::spawn(move || {
        session.run(move || {
            held.send(()).expect("it is waited for");
            let _released = released.recv();
        });
    });
    is_held.recv().expect("the turn");
    let thread = std::thread::spawn(move || server.run());
    let starting = Request::get("/readyz").send(address);
    assert_eq!((starting.status, starting.code().as_str()), (503, "starting"));
    for path in ["/v1/keys", "/v1/keys/small"] {
        assert_eq!(Request::get(path).send(address).code(), "starting");
    }
    let early = Request::post(&proofs("small"), KEYS.witness("small")).send(address);
    assert_eq!(early.code(), "starting");
    let since = Instant::now();
    handle.drain();
    thread.join().expect("no panic").expect("a good end");
    assert!(since.elapsed() < Duration::from_secs(5), "{:?}", since.elapsed());
    drop(release);
    holder.join().expect("it ends");
}
