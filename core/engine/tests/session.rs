//! Many callers, one budget: sums and tasks that come at the same time wait for each other, and none is
//! refused. What is current, and who may ask a accelerator.

#![allow(clippy::expect_used, clippy::unwrap_used)]

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ark_bn254::Fr;
use rayon::prelude::*;
use spillproof_commit::{generate_scratch, kzg};
use spillproof_engine::Error;
use spillproof_engine::Result;
use spillproof_engine::Session;
use spillproof_engine::accelerator::{self, Accelerator, Answer};
use spillproof_engine::budget::{Budget, ByteSize};
use spillproof_engine::column::{Placement, Scratch, Writer};
use spillproof_engine::error::Invalid;
use spillproof_engine::plan::{Plan, Rates};
use spillproof_engine::session::{Participation, THREADS_MAX};
use spillproof_engine::storage::{Fault, FaultPlan, Region};
use spillproof_engine::stream::{self, Scalars};
use spillproof_testing::watchdog;

/// A session that keeps its witness off the disk is refused where the system could write it there, with the
/// reason.
#[test]
fn strict_secrets_are_kept_or_refused_by_name() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let build = |scratch: Scratch| {
        let builder = Session::builder().memory("2MiB").dir(dir.path()).threads(1);
        builder.scratch(scratch).strict_secrets(true).build()
    };
    let refused = |made: Result<Session>| match made {
        Err(error @ Error::Unavailable { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    };
    assert!(refused(build(Scratch::Plain)).contains("plain"));
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let has_swap = read("/proc/swaps")
        .lines()
        .skip(1)
        .any(|line| !line.starts_with("/dev/zram"));
    let has_cores = read("/proc/sys/kernel/core_pattern").starts_with('|')
        || !(read("/proc/self/limits").lines()).any(|line| {
            line.starts_with("Max core file size") && line.split_whitespace().nth(4) == Some("0")
        });
    match build(Scratch::Sealed) {
        made if has_cores => assert!(refused(made).contains("core dumps")),
        made if has_swap => assert!(refused(made).contains("swap is on")),
        made if Region::is_allowed() => assert!(made.is_ok(), "{made:?}"),
        made => assert!(refused(made).contains("userfaultfd")),
    }
}

/// Sealed scratch that was asked for is refused where the kernel does not allow what advice cells need.
#[test]
fn sealed_scratch_that_is_not_possible_is_refused_by_name() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let build = |faults: FaultPlan, scratch: Option<Scratch>| {
        let builder = Session::builder()
            .memory("2MiB")
            .dir(dir.path())
            .faults(faults)
            .threads(1);
        match scratch {
            Some(scratch) => builder.scratch(scratch).build(),
            None => builder.build(),
        }
    };
    let counting = FaultPlan::none();
    build(counting.clone(), None).expect("a session");
    // Faults of the kernel's, and signals.
    let refusing = || {
        let first = counting.operations();
        FaultPlan::at(first, Fault::Unsupported).and(first + 1, Fault::Unsupported)
    };
    match build(refusing(), Some(Scratch::Sealed)) {
        Err(error @ Error::Unavailable { .. }) => {
            assert!(error.to_string().contains("userfaultfd"), "{error}")
        }
        other => panic!("{other:?}"),
    }
    for (scratch, is) in [(None, Scratch::Sealed), (Some(Scratch::Plain), Scratch::Plain)] {
        let session = build(refusing(), scratch).expect("a session");
        assert_eq!(session.workspace().scratch(), is);
    }
}

#[test]
fn callers_on_every_thread_take_turns() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let budget = ByteSize::Bytes(2 << 20);
    let session = Session::builder()
        .memory(budget)
        .dir(dir.path())
        .build()
        .expect("a session");
    let srs = generate_scratch::<ark_bn254::Bn254>(session.workspace(), 10, Fr::from(77u64), |_| ())
        .expect("an SRS");
    let values = vec![Fr::from(3u64); 1 << 10];
    let commit = || kzg::commit(&srs, &[Scalars::Slice(&values)]).expect("committed")[0];
    let wanted = commit();
    // The callers are workers of another pool, with more to do than they are many.
    let all: Vec<_> = (0..64).into_par_iter().map(|_| commit()).collect();
    assert!(all.iter().all(|commitment| *commitment == wanted));
    // And a caller that is one of the session's own threads does not wait for itself.
    assert_eq!(session.run(commit), wanted);
}

