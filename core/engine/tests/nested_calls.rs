//! Every public call from inside of every public call, on the pool's threads and off them: each ends.

#![allow(clippy::expect_used, clippy::unwrap_used)]

use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use ark_bn254::Fr;
use spillproof_commit::{Srs, generate_scratch, kzg};
use spillproof_engine::Error;
use spillproof_engine::Session;
use spillproof_engine::column::{Cells, Column, Placement, Writer};
use spillproof_engine::session::Participation;
use spillproof_engine::stream::{self, Scalars};

/// A call that has not ended after so long hangs.
const SECONDS_MAX: u64 = 30;

/// Two sessions, and what is computed with in the first.
struct Scene {
    session: Arc<Session>,
    other: Arc<Session>,
    srs: Srs,
    column: Column<Fr>,
    _dir: tempfile::TempDir,
}

impl Scene {
    fn new(threads: usize) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let session = || {
            let builder = Session::builder().memory("64MiB").dir(dir.path());
            Arc::new(builder.threads(threads).build().unwrap())
        };
        let (session, other) = (session(), session());
        let srs =
            generate_scratch::<ark_bn254::Bn254>(session.workspace(), 3, Fr::from(77u64), |_| ()).unwrap();
        let mut writer = Writer::scratch(session.workspace(), "column", 8, Placement::Disk).unwrap();
        writer.push(&[Fr::from(2u64); 8]).unwrap();
        let column = writer.finish().unwrap();
        Self {
            session,
            other,
            srs,
            column,
            _dir: dir,
        }
    }
}

/// A proof's admission: it may be refused where it cannot wait.
fn in_task(session: &Arc<Session>, inner: &(dyn Fn() + Sync)) {
    match session.admit(Participation::MayTakePart, || Ok(1 << 16)) {
        Ok(_task) => inner(),
        Err(Error::NestedTask { .. }) => {}
        Err(other) => panic!("{other}"),
    }
}

/// Makes the call, which does not fail.
fn done(inner: Inner<'_>) -> spillproof_engine::Result<()> {
    inner();
    Ok(())
}

type Inner<'i> = &'i (dyn Fn() + Sync);
/// A call, by name, from inside of which another one is made.
type Outer = (&'static str, fn(&Scene, Inner<'_>));

/// What takes work of the caller's and calls it.
const OUTER: [Outer; 11] = [
    ("no call", |_, inner| inner()),
    ("Session::run", |scene, inner| scene.session.run(inner)),
    ("Workspace::run", |scene, inner| {
        let workspace = scene.session.workspace();
        workspace.run(|| done(inner)).unwrap();
    }),
    ("Workspace::run_here", |scene, inner| {
        let workspace = scene.session.workspace();
        workspace.run_here(|| done(inner)).unwrap();
    }),
    ("Workspace::spread", |scene, inner| {
        scene.session.workspace().spread(inner).unwrap()
    }),
    ("Workspace::in_pieces", |scene, inner| {
        let workspace = scene.session.workspace();
        workspace.in_pieces(&mut [0; 4], 1, |_| inner()).unwrap()
    }),
    ("Session::admit", |scene, inner| in_task(&scene.session, inner)),
    ("the progress of an SRS", |scene, inner| {
        let workspace = scene.session.workspace();
        generate_scratch::<ark_bn254::Bn254>(workspace, 1, Fr::from(77u64), |_| inner()).unwrap();
    }),
    ("Cells::read", |scene, inner| {
        let mut cells = Cells::<u64>::zeroed(scene.session.workspace(), "cells", 1 << 16, (1, 4)).unwrap();
        cells.read(0, 0..4, |_, _| done(inner)).unwrap();
    }),
    ("another session's run", |scene, inner| scene.other.run(inner)),
    ("another session's admit", |scene, inner| {
        in_task(&scene.other, inner)
    }),
];

