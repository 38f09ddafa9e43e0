//! Queues that are full, clients that go away, time that is over, and the end.

use super::circuits;
use super::harness::Server;

#[test]
fn a_full_queue_says_so_before_it_reads_a_body() {
    let server = Server::start(&["--memory", "64MiB", "--num-workers", "1", "--job-capacity", "1"]);
    let (circuit, small) = (circuits::large(), circuits::small());
    let [two, three] = [2, 3].map(|input| small.request(input.into()));
    let first = server.send("POST", "/prove", &circuit.request(1.into()));
    server.wait_until("working", |ready| ready["jobsProcessing"] == 1);
    let second = server.send("POST", "/prove", &two);
    let full = server.wait_until("full", |ready| ready["jobsPending"] == 1);
    assert_eq!(full["status"], "busy");
    assert_eq!(server.ask("GET", "/ready", b"").status, 503);
    let third = server.ask("POST", "/prove", &three);
    assert_eq!((third.status, third.word().as_str()), (429, "queue-full"));
    assert!(circuit.verifies(&first.answer().proof(), 1.into(), 7.into()));
    assert!(small.verifies(&second.answer().proof(), 2.into(), 7.into()));
    assert_eq!(server.wait_until_idle()["status"], "ok");
}

#[test]
fn a_client_that_goes_away_stops_nothing_and_leaves_nothing() {
    let server = Server::start(&["--memory", "64MiB", "--num-workers", "1", "--job-capacity", "4"]);
    let circuit = circuits::large();
    let held_before = server.ready()["budget"]["heldBytes"].clone();
    // In the middle of a body.
    let body = circuit.request(1.into());
    let head = format!("POST /prove HTTP/1.1\r\ncontent-length: {}\r\n", body.len());
    let cut = server.send_raw(&head, &body[..body.len() / 2]);
    server.wait_until("reading", |ready| ready["jobsPending"] == 1);
    drop(cut);
    assert_eq!(server.wait_until_idle()["budget"]["heldBytes"], held_before);
    // While its job is worked on, and while it waits. Bodies of the others are made before: the first job takes
    // seconds, and no more.
    let small = circuits::small();
    let [two, three, four] = [2, 3, 4].map(|input| small.request(input.into()));
    let works = server.send("POST", "/prove", &circuit.request(1.into()));
    server.wait_until("working", |ready| ready["jobsProcessing"] == 1);
    let waits = [&two, &three].map(|body| server.send("POST", "/prove", body));
    let stays = server.send("POST", "/prove", &four);
    server.wait_until("waiting", |ready| ready["jobsPending"] == 3);
    drop(waits);
    let ready = server.wait_until("gone", |ready| ready["jobsPending"] == 1);
    assert_eq!(
        ready["jobsProcessing"], 1,
        "the first job was too fast for this test: {ready}"
    );
    drop(works);
    assert!(small.verifies(&stays.answer().proof(), 4.into(), 7.into()));
    let first = server.wait_until_idle();
    // The same once more: nothing is left behind.
    drop(server.send("POST", "/prove", &circuit.request(5.into())));
    let proof = server.ask("POST", "/prove", &circuit.request(6.into())).proof();
    assert!(circuit.verifies(&proof, 6.into(), 7.into()));
    let second = server.wait_until_idle();
    assert_eq!(first["keys"]["held"], second["keys"]["held"]);
    assert!(second["budget"]["heldBytes"].as_u64() <= first["budget"]["heldBytes"].as_u64());
}

#[test]
fn a_job_whose_time_is_over_is_answered_and_the_server_goes_on() {
    let server = Server::start(&["--memory", "64MiB", "--num-workers", "1", "--job-timeout", "0.3"]);
    let circuit = circuits::large();
    let first = server.send("POST", "/prove", &circuit.request(1.into()));
    let second = server.send("POST", "/prove", &circuit.request(2.into()));
    for request in [first, second] {
        let answer = request.answer();
        assert_eq!((answer.status, answer.word().as_str()), (504, "time-limit"));
    }
    server.wait_until_idle();
    assert_eq!(
        server
            .ask("POST", "/k", &circuits::tagged(&circuits::small().ir))
            .status,
        200
    );
}

#[test]
fn a_signal_lets_requests_come_to_their_ends() {
    let server = Server::start(&["--memory", "64MiB", "--num-workers", "1"]);
    let (circuit, small) = (circuits::large(), circuits::small());
    let two = small.request(2.into());
    let works = server.send("POST", "/prove", &circuit.request(1.into()));
    server.wait_until("working", |ready| ready["jobsProcessing"] == 1);
    let waits = server.send("POST", "/prove", &two);
    server.wait_until("waiting", |ready| ready["jobsPending"] == 1);
    server.terminate();
    assert!(circuit.verifies(&works.answer().proof(), 1.into(), 7.into()));
    assert!(small.verifies(&waits.answer().proof(), 2.into(), 7.into()));
    let (status, said) = server.end();
    assert_eq!(status, Some(0), "{said}");
}