/// What is current belongs to the process.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn suspended_is_no_session_until_the_guard_goes() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let session = Session::builder()
        .memory(ByteSize::Bytes(1 << 20))
        .dir(dir.path())
        .build()
        .unwrap();
    let session = Arc::new(session);
    let is_current = || {
        Session::current()
            .unwrap()
            .is_some_and(|current| Arc::ptr_eq(&current, &session))
    };
    let _installed = session.install();
    assert!(is_current());
    let suspended = Session::suspend();
    assert!(Session::current().unwrap().is_none());
    let again = session.install();
    assert!(is_current());
    drop(again);
    assert!(Session::current().unwrap().is_none());
    drop(suspended);
    assert!(is_current());
}

/// Says that every sum is zero, and leaves transforms to the processor.
#[derive(Debug)]
struct Zero;

impl Accelerator for Zero {
    fn sums(&self, job: &mut accelerator::Sums<'_>, _: &Budget) -> Result<Answer<accelerator::Totals>> {
        Ok(Answer::Done(accelerator::Totals::infinity(job.counts())))
    }

    fn transform(&self, _: &mut accelerator::Transform<'_>, _: &Budget) -> Result<Answer<()>> {
        Ok(Answer::Declined("this test declines".into()))
    }

    fn quotient(&self, _: &mut accelerator::Coset<'_>, _: &Budget) -> Result<Answer<()>> {
        Ok(Answer::Declined("no quotients here".into()))
    }
}

#[test]
fn an_accelerator_is_asked_for_whom_it_may_be_and_its_jobs_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let builder = || {
        Session::builder()
            .memory(ByteSize::Bytes(2 << 20))
            .dir(dir.path())
    };
    let session = Arc::new(builder().accelerator(Arc::new(Zero)).build().unwrap());
    let other = Arc::new(builder().build().unwrap());
    assert!(other.accelerator().is_none());
    let srs = generate_scratch::<ark_bn254::Bn254>(session.workspace(), 6, Fr::from(77u64), |_| ()).unwrap();
    let values = vec![Fr::from(3u64); 1 << 6];
    let commit = || kzg::commit(&srs, &[Scalars::Slice(&values)]).unwrap()[0];
    let accelerator = session.accelerator().unwrap();

    let zero = commit();
    assert_eq!(accelerator.jobs(), 1);
    let right = {
        let task = session.admit(Participation::TakesNoPart, || Ok(1 << 20)).unwrap();
        let right = commit();
        assert_eq!(task.accelerator_jobs(), 0);
        right
    };
    assert_ne!(right, zero);
    {
        let task = session.admit(Participation::MayTakePart, || Ok(1 << 20)).unwrap();
        assert_eq!(commit(), zero);
        assert_eq!((task.accelerator_jobs(), accelerator.jobs()), (1, 2));
        // A task of its own, whose session has none.
        let inner = other.admit(Participation::MayTakePart, || Ok(1 << 20)).unwrap();
        assert_eq!(commit(), right);
        assert_eq!((inner.accelerator_jobs(), task.accelerator_jobs()), (0, 1));
        drop(inner);
        // Another thread is of no task.
        std::thread::scope(|scope| scope.spawn(|| assert_eq!(commit(), zero)).join().unwrap());
        assert_eq!((task.accelerator_jobs(), accelerator.jobs()), (1, 3));
    }
    {
        let _outside = accelerator::processor_only();
        assert_eq!(commit(), right);
        let _task = session.admit(Participation::MayTakePart, || Ok(1 << 20)).unwrap();
        assert_eq!(commit(), zero);
    }
    assert!(!accelerator.is_distrusted());
    accelerator.distrust();
    assert_eq!(commit(), right);
    assert_eq!(accelerator.jobs(), 4);
}

