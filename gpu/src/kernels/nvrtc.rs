//! NVRTC, the CUDA compiler as a library. It gives a cubin for the device's architecture, or PTX for the
//! nearest older one if NVRTC does not support the device yet; the driver compiles the PTX when it loads it.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int};
use std::path::PathBuf;
use std::ptr;

use cudarc::nvrtc::sys::{self, nvrtcProgram, nvrtcResult};

use super::find::{self, FOLDER_VARIABLE};
use super::{Compiler, IMAGE_VARIABLE, Text};
use crate::error::{Error, Invalid, Result};

/// NVRTC. [`Nvrtc::find`] fails where it is missing.
#[derive(Debug, Clone, Copy)]
pub struct Nvrtc {
    _found: (),
}

impl Nvrtc {
    /// Looks for the library where the loader does, in the folder that [`FOLDER_VARIABLE`] names, and in the
    /// usual folders.
    ///
    /// # Errors
    /// [`Error::NoCompiler`].
    pub fn find() -> Result<Self> {
        Self::find_in(find::usual_roots())
    }

    /// Looks for the library where the loader does, and in these folders.
    ///
    /// # Errors
    /// [`Error::NoCompiler`].
    pub fn find_in(folders: impl IntoIterator<Item = PathBuf>) -> Result<Self> {
        match find::load(folders.into_iter()) {
            true => Ok(Self { _found: () }),
            false => Err(Error::NoCompiler {
                folder_variable: FOLDER_VARIABLE,
                image_variable: IMAGE_VARIABLE,
            }),
        }
    }

    /// The newest architecture that the library supports and the device can run, as 10 * major + minor.
    fn architecture(wanted: i32) -> Result<i32> {
        let mut count: c_int = 0;
        // SAFETY: writes one number.
        check("count architectures", unsafe {
            sys::nvrtcGetNumSupportedArchs(&raw mut count)
        })?;
        let mut known = vec![0; usize::try_from(count).unwrap_or(0)];
        // SAFETY: writes `count` numbers.
        check("list architectures", unsafe {
            sys::nvrtcGetSupportedArchs(known.as_mut_ptr())
        })?;
        let best = known.into_iter().filter(|&known| known <= wanted).max();
        best.ok_or_else(|| Error::Compile {
            arch: format!("sm_{wanted}"),
            log: "this NVRTC does not support the device any more: install an older one".into(),
        })
    }
}

impl Compiler for Nvrtc {
    fn version(&self) -> Result<String> {
        let (mut major, mut minor) = (0, 0);
        // SAFETY: writes two numbers.
        check("report its version", unsafe {
            sys::nvrtcVersion(&raw mut major, &raw mut minor)
        })?;
        Ok(format!("nvrtc {major}.{minor}"))
    }

    fn compile(&self, text: &Text, (major, minor): (i32, i32)) -> Result<Vec<u8>> {
        let wanted = major * 10 + minor;
        let known = Self::architecture(wanted)?;
        let real = known == wanted;
        let arch = format!("{}_{known}", if real { "sm" } else { "compute" });
        let program = NvrtcProgram::new(text)?;
        let mut options = vec![
            format!("--gpu-architecture={arch}"),
            "--std=c++17".into(),
            "-default-device".into(),
        ];
        options.extend(text.options.iter().cloned());
        program.compile(&arch, &options)?;
        if real {
            program.output(sys::nvrtcGetCUBINSize, sys::nvrtcGetCUBIN)
        } else {
            program.output(sys::nvrtcGetPTXSize, sys::nvrtcGetPTX)
        }
    }
}

/// A program of NVRTC, destroyed on drop.
struct NvrtcProgram {
    raw: nvrtcProgram,
}

type SizeOf = unsafe fn(nvrtcProgram, *mut usize) -> nvrtcResult;
type Get = unsafe fn(nvrtcProgram, *mut c_char) -> nvrtcResult;

impl NvrtcProgram {
    fn new(text: &Text) -> Result<Self> {
        let name = c_string(&text.name)?;
        let main = c_string(&text.main)?;
        let names = text.headers.iter().map(|(name, _)| c_string(name));
        let names = names.collect::<Result<Vec<_>>>()?;
        let contents = text.headers.iter().map(|(_, content)| c_string(content));
        let contents = contents.collect::<Result<Vec<_>>>()?;
        let name_starts: Vec<_> = names.iter().map(|name| name.as_ptr()).collect();
        let content_starts: Vec<_> = contents.iter().map(|content| content.as_ptr()).collect();
        let count = c_int::try_from(names.len()).unwrap_or(c_int::MAX);
        let mut raw: nvrtcProgram = ptr::null_mut();
        // SAFETY: all texts end with a zero and live until the call is over (NVRTC copies them); both lists
        // have `count` entries.
        let created = unsafe {
            sys::nvrtcCreateProgram(
                &raw mut raw,
                main.as_ptr(),
                name.as_ptr(),
                count,
                content_starts.as_ptr(),
                name_starts.as_ptr(),
            )
        };
        check("make a program", created)?;
        Ok(Self { raw })
    }

    fn compile(&self, arch: &str, options: &[String]) -> Result<()> {
        let options = options.iter().map(|option| c_string(option));
        let options = options.collect::<Result<Vec<_>>>()?;
        let starts: Vec<_> = options.iter().map(|option| option.as_ptr()).collect();
        let count = c_int::try_from(starts.len()).unwrap_or(c_int::MAX);
        // SAFETY: `count` texts that end with a zero and live until the call is over.
        let compiled = unsafe { sys::nvrtcCompileProgram(self.raw, count, starts.as_ptr()) };
        if compiled == nvrtcResult::NVRTC_SUCCESS {
            return Ok(());
        }
        let log = self.output(sys::nvrtcGetProgramLogSize, sys::nvrtcGetProgramLog);
        let log = log.map_or_else(
            |_| format!("{compiled:?}"),
            |bytes| {
                CStr::from_bytes_until_nul(&bytes).map_or_else(
                    |_| format!("{compiled:?}"),
                    |log| log.to_string_lossy().into_owned(),
                )
            },
        );
        Err(Error::Compile {
            arch: arch.to_owned(),
            log,
        })
    }

    fn output(&self, size_of: SizeOf, get: Get) -> Result<Vec<u8>> {
        let mut bytes = 0;
        // SAFETY: writes one number.
        check("report the size of its output", unsafe {
            size_of(self.raw, &raw mut bytes)
        })?;
        let mut output = vec![0u8; bytes];
        // SAFETY: writes as many bytes as it said.
        check("give its output", unsafe {
            get(self.raw, output.as_mut_ptr().cast())
        })?;
        Ok(output)
    }
}

impl Drop for NvrtcProgram {
    fn drop(&mut self) {
        // SAFETY: made once, destroyed once. There is nothing to do about a failure.
        let _ = unsafe { sys::nvrtcDestroyProgram(&raw mut self.raw) };
    }
}

fn c_string(text: &str) -> Result<CString> {
    CString::new(text).map_err(|_| Invalid::call("the text of the kernels contains a zero byte").into())
}

fn check(operation: &'static str, result: nvrtcResult) -> Result<()> {
    if result == nvrtcResult::NVRTC_SUCCESS {
        Ok(())
    } else {
        Err(Error::Compile {
            arch: "any device".into(),
            log: format!("NVRTC failed to {operation}: {result:?}"),
        })
    }
}
