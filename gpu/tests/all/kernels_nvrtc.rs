//! The kernels, compiled for devices by NVRTC: no errors, no spills, and no more registers and instructions
//! than the table below.
//!
//! The test looks for NVRTC in `SPILLPROOF_NVRTC_DIR` (a folder that pip installed the wheel into, or one
//! with the library), in `target/nvrtc` (`gpu/kernels/nvrtc.sh` fills it), and where the loader looks; and
//! for nvdisasm in the first two and in the path. Without nvdisasm it counts no instructions.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use spillproof_gpu::kernels::Text;
use spillproof_gpu::program::{Limits, compiled_text};

use crate::support::kernels::Kernels;
use crate::support::kernels::program::{ProgramShape, Random};
use crate::support::skipped;

/// The NVRTC version of the table below.
const VERSION: (i32, i32) = (13, 0);
const ARCHITECTURES: [&str; 2] = ["sm_80", "sm_90"];
/// One that the table does not contain: only spills count.
const NEWER: &str = "sm_120";

/// The compiler's result today, the larger of both architectures.
struct Given {
    kernel: &'static str,
    registers: u32,
    /// Multiplications of 32-bit words to 64 bits: IMAD.WIDE.
    wide: u32,
    instructions: u32,
}

impl Given {
    /// The scheduling may account for four registers, a fiftieth of the products and a twenty-fifth of the
    /// instructions; beyond that the code has changed, and the table must change with it.
    fn allows(&self, registers: u32, counted: Option<&Instructions>) -> bool {
        let fits = |counted: &Instructions| {
            counted.wide <= self.wide + self.wide / 50
                && counted.all <= self.instructions + self.instructions / 25
        };
        registers <= self.registers + 4 && counted.is_none_or(fits)
    }
}

const fn given(kernel: &'static str, registers: u32, wide: u32, instructions: u32) -> Given {
    Given {
        kernel,
        registers,
        wide,
        instructions,
    }
}

/// One multiplication is 120 IMAD.WIDE; three more compute addresses. A mixed addition is ten
/// multiplications, and one more in the doubling that it calls. In G2 a product and a square are called: five
/// multiplications in all.
const BOUNDS: &[Given] = &[
    given("spk_mul_bn254_fq", 40, 123, 224),
    given("spk_mul_bn254_fr", 40, 123, 224),
    given("spk_mul_pasta_fp", 40, 67, 280),
    given("spk_mul_pasta_fq", 40, 67, 280),
    given("spk_mul_goldilocks", 24, 8, 72),
    given("spk_curve_add_affine_bn254", 96, 1324, 2736),
    given("spk_msm_accumulate_bn254", 112, 1325, 2752),
    given("spk_msm_extras_bn254", 108, 1325, 2808),
    given("spk_msm_accumulate_bn254_g2", 254, 605, 2896),
    given("spk_msm_extras_bn254_g2", 254, 607, 2960),
    given("spk_msm_fold_bn254_g2", 196, 366, 2632),
    given("spk_msm_reduce_bn254_g2", 204, 363, 2616),
    given("spk_msm_total_bn254_g2", 192, 364, 2552),
    given("spk_msm_accumulate_pallas", 108, 709, 3344),
    given("spk_ntt_pass_bn254_fr", 64, 850, 1728),
    given("spk_ntt_pass_goldilocks", 38, 44, 544),
    given("spk_program_bn254_fr", 46, 153, 656),
    given("spk_rate_mul_bn254_fq", 64, 486, 928),
    given("spk_rate_mul_bn254_fr", 64, 486, 928),
    given("spk_rate_add_bn254", 124, 1324, 2744),
    given("spk_sort_scatter", 72, 4, 896),
    given("spk_sparse_runs_bn254_fr", 64, 125, 648),
    given("spk_sparse_join_bn254_fr", 40, 9, 232),
];

/// Folders that may hold the library or the wheel's folders.
fn roots() -> Vec<PathBuf> {
    let named = std::env::var_os("SPILLPROOF_NVRTC_DIR").map(PathBuf::from);
    let fetched = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../nvrtc");
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/nvrtc");
    named.into_iter().chain([fetched, workspace]).collect()
}