/// Guards dropped in another order than that in which they were made: each takes away what it has put there.
#[test]
fn guards_of_sessions_may_go_in_any_order() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let session = || {
        let builder = Session::builder()
            .memory(ByteSize::Bytes(1 << 20))
            .dir(dir.path());
        Arc::new(builder.build().unwrap())
    };
    let (a, b) = (session(), session());
    let current = || Session::current().unwrap().map(|current| Arc::as_ptr(&current));
    let of_a = a.install();
    let of_b = b.install();
    drop(of_a);
    assert_eq!(
        current(),
        Some(Arc::as_ptr(&b)),
        "a guard has taken away another's session"
    );
    drop(a);
    drop(of_b);
    assert_eq!(current(), None, "a session that was given up is current again");
}

#[test]
fn a_task_keeps_its_session_whatever_is_installed() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let session = || {
        let builder = Session::builder()
            .memory(ByteSize::Bytes(1 << 20))
            .dir(dir.path());
        Arc::new(builder.build().unwrap())
    };
    let (a, b) = (session(), session());
    let current = || Session::current().unwrap().map(|current| Arc::as_ptr(&current));
    let task = a.admit(Participation::MayTakePart, || Ok(1 << 10)).unwrap();
    let _b = b.install();
    assert_eq!(current(), Some(Arc::as_ptr(&a)));
    std::thread::scope(|scope| {
        let other = scope.spawn(|| assert_eq!(Session::current().unwrap().unwrap().dir(), b.dir()));
        other.join().unwrap();
    });
    drop(task);
    assert_eq!(current(), Some(Arc::as_ptr(&b)));
}

/// Tasks that hold, lease and compute as much as their minimum allows, many more than fit at one time.
#[test]
fn tasks_wait_for_room_and_none_is_refused() {
    watchdog::within(120, "tasks on one session", || {
        let dir = tempfile::tempdir().unwrap();
        let builder = Session::builder()
            .memory(ByteSize::Bytes(5 << 20))
            .dir(dir.path());
        let session = Arc::new(builder.build().unwrap());
        const MINIMUM: u64 = 2 << 20;
        let task = |_| {
            let task = session.admit(Participation::MayTakePart, || Ok(MINIMUM)).unwrap();
            let budget = session.budget();
            let held = budget.lease(MINIMUM / 4, "columns").unwrap();
            for round in 0..8 {
                let stage = || {
                    let available = budget.available_bytes();
                    assert!(available >= MINIMUM - MINIMUM / 4, "round {round}: {available}");
                    let _all = budget.lease(available, "a stage that takes what is left")?;
                    std::thread::sleep(std::time::Duration::from_micros(300));
                    Ok(())
                };
                session.workspace().run(stage).unwrap();
                let _own = budget.lease(MINIMUM / 2, "between stages").unwrap();
            }
            drop((held, task));
        };
        for threads in 1..=4 {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .unwrap();
            pool.install(|| (0..12).into_par_iter().for_each(task));
            std::thread::scope(|scope| {
                (0..threads).for_each(|i| {
                    scope.spawn(move || task(i));
                });
            });
        }
        assert_eq!(session.budget().held_bytes(), 0);
    });
}

#[test]
fn a_task_inside_of_another_on_its_thread_is_refused_where_it_would_wait_for_it() {
    let dir = tempfile::tempdir().unwrap();
    let builder = Session::builder()
        .memory(ByteSize::Bytes(5 << 20))
        .dir(dir.path());
    let session = Arc::new(builder.build().unwrap());
    let _outer = session.admit(Participation::MayTakePart, || Ok(3 << 20)).unwrap();
    let _fits = session.admit(Participation::MayTakePart, || Ok(1 << 20)).unwrap();
    let refused = session
        .admit(Participation::MayTakePart, || Ok(3 << 20))
        .unwrap_err();
    assert!(matches!(refused, Error::NestedTask { .. }), "{refused}");
}

