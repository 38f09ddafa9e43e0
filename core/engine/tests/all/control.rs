//! Work that another thread stops: wherever it is, it ends within a moment, and what it held is given back.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use ark_bn254::Fr;
use spillproof_engine::column::{Column, Placement, Writer};
use spillproof_engine::control::Control;
use spillproof_engine::session::Participation;
use spillproof_engine::{Error, Result, Session};

use crate::common::scalars;

const MOMENT: Duration = Duration::from_secs(1);

fn session() -> (tempfile::TempDir, std::sync::Arc<Session>) {
    let dir = tempfile::tempdir().expect("a folder");
    let builder = Session::builder().memory("2MiB").dir(dir.path()).threads(2);
    (dir, std::sync::Arc::new(builder.build().expect("a session")))
}

fn column(session: &Session, len: usize) -> Column<Fr> {
    let mut writer =
        Writer::scratch(session.workspace(), "values", len as u64, Placement::Disk).expect("room");
    writer.push(&scalars(len, 3)).expect("room");
    writer.finish().expect("written")
}

/// Runs `work` in a thread of its own, which a control stops once `work` says that it has begun.
fn stopped(session: &Session, work: impl FnOnce(&mpsc::Sender<()>) -> Result<()> + Send) {
    let held_bytes = session.budget().held_bytes();
    let control = Control::new();
    let (tell, told) = mpsc::channel();
    thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let _entered = control.enter();
            work(&tell)
        });
        told.recv().expect("it begins");
        let stop = Instant::now();
        control.stop();
        match worker.join().expect("no panic") {
            Err(Error::Stopped) => assert!(stop.elapsed() < MOMENT, "{:?}", stop.elapsed()),
            other => panic!("{other:?}"),
        }
    });
    // A transfer that is on its way gives its buffer back when it ends.
    let since = Instant::now();
    while session.budget().held_bytes() != held_bytes && since.elapsed() < MOMENT {
        thread::yield_now();
    }
    assert_eq!(session.budget().held_bytes(), held_bytes);
}

#[test]
fn what_reads_a_column_on_and_on_is_stopped() {
    let (_dir, session) = session();
    let column = column(&session, 1 << 14);
    stopped(&session, |begun| {
        session.workspace().run(|| {
            begun.send(()).expect("it is waited for");
            loop {
                column.to_vec()?;
            }
        })
    });
    // Who is not stopped goes on.
    assert_eq!(column.to_vec().expect("values").len(), 1 << 14);
}

#[test]
fn what_waits_for_its_turn_is_stopped_and_the_next_has_it() {
    let (_dir, session) = session();
    let (hold, held) = mpsc::channel::<()>();
    let (tell, told) = mpsc::channel();
    thread::scope(|scope| {
        let session = &session;
        let first = scope.spawn(move || {
            session.run(move || {
                tell.send(()).expect("it is waited for");
                held.recv().expect("an end");
            });
        });
        told.recv().expect("it begins");
        stopped(session, |begun| {
            begun.send(()).expect("it is waited for");
            session.workspace().run(|| panic!("it has no turn"))
        });
        hold.send(()).expect("it waits");
        first.join().expect("no panic");
    });
    session.workspace().run(|| Ok(())).expect("a turn");
}

#[test]
fn what_waits_for_room_is_stopped_and_the_next_has_it() {
    let (_dir, session) = session();
    let all = session.budget().limit_bytes();
    let first = session
        .admit(Participation::TakesNoPart, move || Ok(all))
        .expect("room");
    thread::scope(|scope| {
        // A thread that is inside of no task.
        let waits = scope.spawn(|| {
            stopped(&session, |begun| {
                begun.send(()).expect("it is waited for");
                session
                    .admit(Participation::TakesNoPart, move || Ok(all))
                    .map(drop)
            });
        });
        waits.join().expect("no panic");
    });
    drop(first);
    drop(
        session
            .admit(Participation::TakesNoPart, move || Ok(all))
            .expect("room"),
    );
}

#[test]
fn a_control_is_the_threads_until_its_guard_goes() {
    let (_dir, session) = session();
    let lease = || session.budget().lease(1, "tile").map(drop);
    let (outer, inner) = (Control::new(), Control::new());
    let _outer = outer.enter();
    {
        let _inner = inner.enter();
        inner.stop();
        assert!(inner.is_stopped() && !outer.is_stopped());
        assert!(matches!(lease(), Err(Error::Stopped)));
    }
    lease().expect("it is not stopped");
}