/// A call, by name.
type Call = (&'static str, fn(&Scene));

/// What is called inside.
const INNER: [Call; 11] = [
    ("Session::run", |scene| {
        assert_eq!(scene.session.run(|| 7), 7);
    }),
    ("Workspace::run_here", |scene| {
        let workspace = scene.session.workspace();
        assert_eq!(workspace.run_here(|| Ok(7)).unwrap(), 7);
    }),
    ("Workspace::spread", |scene| {
        assert_eq!(scene.session.workspace().spread(|| 7).unwrap(), 7);
    }),
    ("Workspace::in_pieces", |scene| {
        let mut values = [1; 4];
        let workspace = scene.session.workspace();
        workspace.in_pieces(&mut values, 1, |piece| piece[0] = 7).unwrap();
        assert_eq!(values, [7; 4]);
    }),
    ("Session::admit, with a stage", |scene| {
        in_task(&scene.session, &|| {
            let value = stream::evaluate(&scene.column, Fr::from(1u64)).unwrap();
            assert_eq!(value, Fr::from(16u64));
        });
    }),
    ("stream::evaluate", |scene| {
        let value = stream::evaluate(&scene.column, Fr::from(1u64)).unwrap();
        assert_eq!(value, Fr::from(16u64));
    }),
    ("kzg::commit", |scene| {
        kzg::commit(&scene.srs, &[Scalars::Column(&scene.column)]).unwrap();
    }),
    ("Writer::scratch", |scene| {
        let mut writer = Writer::scratch(scene.session.workspace(), "column", 8, Placement::Memory).unwrap();
        writer.push(&[Fr::from(2u64); 8]).unwrap();
        assert_eq!(writer.finish().unwrap().to_vec().unwrap().len(), 8);
    }),
    ("Workspace::move_columns_to_disk", |scene| {
        scene.session.workspace().move_columns_to_disk().unwrap();
    }),
    ("Session::pin, install, suspend and current", |scene| {
        let _guards = (scene.session.pin(), scene.session.install(), Session::suspend());
        let current = Session::current().unwrap().unwrap();
        assert!(Arc::ptr_eq(&current, &scene.session));
    }),
    ("the other session's run", |scene| {
        assert_eq!(scene.other.run(|| 7), 7);
    }),
];

/// Calls `work` with a place for the name of the call that it makes, and fails if one of them does not end.
fn watched(work: impl FnOnce(&dyn Fn(String)) + Send + 'static) {
    let (sender, receiver) = mpsc::channel();
    let now = Arc::new(Mutex::new(String::new()));
    let thread = std::thread::spawn({
        let now = Arc::clone(&now);
        move || {
            work(&|name| {
                *now.lock().unwrap() = name;
                sender.send(()).unwrap();
            });
        }
    });
    loop {
        match receiver.recv_timeout(Duration::from_secs(SECONDS_MAX)) {
            Ok(()) => {}
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("hangs: {}", now.lock().unwrap()),
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
        }
    }
    if thread.join().is_err() {
        panic!("fails: {}", now.lock().unwrap());
    }
}

/// Each call inside of two others, for pools of one thread and of three, from a thread of the program's and
/// from one of a pool of its own.
#[test]
fn every_call_from_inside_of_every_other_ends() {
    for threads in [1, 3] {
        watched(move |begins| {
            let scene = Scene::new(threads);
            let callers = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
            for (first, outermost) in OUTER {
                for (second, outer) in OUTER {
                    for (third, inner) in INNER {
                        let call = || outermost(&scene, &|| outer(&scene, &|| inner(&scene)));
                        begins(format!("{third} in {second} in {first}, {threads} threads"));
                        call();
                        begins(format!(
                            "{third} in {second} in {first}, {threads} threads, called from a pool"
                        ));
                        callers.install(call);
                    }
                }
            }
        });
    }
}

/// A task inside of [`Session::run`] is admitted where there is room, works with all threads for its own
/// account, and is refused where it would have to wait.
#[test]
fn a_task_inside_of_run_is_admitted_or_refused_and_never_waits() {
    watched(|begins| {
        let scene = Scene::new(2);
        let session = &scene.session;
        let held_bytes = session.budget().held_bytes();
        let admit = |bytes| session.admit(Participation::MayTakePart, move || Ok(bytes));
        begins("a task that is alone".into());
        session.run(|| drop(admit(60 << 20).unwrap()));
        begins("a task beside one that waits for its turn".into());
        let outside = admit(40 << 20).unwrap();
        session.run(|| {
            let refused = admit(40 << 20).unwrap_err();
            assert!(matches!(refused, Error::NestedTask { .. }), "{refused}");
            let _fits = admit(8 << 20).unwrap();
            // In its stages, all threads of the pool have what the task has.
            let available = || session.budget().available_bytes();
            let stage = || Ok((available(), rayon::broadcast(|_| available())));
            let (here, there) = session.workspace().run(stage).unwrap();
            assert!((8 << 20..60 << 20).contains(&here), "{here}");
            assert!(there.iter().all(|there| *there == here), "{here}: {there:?}");
        });
        drop(outside);
        begins("two tasks at the same time".into());
        let refused = session.run(|| {
            let barrier = std::sync::Barrier::new(2);
            let task = |_: rayon::BroadcastContext<'_>| {
                let admitted = admit(1 << 20);
                barrier.wait();
                admitted.is_err()
            };
            rayon::broadcast(task)
        });
        assert_eq!(refused.iter().filter(|refused| **refused).count(), 1);
        assert_eq!(session.budget().held_bytes(), held_bytes);
    });
}
