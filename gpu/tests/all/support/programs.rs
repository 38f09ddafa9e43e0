//! Programs on the devices of the fake driver: a compiler of generated text for the host, columns in memory.

use std::cell::Cell;
use std::path::Path;
use std::process::Command;

use super::kernels::program::{Element, Random};
use super::skipped;
use spillproof_fake_driver::host_module_image;
use spillproof_gpu::kernels::{Compiler, Text};
use spillproof_gpu::program::{Engine, Evaluate, ProgramPlan, ReadColumns, Resident, WriteColumns};
use spillproof_gpu::ring::{Download, Upload};
use spillproof_gpu::trace::Detail;
use spillproof_gpu::{BoxedError, Caching, Error, Gpu, Pinned, Result, Vram};

/// Compiles texts with `$CXX`, or `c++`, and the shim; its images are modules of the fake driver.
pub struct Host {
    folder: tempfile::TempDir,
    compiled: Cell<u32>,
}

fn cxx() -> String {
    std::env::var("CXX").unwrap_or_else(|_| "c++".into())
}

impl Host {
    pub fn new() -> Self {
        // Unit tests do not have that folder.
        let folder = match option_env!("CARGO_TARGET_TMPDIR") {
            Some(folder) => tempfile::tempdir_in(folder).unwrap(),
            None => tempfile::tempdir().unwrap(),
        };
        Self {
            folder,
            compiled: Cell::new(0),
        }
    }

    /// Whether no compiler is found; prints `SKIPPED`.
    pub fn missing() -> bool {
        let found = Command::new(cxx()).arg("--version").output();
        if let Err(error) = &found {
            skipped(&format!(
                "generated programs are not compiled: {}: {error}",
                cxx()
            ));
        }
        found.is_err()
    }

    /// The number of compiled texts.
    pub fn compiled(&self) -> u32 {
        self.compiled.get()
    }
}

impl Compiler for Host {
    fn version(&self) -> Result<String> {
        Ok(cxx())
    }

    fn compile(&self, text: &Text, _: (i32, i32)) -> Result<Vec<u8>> {
        let number = self.compiled.get();
        self.compiled.set(number + 1);
        let folder = self.folder.path().join(number.to_string());
        std::fs::create_dir(&folder).unwrap();
        for (name, content) in &text.headers {
            std::fs::write(folder.join(name), content).unwrap();
        }
        let main = folder.join("main.cpp");
        std::fs::write(&main, &text.main).unwrap();
        let shim = Path::new(env!("CARGO_MANIFEST_DIR")).join("shim");
        let library = folder.join("program.so");
        let output = Command::new(cxx())
            .args([
                "-std=c++20",
                "-O1",
                "-shared",
                "-fPIC",
                "-Wall",
                "-Wextra",
                "-Werror",
            ])
            .args(["-Wno-unknown-pragmas", "-U_FORTIFY_SOURCE", "-DSPK_HOST=1"])
            .arg("-I")
            .arg(&folder)
            .arg("-I")
            .arg(&shim)
            .arg(&main)
            .arg(shim.join("shim.cpp"))
            .arg("-o")
            .arg(&library)
            .output()
            .unwrap();
        if !output.status.success() {
            return Err(Error::Compile {
                arch: "the host".into(),
                log: String::from_utf8_lossy(&output.stderr).into_owned(),
            });
        }
        Ok(host_module_image(&library))
    }
}

/// Columns of bytes.
struct Memory(Vec<Vec<u8>>, usize);

impl ReadColumns for Memory {
    fn read(&mut self, column: u32, first: u64, into: &mut [u8]) -> Result<(), BoxedError> {
        let start = first as usize * self.1;
        let from = self.0[column as usize].get(start..start + into.len());
        into.copy_from_slice(from.ok_or("past the last row")?);
        Ok(())
    }
}

impl WriteColumns for Memory {
    fn write(&mut self, output: u32, first: u64, bytes: &[u8]) -> Result<(), BoxedError> {
        let start = first as usize * self.1;
        let to = self.0[output as usize].get_mut(start..start + bytes.len());
        to.ok_or("past the last row")?.copy_from_slice(bytes);
        Ok(())
    }
}