type Program = *mut c_void;

struct Nvrtc {
    library: Library,
    // NVRTC opens this library by its bare name, which a loaded library answers to.
    _builtins: Option<Library>,
}

impl Nvrtc {
    fn find() -> Option<Self> {
        for root in roots() {
            for folder in [root.join("nvidia/cu13/lib"), root.join("lib"), root] {
                let named = |start: &str| -> Option<PathBuf> {
                    let entries = std::fs::read_dir(&folder).ok()?;
                    let mut files: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
                    files.sort();
                    files.into_iter().find(|file| {
                        let name = file.file_name().unwrap_or_default().to_string_lossy();
                        name.starts_with(start)
                    })
                };
                let Some(file) = named("libnvrtc.so") else {
                    continue;
                };
                // SAFETY: NVIDIA's library, which the caller has put there; its initialisers are its own.
                let builtins = named("libnvrtc-builtins.so").map(|file| unsafe { open(&file) });
                // SAFETY: as above.
                let library = unsafe { open(&file) };
                match library {
                    Ok(library) => {
                        return Some(Self {
                            library,
                            _builtins: builtins.and_then(Result::ok),
                        });
                    }
                    Err(error) => skipped(&format!("{} does not load: {error}", file.display())),
                }
            }
        }
        // SAFETY: as above, from where the loader looks.
        let library = ["libnvrtc.so.13", "libnvrtc.so"]
            .iter()
            .find_map(|name| unsafe { open(Path::new(name)) }.ok())?;
        Some(Self {
            library,
            _builtins: None,
        })
    }

    fn version(&self) -> (i32, i32) {
        let (mut major, mut minor) = (0, 0);
        // SAFETY: the signature is NVRTC's.
        unsafe {
            let version: libloading::os::unix::Symbol<unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int> =
                self.library.get(b"nvrtcVersion").unwrap();
            assert_eq!(version(&raw mut major, &raw mut minor), 0);
        }
        (major, minor)
    }

    /// The image of the accelerator's kernels for an architecture, and what the compiler says.
    fn compile(&self, architecture: &str) -> Result<(Vec<u8>, String), String> {
        // With the Pasta curves, which the table contains.
        let text = Text {
            options: Vec::new(),
            ..Text::built_in()
        };
        self.compile_text(&text, architecture)
    }

    fn compile_text(&self, source: &Text, architecture: &str) -> Result<(Vec<u8>, String), String> {
        type Create = unsafe extern "C" fn(
            *mut Program,
            *const c_char,
            *const c_char,
            c_int,
            *const *const c_char,
            *const *const c_char,
        ) -> c_int;
        type Compile = unsafe extern "C" fn(Program, c_int, *const *const c_char) -> c_int;
        let text = |text: &str| CString::new(text).unwrap();
        let (name, main) = (text(&source.name), text(&source.main));
        let names: Vec<_> = source.headers.iter().map(|header| text(&header.0)).collect();
        let contents: Vec<_> = source.headers.iter().map(|header| text(&header.1)).collect();
        // Without `-default-device`: the text marks every function, so other compilers accept it too.
        let options = [
            format!("--gpu-architecture={architecture}"),
            "--std=c++17".to_owned(),
            "--ptxas-options=-v".to_owned(),
        ]
        .map(|option| text(&option));
        let pointers = |texts: &[CString]| texts.iter().map(|text| text.as_ptr()).collect::<Vec<_>>();
        let (names, contents, options) = (pointers(&names), pointers(&contents), pointers(&options));
        let mut program: Program = std::ptr::null_mut();
        // SAFETY: the signatures are NVRTC's; all texts end with a zero and live until the calls are over.
        let compiled = unsafe {
            let create: libloading::os::unix::Symbol<Create> =
                self.library.get(b"nvrtcCreateProgram").unwrap();
            let compile: libloading::os::unix::Symbol<Compile> =
                self.library.get(b"nvrtcCompileProgram").unwrap();
            let created = create(
                &raw mut program,
                main.as_ptr(),
                name.as_ptr(),
                names.len() as c_int,
                contents.as_ptr(),
                names.as_ptr(),
            );
            assert_eq!(created, 0);
            compile(program, options.len() as c_int, options.as_ptr())
        };
        let mut log = self.output(program, "nvrtcGetProgramLogSize", "nvrtcGetProgramLog");
        log.push(0);
        let log = CStr::from_bytes_until_nul(&log)
            .unwrap()
            .to_string_lossy()
            .into_owned();
        if compiled != 0 {
            return Err(format!("NVRTC gave {compiled} for {architecture}:\n{log}"));
        }
        let image = self.output(program, "nvrtcGetCUBINSize", "nvrtcGetCUBIN");
        // SAFETY: the signature is NVRTC's; the program was made above and is not used again.
        unsafe {
            let destroy: libloading::os::unix::Symbol<unsafe extern "C" fn(*mut Program) -> c_int> =
                self.library.get(b"nvrtcDestroyProgram").unwrap();
            destroy(&raw mut program);
        }
        Ok((image, log))
    }

