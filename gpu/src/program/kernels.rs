//! The kernels that run a program on a device: compiled for it, or the interpreter.

use std::time::Instant;

use super::instructions::{DeviceProgram, FIELD};
use super::lower::{Limits, LoweredProgram};
use super::text::{kernel_name, text};
use crate::device::Gpu;
use crate::error::{Error, Result};
use crate::kernels::{Cache, Compiler, Kernel, Kernels, Nvrtc, Text};

/// How a program runs.
#[derive(Debug, Clone, PartialEq)]
pub enum ProgramMethod {
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
pub struct ProgramKernels {
    program: DeviceProgram,
    method: ProgramMethod,
    /// The interpreter alone, or the kernels of the program, in order.
    kernels: Vec<Kernel>,
}

impl ProgramKernels {
    /// Compiles a program with NVRTC, or takes it from the cache. If that is impossible or not worth it, the
    /// interpreter among `built_in` kernels runs the program, and [`ProgramKernels::method`] gives the
    /// reason.
    ///
    /// # Errors
    /// [`Error::NoKernel`] if the image of the kernels is an old one; [`Error::Driver`] if the device is
    /// lost.
    pub fn new(gpu: &Gpu, built_in: &Kernels, program: DeviceProgram, cache: Option<&Cache>) -> Result<Self> {
        match Nvrtc::find() {
            Ok(nvrtc) => Self::compiled_by(gpu, built_in, program, &nvrtc, cache, &Limits::default()),
            Err(error) => Self::interpreted(built_in, program, error.to_string()),
        }
    }

    /// The same with this compiler, within these limits.
    ///
    /// # Errors
    /// As [`ProgramKernels::new`].
    pub fn compiled_by(
        gpu: &Gpu,
        built_in: &Kernels,
        program: DeviceProgram,
        compiler: &dyn Compiler,
        cache: Option<&Cache>,
        limits: &Limits,
    ) -> Result<Self> {
        let lowered = LoweredProgram::new(&program, limits);
        if let Some(why) = not_worth_it(&lowered, limits) {
            return Self::interpreted(built_in, program, why);
        }
        let start = Instant::now();
        let text = text(&lowered);
        match load(gpu, &text, compiler, cache, lowered.kernels.len()) {
            Ok(kernels) => Ok(Self {
                method: ProgramMethod::Compiled {
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
                Self::interpreted(built_in, program, error.to_string())
            }
        }
    }

    /// The interpreter, for a reason that the caller gives.
    ///
    /// # Errors
    /// As [`ProgramKernels::new`].
    pub fn interpreted(built_in: &Kernels, program: DeviceProgram, why: impl Into<String>) -> Result<Self> {
        let kernel = built_in.kernel(&format!("spk_program_{FIELD}"))?;
        Ok(Self {
            program,
            method: ProgramMethod::Interpreted { why: why.into() },
            kernels: vec![kernel],
        })
    }

    /// The same kernels for a program that differs in its constants only; `None` for any other program.
    pub fn of_the_same_shape(&self, program: &DeviceProgram) -> Option<Self> {
        self.program.has_the_shape_of(program).then(|| Self {
            program: program.clone(),
            method: self.method.clone(),
            kernels: self.kernels.clone(),
        })
    }

    /// The program.
    pub fn program(&self) -> &DeviceProgram {
        &self.program
    }

    /// How the program runs.
    pub fn method(&self) -> &ProgramMethod {
        &self.method
    }

    pub(super) fn list(&self) -> &[Kernel] {
        &self.kernels
    }
}

/// The text that a program is compiled from, within these limits, and the names of its kernels.
pub fn compiled_text(program: &DeviceProgram, limits: &Limits) -> (Text, Vec<String>) {
    let lowered = LoweredProgram::new(program, limits);
    let names = (0..lowered.kernels.len()).map(kernel_name).collect();
    (text(&lowered), names)
}

fn not_worth_it(lowered: &LoweredProgram, limits: &Limits) -> Option<String> {
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
    compiler: &dyn Compiler,
    cache: Option<&Cache>,
    count: usize,
) -> Result<Vec<Kernel>, Error> {
    // Not `kernels::image`: the environment names an image of the crate's own kernels.
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
