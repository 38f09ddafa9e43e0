//! A fake `libcuda.so` for tests. A development dependency only.
//!
//! `cuda/` holds the library (C++): devices whose memory is host memory with guard pages, streams that are
//! queues, events, modules that are shared libraries of kernels compiled for the host, failures on demand,
//! and a list of violations (use after free, copies past the end). The first test that needs it compiles it
//! with `g++` (or `$CXX`); the result is kept beside the test binaries.
//!
//! The loader finds it by name, so a test runs in a child process: [`under`] starts the same test again with
//! `LD_LIBRARY_PATH` set, and the child runs the body. A child that hangs is killed; the output of a child
//! that fails is shown.
//!
//! Work that is queued on a stream runs as late as the API allows: see [`Order`]. So a missing event shows,
//! which a fast machine would hide. A test that passes under all orders says nothing about speed, about
//! memory on a separate chip, or about two kernels that run at once.
//!
//! A whole program runs under it through [`FakeDevice::command`], with settings in the environment:
//! `FAKE_CUDA_DEVICES`, `FAKE_CUDA_MEMORY_BYTES`, `FAKE_CUDA_VERSION`, `FAKE_CUDA_ORDER` (`late`, `eager`,
//! `random:<seed>`), `FAKE_CUDA_FAIL` (`<call, kernel or any>:<n>:<code>[:lost]`; with code -1 the call, or the
//! launch of that kernel, does nothing and reports success), `FAKE_CUDA_FAIL_ON` (`<device>:<n>:<code>[:lost]`,
//! the n-th call of any kind on that device), `FAKE_CUDA_PEERS` (`<from>-<to>:<none or atomics>`, several with
//! commas: how two devices reach each other's memory, the lower number first).

mod build;
mod control;
mod device;

use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub use build::{Built, NoCompiler, build};
pub use control::{Code, FakeDriver, Live, Order, Peers};
pub use device::FakeDevice;

const CHILD: &str = "SPILLPROOF_FAKE_DRIVER_CHILD";
const KERNELS: &str = "SPILLPROOF_FAKE_DRIVER_KERNELS";
/// The longest time of a child: a hang must be a failure.
const CHILD_SECONDS_MAX: u64 = 120;

/// Runs `body` under the fake driver: `under(module_path!(), "name_of_this_test", |driver| ..)` is the whole
/// body of a test.
///
/// # Panics
/// If the body panics, the child dies or hangs, or the library does not compile. Without a compiler it prints
/// `SKIPPED`.
pub fn under(module: &str, test: &str, body: impl FnOnce(&FakeDriver)) {
    if let Some((end, said)) = run_under(module, test, body) {
        assert_eq!(end, End::Well, "{test} under the fake driver:\n{said}");
        println!("{said}");
    }
}

/// As [`under`], with the kernels of `gpu/kernels`, which accelerators in the body find.
///
/// # Panics
/// As there; without the kernels it prints `SKIPPED`.
pub fn under_with_kernels(module: &str, test: &str, body: impl FnOnce(&FakeDriver)) {
    let name = name_of(module, test);
    if is_child(&name) {
        return body(&FakeDriver::loaded());
    }
    if let Some(device) = FakeDevice::new() {
        let this = std::env::current_exe().expect("the test binary has a path");
        let (end, said) = run_again(&name, device.command(this));
        assert_eq!(end, End::Well, "{test} under the fake driver:\n{said}");
        println!("{said}");
    }
}

/// As [`under`], for a body that the processor must kill because it accesses memory that is closed to it: see
/// [`FakeDriver::guard`].
///
/// # Panics
/// If the body ends in another way.
pub fn killed_under(module: &str, test: &str, body: impl FnOnce(&FakeDriver)) {
    if let Some((end, said)) = run_under(module, test, body) {
        let expected = [SIGSEGV, SIGBUS].map(|signal| End::Killed(Some(signal)));
        assert!(
            expected.contains(&end),
            "{test} under the fake driver ended as {end:?}:\n{said}"
        );
    }
}