    fn output(&self, program: Program, size: &str, get: &str) -> Vec<u8> {
        // SAFETY: the signatures are NVRTC's; the buffer is as long as it says.
        unsafe {
            let size: libloading::os::unix::Symbol<unsafe extern "C" fn(Program, *mut usize) -> c_int> =
                self.library.get(size.as_bytes()).unwrap();
            let get: libloading::os::unix::Symbol<unsafe extern "C" fn(Program, *mut u8) -> c_int> =
                self.library.get(get.as_bytes()).unwrap();
            let mut bytes = 0;
            assert_eq!(size(program, &raw mut bytes), 0);
            let mut output = vec![0; bytes];
            assert_eq!(get(program, output.as_mut_ptr()), 0);
            output
        }
    }
}

/// # Safety
/// As for [`Library::open`]: the library's initialisers run.
unsafe fn open(file: &Path) -> Result<Library, libloading::Error> {
    // SAFETY: the caller's.
    unsafe { Library::open(Some(file), RTLD_NOW | RTLD_GLOBAL) }
}

/// The resources of a compiled kernel.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Usage {
    registers: u32,
    spilled_bytes: u32,
}

/// Parses the output of `--ptxas-options=-v`, by kernel.
fn usage(log: &str) -> BTreeMap<String, Usage> {
    let mut all = BTreeMap::new();
    let mut kernel = String::new();
    let number_before = |line: &str, what: &str| -> u32 {
        let at = line
            .find(what)
            .unwrap_or_else(|| panic!("no `{what}` in `{line}`"));
        line[..at]
            .split_whitespace()
            .next_back()
            .unwrap()
            .parse()
            .unwrap()
    };
    for line in log.lines() {
        if let Some((_, rest)) = line.split_once("Compiling entry function '") {
            kernel = rest.split('\'').next().unwrap().to_owned();
            all.insert(kernel.clone(), Usage::default());
        } else if line.contains("bytes spill stores") && !kernel.is_empty() {
            // A called function counts with the kernel before it.
            let usage: &mut Usage = all.get_mut(&kernel).unwrap();
            usage.spilled_bytes +=
                number_before(line, " bytes spill stores") + number_before(line, " bytes spill loads");
        } else if line.contains("Used ") && line.contains(" registers") {
            all.get_mut(&kernel).unwrap().registers = number_before(line, " registers");
        }
    }
    all
}

/// Instructions of a kernel, called functions included.
#[derive(Debug, Default)]
struct Instructions {
    all: u32,
    wide: u32,
    local: u32,
}

