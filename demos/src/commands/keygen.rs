//! `spillproof keygen`: the keys of a built-in circuit, in files.

use std::path::Path;

use serde::Serialize;
use spillproof_circuits::{Kind, System};
use spillproof_engine::Session;
use spillproof_engine::budget::ByteSize;

use crate::args::{Global, Keygen, Statement};
use crate::output::Output;
use crate::report::steps;
use crate::run::{Result, Run, hex};
use crate::systems::params::insecurity;
use crate::systems::{self, KeyFiles, axiom, midnight};

#[derive(Serialize)]
struct Outcome {
    circuit: Kind,
    system: System,
    k: u32,
    /// The file of the proving key.
    key: String,
    /// The root of that file, if it is a container.
    root: Option<String>,
    /// The file of the verifying key.
    vk: Option<String>,
    vk_bytes: usize,
    /// Whether the secret of the parameters is known.
    insecure: bool,
}

/// Makes the keys, and writes them.
///
/// # Errors
/// The engine's and halo2's; [`Failure::Usage`] for a system without files of keys.
pub fn run(global: &Global, args: &Keygen) -> Result<()> {
    let statement = args.statement()?;
    let shape = &statement.shape;
    let mut run = Run::start(global);
    let vk_file = args.vk.as_deref().map(Output::create).transpose()?;
    let session = run.session(ByteSize::Auto)?;
    // A budget that is too small is refused before the parameters are read.
    systems::plan(&session, shape, session.budget().limit_bytes())?;
    let _current = session.install();
    let made = match shape.system {
        System::Midnight => made::<midnight::DropIn>,
        System::Axiom | System::Zcash => made::<axiom::DropIn>,
    };
    let Made { root, vk } = made(&mut run, &session, &statement, &args.out)?;
    steps::forget();
    let insecurity = insecurity(&statement.parameters, shape.k, shape.system)?;
    if let Some(file) = vk_file {
        file.write(&vk)?;
    }
    let outcome = Outcome {
        circuit: shape.circuit,
        system: shape.system,
        k: shape.k,
        key: args.out.display().to_string(),
        root: root.map(|root| hex(&root)),
        vk: args.vk.as_ref().map(|path| path.display().to_string()),
        vk_bytes: vk.len(),
        insecure: insecurity.is_some(),
    };
    let root = outcome.root.as_ref();
    run.say(format_args!(
        "{}: the proving key of {:?}, 2^{} rows{}",
        outcome.key,
        outcome.circuit,
        outcome.k,
        root.map_or(String::new(), |root| format!(", root {root}"))
    ));
    if let Some(vk) = &outcome.vk {
        run.say(format_args!(
            "{vk}: the verifying key, {} bytes",
            outcome.vk_bytes
        ));
    }
    if let Some(words) = insecurity {
        run.say(words);
    }
    run.finish("keygen", &outcome)?;
    Ok(())
}

/// Keys that are made, the proving key in its file.
struct Made {
    root: Option<[u8; 32]>,
    /// The bytes of the verifying key.
    vk: Vec<u8>,
}

fn made<P: KeyFiles>(run: &mut Run, session: &Session, statement: &Statement, out: &Path) -> Result<Made> {
    let key = systems::make_keys::<P>(&mut run.recorder, statement)?;
    let root = run
        .recorder
        .phase("save", |_| P::save_key(session, &key, &statement.shape, out))?;
    Ok(Made {
        root,
        vk: P::verifying_key_bytes(&key),
    })
}