fn memory<E: Element>(columns: &[Vec<E>]) -> Memory {
    let bytes = |column: &Vec<E>| column.iter().flat_map(E::bytes).collect();
    Memory(
        columns.iter().map(bytes).collect(),
        E::FIELD.element_bytes() as usize,
    )
}

/// Outputs with bytes that are no result.
fn outputs<E: Element>(random: &Random<E>) -> Memory {
    let element_bytes = E::FIELD.element_bytes() as usize;
    let column = vec![0x99; random.rows() * element_bytes];
    Memory(vec![column; random.program.outputs() as usize], element_bytes)
}

pub fn is_right<E: Element>(found: &[Vec<u8>], expected: &[Vec<E>]) -> bool {
    found == memory(expected).0
}

/// The whole job over columns on the host, with budgets that are just enough.
pub fn evaluated<E: Element>(
    ordinal: usize,
    engine: &dyn Fn(&Gpu) -> Result<Engine>,
    random: &Random<E>,
    plan: ProgramPlan,
    slots: usize,
) -> Result<Vec<Vec<u8>>> {
    let gpu = Gpu::open(ordinal, Detail::Counts)?;
    let pinned = Pinned::new(1 << 22);
    let up_bytes = plan.upload_slot_bytes() as usize;
    let up = match up_bytes {
        0 => None,
        bytes => Some(pinned.pool(&gpu, slots, bytes, Caching::WriteCombined, "up")?),
    };
    let back = pinned.pool(
        &gpu,
        slots,
        plan.download_slot_bytes() as usize,
        Caching::Cached,
        "back",
    )?;
    let mut upload = up
        .map(|up| Upload::new(up.take(slots)?, gpu.trace()))
        .transpose()?;
    let mut download = Download::new(back.take(slots)?, gpu.trace())?;
    let vram = Vram::new(&gpu, plan.vram_bytes());
    let tiles = plan.tiles();
    let mut evaluate = Evaluate::new(&vram, engine(&gpu)?, plan)?;
    assert_eq!(
        vram.ledger().held_bytes(),
        evaluate.plan().vram_bytes(),
        "a plan says what is leased"
    );
    let (mut from, mut to) = (memory(&random.columns), outputs(random));
    // Twice: what is left of a run is no part of the next.
    for _ in 0..2 {
        evaluate.run(upload.as_mut(), &mut download, &mut from, &mut to)?;
    }
    assert!(
        gpu.trace().hard_syncs() <= 4,
        "{tiles} tiles, {} waits",
        gpu.trace().hard_syncs()
    );
    Ok(to.0)
}

/// The same over columns on the device.
pub fn evaluated_over<E: Element>(
    ordinal: usize,
    engine: &dyn Fn(&Gpu) -> Result<Engine>,
    random: &Random<E>,
    plan: ProgramPlan,
) -> Result<Vec<Vec<u8>>> {
    let gpu = Gpu::open(ordinal, Detail::Counts)?;
    let element_bytes = E::FIELD.element_bytes();
    let (columns, rows, chunk_rows) = (random.columns.len() as u32, random.rows() as u64, 5);
    let pinned = Pinned::new(1 << 22);
    let up = pinned.pool(
        &gpu,
        2,
        (chunk_rows * element_bytes) as usize,
        Caching::Cached,
        "up",
    )?;
    let back = pinned.pool(
        &gpu,
        2,
        plan.download_slot_bytes() as usize,
        Caching::Cached,
        "back",
    )?;
    let mut upload = Upload::new(up.take(2)?, gpu.trace())?;
    let mut download = Download::new(back.take(2)?, gpu.trace())?;
    let for_columns = Vram::new(
        &gpu,
        Resident::vram_bytes(columns, rows, element_bytes, chunk_rows),
    );
    let mut from = memory(&random.columns);
    let shape = (columns, rows, element_bytes);
    let resident = Resident::upload(&for_columns, &mut upload, shape, chunk_rows, &mut from)?;
    let vram = Vram::new(&gpu, plan.vram_bytes());
    let mut evaluate = Evaluate::new(&vram, engine(&gpu)?, plan)?;
    let mut to = outputs(random);
    for _ in 0..2 {
        evaluate.run_over(&resident, &mut download, &mut to)?;
    }
    Ok(to.0)
}