/// Parses the output of nvdisasm: `/*0040*/   @P0 IMAD.WIDE.U32 R2, R4, R5, RZ ;` below `.text.kernel:`.
fn instructions(disassembly: &str) -> BTreeMap<String, Instructions> {
    let mut all: BTreeMap<String, Instructions> = BTreeMap::new();
    let mut kernel = None;
    for line in disassembly.lines() {
        if let Some(name) = line
            .strip_prefix(".text.")
            .and_then(|rest| rest.strip_suffix(':'))
        {
            kernel = Some(all.entry(name.to_owned()).or_default());
        }
        let Some((address, code)) = line
            .trim_start()
            .strip_prefix("/*")
            .and_then(|rest| rest.split_once("*/"))
        else {
            continue;
        };
        let (Some(counted), true) = (
            &mut kernel,
            address.chars().all(|digit| digit.is_ascii_hexdigit()),
        ) else {
            continue;
        };
        let Some(opcode) = code.split_whitespace().find(|word| !word.starts_with('@')) else {
            continue;
        };
        counted.all += 1;
        counted.wide += u32::from(opcode.starts_with("IMAD.WIDE"));
        counted.local += u32::from(opcode.starts_with("LDL") || opcode.starts_with("STL"));
    }
    all
}

fn disassembled(image: &[u8]) -> Option<String> {
    let tool = roots()
        .into_iter()
        .flat_map(|root| [root.join("nvidia/cu13/bin/nvdisasm"), root.join("bin/nvdisasm")])
        .find(|tool| tool.exists())
        .unwrap_or_else(|| PathBuf::from("nvdisasm"));
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), image).unwrap();
    let output = match Command::new(&tool).arg("-c").arg(file.path()).output() {
        Ok(output) => output,
        Err(error) => {
            skipped(&format!(
                "instructions are not counted: {}: {error}",
                tool.display()
            ));
            return None;
        }
    };
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn kernels_compile_without_spills_and_within_bounds() {
    let Some(nvrtc) = Nvrtc::find() else {
        skipped(&"kernels are not compiled for devices: no NVRTC; gpu/kernels/nvrtc.sh fetches it");
        return;
    };
    let version = nvrtc.version();
    for architecture in ARCHITECTURES {
        let (image, log) = nvrtc
            .compile(architecture)
            .unwrap_or_else(|error| panic!("{error}"));
        let usage = usage(&log);
        if let Some(kernels) = Kernels::load() {
            let mut names = kernels.names();
            names.sort();
            let compiled: Vec<_> = usage.keys().cloned().collect();
            assert_eq!(compiled, names, "host.cpp lists other kernels than all.cu has");
        }
        let counted = counted_without_spills(&image, &usage, architecture);
        println!("{architecture}, NVRTC {version:?}, {} bytes", image.len());
        for bound in BOUNDS {
            let registers = usage[bound.kernel].registers;
            let counts = counted.as_ref().map(|counted| &counted[bound.kernel]);
            println!("{}: {registers} registers, {counts:?}", bound.kernel);
            if version != VERSION {
                continue;
            }
            assert!(
                bound.allows(registers, counts),
                "{} for {architecture}: {registers} registers, {counts:?}, where {} registers, {} wide of {} are given",
                bound.kernel,
                bound.registers,
                bound.wide,
                bound.instructions
            );
        }
        if version != VERSION {
            skipped(&format!(
                "NVRTC is {version:?}, and the bounds are those of {VERSION:?}"
            ));
        }
    }
}

/// The kernels of devices, for an architecture that is newer than the compiler's table.
#[test]
fn kernels_compile_without_spills_for_newer_devices() {
    let Some(nvrtc) = Nvrtc::find() else {
        skipped(&"kernels are not compiled for devices: no NVRTC; gpu/kernels/nvrtc.sh fetches it");
        return;
    };
    if nvrtc.version() != VERSION {
        skipped(&format!("NVRTC is {:?}", nvrtc.version()));
        return;
    }
    let mut text = Text::built_in();
    text.main.insert_str(0, "#define SPK_WITHOUT_PASTA\n");
    let (image, log) = nvrtc
        .compile_text(&text, NEWER)
        .unwrap_or_else(|error| panic!("{error}"));
    counted_without_spills(&image, &usage(&log), NEWER);
}

