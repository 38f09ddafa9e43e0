//! The commands of the binary, one file each: arguments in, phases and a result out.

mod commit;
mod demo;
mod groth16;
mod keygen;
pub mod msm;
mod new;
mod on_gpu;
pub mod oom;
mod oom_groth16;
mod oom_proof;
pub mod plan;
mod plan_on_gpu;
pub mod prove;
mod ptau;
mod srs;

use crate::args::{Arguments, Command, Shape, Which};
use crate::run::Result;

/// Runs a command.
///
/// # Errors
/// Those of the command.
pub fn dispatch(arguments: Arguments) -> Result<()> {
    let global = &arguments.global;
    if let Some(command) = &arguments.command {
        command.files().check()?;
    }
    match arguments.command {
        None => demo::run(global, &demo::usual()),
        Some(Command::Demo(demo)) => match &demo.which {
            None => demo::run(global, &demo),
            Some(Which::Oom(oom)) if oom.groth16 => oom_groth16::run(global, oom.k),
            Some(Which::Oom(oom)) => match oom.circuit {
                None => oom::run(global, oom.log_n),
                Some(circuit) => oom_proof::run(global, &Shape::of(oom.system, circuit, oom.k)),
            },
        },
        Some(Command::New(new)) => new::run(global, &new),
        Some(Command::Srs(command)) => srs::run(global, &command),
        Some(Command::Msm(msm)) => msm::run(global, &msm),
        Some(Command::Commit(commit)) => commit::run(global, &commit),
        Some(Command::Keygen(keygen)) => keygen::run(global, &keygen),
        Some(Command::Prove(prove)) => prove::prove(global, &prove),
        Some(Command::Groth16(command)) => groth16::run(global, &command),
        Some(Command::Ptau(command)) => ptau::run(global, &command),
        Some(Command::Plan(plan)) => plan::run(global, &plan),
        Some(Command::Verify(verify)) => prove::verify(global, &verify),
    }
}
