//! `spillproof keygen`: the keys of a built-in circuit, in files.

use serde::Serialize;
use spillproof_circuits::Kind;
use spillproof_circuits::axiom::dropin::{proof, saved};
use spillproof_engine::budget::ByteSize;

use crate::args::{Global, Keygen};
use crate::failure::Failure;
use crate::output::Output;
use crate::report::steps;
use crate::run::{Result, Run, hex};
use crate::systems;
use crate::systems::axiom::DropIn;
use crate::systems::params::insecurity;

#[derive(Serialize)]
struct Outcome {
    circuit: Kind,
    k: u32,
    /// The file of the proving key.
    key: String,
    /// The root of that file.
    root: String,
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
    let key = systems::make_keys::<DropIn>(&mut run.recorder, &statement)?;
    let root = run.recorder.phase("save", |_| {
        saved::save_key(&key, shape.circuit, shape.k, &args.out)
            .map_err(|error| Failure::of_file(&args.out, error))
    })?;
    steps::forget();
    let insecurity = insecurity(&statement.parameters, shape.k, shape.system)?;
    let vk = proof::verifying_key_bytes(key.get_vk());
    if let Some(file) = vk_file {
        file.write(&vk)?;
    }
    let outcome = Outcome {
        circuit: shape.circuit,
        k: shape.k,
        key: args.out.display().to_string(),
        root: hex(&root),
        vk: args.vk.as_ref().map(|path| path.display().to_string()),
        vk_bytes: vk.len(),
        insecure: insecurity.is_some(),
    };
    run.say(format_args!(
        "{}: the proving key of {:?}, 2^{} rows, root {}",
        outcome.key, outcome.circuit, outcome.k, outcome.root
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