const SIGBUS: i32 = 7;
const SIGSEGV: i32 = 11;

/// How a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The test passed.
    Well,
    /// The test failed, or no test has that name.
    Badly,
    /// A signal killed it.
    Killed(Option<i32>),
    /// It did not end in time.
    Hung,
}

/// Runs the body in the child, or starts the child. `None` in the child itself, and where no compiler is
/// found.
fn run_under(module: &str, test: &str, body: impl FnOnce(&FakeDriver)) -> Option<(End, String)> {
    let name = name_of(module, test);
    if is_child(&name) {
        body(&FakeDriver::loaded());
        return None;
    }
    match build() {
        Ok(built) => {
            let this = std::env::current_exe().expect("the test binary has a path");
            let mut command = built.command(this);
            command.env(KERNELS, &built.test_kernels);
            Some(run_again(&name, command))
        }
        Err(reason) => {
            // On standard error, since the test runner hides the output of tests that pass.
            let line = format!("SKIPPED: {name}: {reason}\n");
            let _ = std::io::stderr().write_all(line.as_bytes());
            None
        }
    }
}

/// A test's name, as the test runner has it.
fn name_of(module: &str, test: &str) -> String {
    match module.split_once("::") {
        Some((_, inner)) => format!("{inner}::{test}"),
        None => test.to_owned(),
    }
}

/// Whether this process is the child that runs the body of this test.
fn is_child(name: &str) -> bool {
    std::env::var_os(CHILD).is_some_and(|child| child == *name)
}

/// An image that the fake driver loads as a module: the two kernels `spk_test_scale` and
/// `spk_test_accumulate`.
///
/// # Panics
/// If it is called outside the body of [`under`].
pub fn test_kernels_image() -> Vec<u8> {
    let path = std::env::var(KERNELS).expect("only in a test under the fake driver");
    host_module_image(path.as_ref())
}

/// An image that the fake driver loads as a module: a shared library that exports `host_<name>` for every
/// kernel.
pub fn host_module_image(library: &std::path::Path) -> Vec<u8> {
    format!("spillproof-host-module:{}\0", library.display()).into_bytes()
}

/// This test binary again, by a command that starts it under the driver.
fn run_again(name: &str, mut command: Command) -> (End, String) {
    let child = command
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(CHILD, name)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the test binary starts again");
    watch(child)
}

/// Waits for the child, or kills it after [`CHILD_SECONDS_MAX`]. Returns how it ended, and its output.
fn watch(mut child: Child) -> (End, String) {
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let out = std::thread::spawn(move || all_of(out));
    let err = std::thread::spawn(move || all_of(err));
    let start = Instant::now();
    let ended = loop {
        match child.try_wait().expect("a child can be waited for") {
            Some(status) => break Some(status),
            None if start.elapsed() > Duration::from_secs(CHILD_SECONDS_MAX) => {
                let _ = child.kill();
                let _ = child.wait();
                break None;
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let said = out.join().unwrap_or_default() + &err.join().unwrap_or_default();
    let end = match ended {
        None => End::Hung,
        // A child that ran no test succeeds, too, and must not count.
        Some(status) if status.success() && said.contains("1 passed") => End::Well,
        Some(status) if status.code().is_none() => End::Killed(status.signal()),
        Some(_) => End::Badly,
    };
    (end, said)
}

fn all_of(stream: Option<impl Read>) -> String {
    let mut bytes = Vec::new();
    if let Some(mut stream) = stream {
        let _ = stream.read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The folder of the built library: beside the test binaries, so `cargo clean` removes it.
fn build_folder() -> PathBuf {
    let this = std::env::current_exe().unwrap_or_default();
    this.parent().map_or_else(std::env::temp_dir, PathBuf::from)
}