/// The instructions of kernels, none of which spill.
fn counted_without_spills(
    image: &[u8],
    usage: &BTreeMap<String, Usage>,
    architecture: &str,
) -> Option<BTreeMap<String, Instructions>> {
    for (kernel, usage) in usage {
        assert_eq!(usage.spilled_bytes, 0, "{kernel} for {architecture}: {usage:?}");
        assert!(usage.registers > 0);
    }
    let counted = disassembled(image).map(|text| instructions(&text))?;
    assert_eq!(counted.len(), usage.len());
    for (kernel, counted) in &counted {
        assert_eq!(counted.local, 0, "{kernel} for {architecture}: {counted:?}");
    }
    Some(counted)
}

/// The most registers of a kernel of the compiled program below: 138, and a tenth for other texts.
const COMPILED_REGISTERS: u32 = 152;

/// A program of about 240 multiplications, in one kernel and cut into several, with many live values: no
/// spills, bounded registers.
#[test]
fn a_compiled_program_compiles_for_devices() {
    let Some(nvrtc) = Nvrtc::find() else {
        skipped(&"compiled programs are not compiled for devices: no NVRTC; gpu/kernels/nvrtc.sh fetches it");
        return;
    };
    let shape = ProgramShape {
        rows: 4,
        columns: 12,
        registers: 30,
        length: 1450,
        outputs: 2,
        rotations: 3,
    };
    // A fixed seed, since the bounds are for one text.
    let random = Random::new(shape, &mut ChaCha20Rng::seed_from_u64(240));
    let in_one = Limits {
        multiplications: 1000,
        steps: 10_000,
        ..Limits::default()
    };
    for (limits, one) in [(in_one, true), (Limits::default(), false)] {
        let (text, names) = compiled_text(&random.program, &limits);
        let products = text.main.matches("= product(").count();
        assert!((200..=280).contains(&products), "{products}");
        assert_eq!(names.len() == 1, one);
        for architecture in ARCHITECTURES {
            let start = Instant::now();
            let (image, log) = nvrtc
                .compile_text(&text, architecture)
                .unwrap_or_else(|error| panic!("{error}"));
            let seconds = start.elapsed().as_secs_f64();
            let usage = usage(&log);
            println!(
                "{architecture}: {products} multiplications, {} kernels, {seconds:.2} s, {usage:?}",
                names.len()
            );
            assert_eq!(usage.keys().cloned().collect::<Vec<_>>(), names);
            let counted = disassembled(&image).map(|text| instructions(&text));
            for name in &names {
                assert_eq!(usage[name].spilled_bytes, 0, "{name} for {architecture}");
                assert!(
                    nvrtc.version() != VERSION || usage[name].registers <= COMPILED_REGISTERS,
                    "{name} for {architecture}: {:?}",
                    usage[name]
                );
                if let Some(counted) = &counted {
                    println!("{name}: {:?}", counted[name]);
                    assert_eq!(counted[name].local, 0, "{name} for {architecture}");
                }
            }
        }
    }
}

#[test]
fn reports_are_read_right() {
    let log = "ptxas info    : 180 bytes gmem
ptxas info    : Compiling entry function 'spk_a' for 'sm_90'
ptxas info    : Function properties for spk_a
ptxas         .     16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 30 registers, used 0 barriers
ptxas info    : Compiling entry function 'spk_b' for 'sm_90'
ptxas info    : Function properties for spk_b
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 46 registers, used 1 barriers, 16 bytes cmem[0]";
    let usage = usage(log);
    assert_eq!(usage.len(), 2);
    assert_eq!((usage["spk_a"].registers, usage["spk_a"].spilled_bytes), (30, 20));
    assert_eq!((usage["spk_b"].registers, usage["spk_b"].spilled_bytes), (46, 0));
    let text = "\t.section\t.text.spk_a\n.text.spk_a:\n        /*0000*/      LDC R1, c[0x0][0x28] ;\n.L_x_1:
        /*0010*/  @!P0 IMAD.WIDE.U32 R2, R4, R5, RZ ;\n        /*0020*/  STL [R1], R2 ;\n.text.spk_b:\n        /*0000*/  EXIT ;";
    let counted = instructions(text);
    assert_eq!(
        (
            counted["spk_a"].all,
            counted["spk_a"].wide,
            counted["spk_a"].local
        ),
        (3, 1, 1)
    );
    assert_eq!(counted["spk_b"].all, 1);
}