#[test]
fn a_folder_that_takes_no_files_is_refused_when_a_session_is_built() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "no folder").unwrap();
    for dir in [&file, &file.join("folder"), std::path::Path::new("/proc")] {
        let refused = Session::builder()
            .memory(ByteSize::Bytes(1 << 20))
            .dir(dir)
            .build();
        match refused {
            Err(Error::File { file, .. }) => assert!(file.contains(&dir.display().to_string()), "{file}"),
            Err(Error::Invalid(Invalid::NoFolder { folder, .. })) => assert_eq!(&folder, dir),
            other => panic!("{}: {:?}", dir.display(), other.map(|_| "a session")),
        }
    }
}

#[test]
fn settings_that_make_no_session_are_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let builder = || Session::builder().memory("2MiB").dir(dir.path()).threads(1);
    let missing = dir.path().join("not mounted");
    for (settings, words) in [
        (builder().memory("0"), "memory budget: 0 bytes"),
        (builder().memory(ByteSize::Bytes(0)), "memory budget: 0 bytes"),
        (builder().dir(&missing), "not mounted` is no folder (No such file"),
        (builder().dir(""), "`` is no folder (No such file"),
        (
            builder().threads(THREADS_MAX + 1),
            "1025: a session has 1024 at most",
        ),
        (
            builder().threads(u32::MAX as usize),
            "4294967295: a session has 1024",
        ),
        (builder().threads(usize::MAX), "a session has 1024"),
    ] {
        let refused = settings.build().unwrap_err().to_string();
        assert!(refused.contains(words), "{refused}");
    }
    assert!(!missing.exists());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    let plan = Plan::new(&|_| Ok(()), 1 << 20, u32::MAX as usize, &Rates::default());
    assert!(plan.unwrap_err().to_string().contains("1024 at most"));
}

/// As many threads as a variable of rayon's says, up to the bound. In a process of its own.
#[test]
fn a_variable_that_asks_for_thousands_of_threads_gives_the_bound() {
    const NAME: &str = "a_variable_that_asks_for_thousands_of_threads_gives_the_bound";
    const VARIABLE: &str = "RAYON_NUM_THREADS";
    if std::env::var(VARIABLE).is_ok_and(|threads| threads == "5000") {
        let dir = tempfile::tempdir().unwrap();
        let session = Session::builder().memory("2MiB").dir(dir.path()).build().unwrap();
        assert_eq!(session.threads(), THREADS_MAX);
        assert_eq!(session.run(|| 7), 7);
        return;
    }
    let mut test = std::process::Command::new(std::env::current_exe().unwrap());
    let output = test
        .args(["--exact", NAME])
        .env(VARIABLE, "5000")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// What a task reads of a column of another session is on the budget of its own.
#[test]
fn a_task_takes_memory_of_its_own_session_only() {
    let dir = tempfile::tempdir().unwrap();
    let session = || {
        let builder = Session::builder().memory("2MiB").dir(dir.path());
        Arc::new(builder.threads(1).build().unwrap())
    };
    let (other, own) = (session(), session());
    let mut writer = Writer::scratch(other.workspace(), "column", 1 << 15, Placement::Disk).unwrap();
    writer.push(&vec![Fr::from(2u64); 1 << 15]).unwrap();
    let column = writer.finish().unwrap();
    let left_bytes = other.budget().available_bytes();
    let held = other.budget().lease(left_bytes, "a proof that waits").unwrap();
    let evaluate = || stream::evaluate(&column.in_task(), Fr::from(1u64));
    assert!(evaluate().is_err(), "the session of the column has no room");
    own.budget().restart_peak();
    let task = own.admit(Participation::MayTakePart, || Ok(1 << 20)).unwrap();
    assert_eq!(evaluate().unwrap(), Fr::from(1u64 << 16));
    assert!(own.budget().peak_bytes() > 0);
    drop(task);
    assert!(evaluate().is_err());
    drop(held);
    assert_eq!(evaluate().unwrap(), Fr::from(1u64 << 16));
}
