//! Proofs that their caller stops, at each of their steps.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ark_bn254::Bn254;
use spillproof_circom::prove::Key as Opened;
use spillproof_engine::Error as Engine;
use spillproof_engine::control::Control;
use spillproof_testing::session;

use crate::circom_files;
use crate::r1cs::{Circuit, Key, Values};

/// The control of a proof that stops itself when step `at` of it begins, and the names of its steps.
fn control_of(at: Option<usize>) -> (Control, Arc<Mutex<Vec<&'static str>>>) {
    let steps = Arc::new(Mutex::new(Vec::new()));
    let itself = Arc::new(Mutex::new(None::<Control>));
    let control = {
        let (steps, itself) = (Arc::clone(&steps), Arc::clone(&itself));
        Control::with_steps(move |name| {
            let mut steps = steps.lock().expect("steps");
            if at == Some(steps.len()) {
                itself
                    .lock()
                    .expect("a control")
                    .as_ref()
                    .expect("a control")
                    .stop();
            }
            steps.push(name);
        })
    };
    *itself.lock().expect("a control") = Some(control.clone());
    (control, steps)
}

#[test]
fn a_proof_is_stopped_at_each_of_its_steps_and_leaves_nothing() {
    let circuit = Circuit::random(11, 3000, 2, Values::Full);
    let made = Key::<Bn254>::new(&circuit, 11);
    let (dir, session) = session(8 << 20, 2);
    let (zkey, wtns) = (dir.path().join("c.zkey"), dir.path().join("c.wtns"));
    std::fs::write(&zkey, circom_files::zkey(&circuit, &made)).expect("a file");
    std::fs::write(&wtns, circom_files::wtns::<Bn254>(&circuit.witness)).expect("a file");
    let files = || std::fs::read_dir(dir.path()).expect("a folder").count();
    let before = (session.budget().held_bytes(), files());

    let run = |control: &Control| -> spillproof_circom::Result<()> {
        let _entered = control.enter();
        let opened = Opened::open(&session, Path::new(&zkey), &mut |_| ())?;
        let witness = opened.witness(&session, Path::new(&wtns), &mut |_| ())?;
        opened.prove(&session, &witness).map(drop)
    };
    let (control, steps) = control_of(None);
    run(&control).expect("a proof");
    let names = steps.lock().expect("steps").clone();
    for name in [
        "copy of coefficients",
        "copy of the witness",
        "constraints",
        "quotient",
        "sum over H",
        "sum over B2",
        "verification",
    ] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    // The last step is arithmetic in memory that is done before anyone looks: it may end well.
    for at in 0..names.len() - 1 {
        let (control, steps) = control_of(Some(at));
        let start = Instant::now();
        match run(&control) {
            Err(spillproof_circom::Error::Engine(Engine::Stopped)) => (),
            other => panic!("at {at}, {:?}: {other:?}", names[at]),
        }
        assert!(start.elapsed() < Duration::from_secs(20));
        assert_eq!(
            *steps.lock().expect("steps"),
            names[..=at],
            "nothing begins after it"
        );
        assert_eq!((session.budget().held_bytes(), files()), before, "at {at}");
    }
    run(&Control::new()).expect("the session is as good as before");
}
