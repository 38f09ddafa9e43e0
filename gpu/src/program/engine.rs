//! The kernels that run a program on a device: compiled for it, or the interpreter.

use std::time::Instant;

use super::instructions::Program;
use super::lower::{Limits, Lowered};
use super::text::{kernel_name, text};
use crate::device::Gpu;
use crate::error::{Error, Result};
use crate::kernels::{Cache, Compiler, Kernel, Kernels, Nvrtc, Text};

/// How a program runs.
#[derive(Debug, Clone, PartialEq)]
pub enum Way {
    /// By kernels of its own.
    Compiled {
        /// The number of kernels.
        kernels: u32,
        /// Multiplications for each row.
        multiplications: u32,
        /// Elements of device memory for each row of a launch.
        slots: u32,
        /// Seconds of the compiler, or of the cache.
        seconds: f64,
    },
    /// By the interpreter.
    Interpreted {
        /// The reason why it is not compiled.
        why: String,
    },
}

/// A program and the kernels that run it on one device.
#[derive(Debug, Clone)]
pub struct Engine {
    program: Program,
    way: Way,
    /// The interpreter alone, or the kernels of the program, in order.
    kernels: Vec<Kernel>,
}

impl Engine {
    /// Compiles a program with NVRTC, or takes it from the cache. If that is impossible or not worth it, the
    /// interpreter among the kernels of `tier` runs the program, and [`Engine::way`] gives the reason.
    ///
    /// # Errors
    /// [`Error::NoKernel`] if the tier has no interpreter for the field; [`Error::Driver`] if the device is
    /// lost.
    pub fn new(gpu: &Gpu, tier: &Kernels, program: Program, cache: Option<&Cache>) -> Result<Self> {
        match Nvrtc::find() {
            Ok(nvrtc) => Self::compiled_by(gpu, tier, program, (&nvrtc, cache), &Limits::default()),
            Err(error) => Self::interpreted(tier, program, error.to_string()),
        }
    }

    /// The same with this compiler, within these limits.
    ///
    /// # Errors
    /// As [`Engine::new`].
    pub fn compiled_by(
        gpu: &Gpu,
        tier: &Kernels,
        program: Program,
        compiler: (&dyn Compiler, Option<&Cache>),
        limits: &Limits,
    ) -> Result<Self> {
        let lowered = Lowered::new(&program, limits);
        if let Some(why) = not_worth_it(&lowered, limits) {
            return Self::interpreted(tier, program, why);
        }
        let start = Instant::now();
        match load(
            gpu,
            &text(program.field(), &lowered),
            compiler,
            lowered.kernels.len(),
        ) {
            Ok(kernels) => Ok(Self {
                way: Way::Compiled {
                    kernels: kernels.len() as u32,
                    multiplications: lowered.multiplications,
                    slots: lowered.slots,
                    seconds: start.elapsed().as_secs_f64(),
                },
                program,
                kernels,
            }),
            Err(error) if error.is_device_lost() => Err(error),
            Err(error) => {
                tracing::warn!(%error, "a constraint program does not compile; the interpreter runs it");
                Self::interpreted(tier, program, error.to_string())
            }
        }
    }

    /// The interpreter, for a reason that the caller gives.
    ///
    /// # Errors
    /// As [`Engine::new`].
    pub fn interpreted(tier: &Kernels, program: Program, why: impl Into<String>) -> Result<Self> {
        let kernel = tier.kernel(&format!("spk_program_{}", program.field().name()))?;
        Ok(Self {
            program,
            way: Way::Interpreted { why: why.into() },
            kernels: vec![kernel],
        })
    }

    /// The same kernels for a program that differs in its constants only; `None` for any other program.
    pub fn of_the_same_shape(&self, program: &Program) -> Option<Self> {
        self.program.has_the_shape_of(program).then(|| Self {
            program: program.clone(),
            way: self.way.clone(),
            kernels: self.kernels.clone(),
        })
    }

    /// The program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// How the program runs.
    pub fn way(&self) -> &Way {
        &self.way
    }

    pub(super) fn kernels(&self) -> &[Kernel] {
        &self.kernels
    }
}

/// The text that a program is compiled from, within these limits, and the names of its kernels.
pub fn compiled_text(program: &Program, limits: &Limits) -> (Text, Vec<String>) {
    let lowered = Lowered::new(program, limits);
    let names = (0..lowered.kernels.len()).map(kernel_name).collect();
    (text(program.field(), &lowered), names)
}

fn not_worth_it(lowered: &Lowered, limits: &Limits) -> Option<String> {
    if lowered.steps < limits.steps_min {
        return Some(format!(
            "{} steps are too few to compile: the least is {}",
            lowered.steps, limits.steps_min
        ));
    }
    let kernels = lowered.kernels.len();
    (kernels > limits.kernels_max as usize).then(|| {
        format!(
            "{} multiplications need {kernels} kernels: at most {} are compiled",
            lowered.multiplications, limits.kernels_max
        )
    })
}

fn load(
    gpu: &Gpu,
    text: &Text,
    (compiler, cache): (&dyn Compiler, Option<&Cache>),
    count: usize,
) -> Result<Vec<Kernel>, Error> {
    // Not `kernels::image`: the environment names an image of the tier's own kernels.
    let capability = gpu.description().compute_capability;
    let image = match cache {
        Some(cache) => cache.image(text, capability, compiler)?,
        None => compiler.compile(text, capability)?,
    };
    let module = Kernels::load(gpu, &image)?;
    (0..count)
        .map(|number| module.kernel(&kernel_name(number)))
        .collect()
}
