//! The commands of the binary, one file each: arguments in, phases and a result out.

mod commit;
mod demo;
mod groth16;
mod groth16_folder;
mod groth16_import;
mod groth16_key;
mod groth16_plan;
mod keygen;
pub mod msm;
mod new;
mod on_gpu;
pub mod oom;
mod oom_groth16;
mod oom_proof;
mod open_verify;
pub mod plan;
mod plan_on_gpu;
mod plan_ranks;
mod plan_table;
pub mod prove;
mod ptau;
mod ranks;
mod reach_svg;
#[cfg(feature = "serve")]
mod serve;
mod srs;
mod temporary;

use crate::args::{self, Arguments, Command, Open, Shape, Which};
use crate::failure::Failure;
use crate::run::{self, Result};

/// Runs a command.
///
/// # Errors
/// Those of the command.
pub fn dispatch(arguments: Arguments) -> Result<()> {
    let global = &arguments.global;
    if let Some(level) = global.level() {
        crate::log::at(level);
    }
    if let Some(command) = &arguments.command {
        let files = command.files();
        if files.take_stdout()? {
            if global.json {
                return Err(Failure::Usage(
                    "--json and a result in - are both for standard output: name a file for the result"
                        .into(),
                ));
            }
            run::leave_stdout_to_output();
        }
        files.check()?;
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
        Some(Command::Open(Open::Verify(open))) => open_verify::run(global, &open),
        Some(Command::Completions(of)) => run::put_bytes(&args::completions(of.shell)),
        Some(Command::Man) => run::put_bytes(&args::man().map_err(Failure::file("the manual page"))?),
        Some(Command::Options) => run::put_bytes(args::options().as_bytes()),
        Some(Command::Keygen(keygen)) => keygen::run(global, &keygen),
        Some(Command::Prove(prove)) => prove::prove(global, &prove),
        Some(Command::Groth16(command)) => groth16::run(global, &command),
        Some(Command::Ptau(command)) => ptau::run(global, &command),
        #[cfg(feature = "serve")]
        Some(Command::Serve(command)) => serve::run(global, &command),
        #[cfg(not(feature = "serve"))]
        Some(Command::Serve(_)) => Err(Failure::Usage(
            "this program was built without the server: build it with cargo build --release --features serve"
                .into(),
        )),
        Some(Command::Ranks(command)) => ranks::run(global, &command),
        Some(Command::Plan(plan)) => plan::run(global, &plan),
        Some(Command::Verify(verify)) => prove::verify(global, &verify),
    }
}
