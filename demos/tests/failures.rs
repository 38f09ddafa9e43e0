//! What a user reads when a run cannot succeed: an error with the file or the number, exit code 1, before any
//! work, and no file is left.

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::Duration;

use spillproof_cli::signals::is_ignored;
use spillproof_engine::error::Invalid;
use spillproof_engine::{Error, Session};

use crate::{BINARY, Mounted, skipped};

/// The errors of a run in `dir` that fails with exit code 1.
fn error_of(dir: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new(BINARY);
    let output = command
        .args(arguments)
        .current_dir(dir)
        .env_remove("SPILLPROOF_DIR")
        .output()
        .expect("the binary runs");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {errors}");
    assert!(
        errors.contains("error: ") && !errors.contains("panicked"),
        "{errors}"
    );
    errors
}

#[test]
fn places_that_take_no_files() {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::write(dir.path().join("file"), "here before").expect("a file");
    let chain = ["prove", "--circuit", "chain", "--k", "8", "--memory", "16MiB"];
    for (more, named) in [
        (["--out", "proof", "--dir", "file"], "file"),
        (["--out", "proof", "--dir", "/proc"], "/proc"),
        (["--out", "nowhere/proof", "--dir", "."], "nowhere/proof"),
        (["--out", "/", "--dir", "."], "/"),
    ] {
        let error = error_of(dir.path(), &[&chain[..], &more[..]].concat());
        assert!(error.contains(named), "{error}");
    }
    // The report's place is looked at before the proof is made.
    let report = ["--out", "proof", "--report", "nowhere/report.html"];
    let error = error_of(dir.path(), &[&chain[..], &report[..]].concat());
    assert!(error.contains("nowhere/report.html"), "{error}");
    let error = error_of(dir.path(), &["srs", "gen", "--k", "6", "--out", "/dev/null"]);
    assert!(
        error.contains("/dev/null") && error.contains("a device"),
        "{error}"
    );
    let left: Vec<_> = std::fs::read_dir(dir.path())
        .expect("a directory")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    assert_eq!(left, ["file"]);
}

/// A parameter file mixed from two ceremonies has only points of the curve. It is refused before the keys are
/// made; in a budget without room for that check, the proof is, since it does not verify.
#[test]
fn parameters_that_do_not_belong_together() {
    let dir = tempfile::tempdir().expect("a directory");
    let run = |command: &mut Command, arguments: &str| {
        let arguments = arguments.split_whitespace();
        command
            .args(arguments)
            .current_dir(dir.path())
            .output()
            .expect("the binary runs")
    };
    for seed in ["1", "2"] {
        let made = run(
            &mut Command::new(BINARY),
            &format!("srs gen --k 8 --seed {seed} --out {seed}.srs"),
        );
        assert!(made.status.success(), "{made:?}");
        let exported = format!("srs export {seed}.srs --out {seed}.params --format raw");
        assert!(run(&mut Command::new(BINARY), &exported).status.success());
    }
    let read = |name: &str| std::fs::read(dir.path().join(name)).expect("a file");
    let (mut mixed, other, half) = (read("1.params"), read("2.params"), 4 + (64 << 8));
    mixed[half..half + (64 << 8)].copy_from_slice(&other[half..half + (64 << 8)]);
    std::fs::write(dir.path().join("mixed.params"), mixed).expect("a file");

    let prove = "prove --circuit chain --k 8 --memory 16MiB --dir . --params mixed.params --out proof";
    let error = error_of(dir.path(), &prove.split_whitespace().collect::<Vec<_>>());
    assert!(
        error.contains("g_lagrange is not the Lagrange form of g"),
        "{error}"
    );
    let planned = run(
        &mut Command::new(BINARY),
        "plan --circuit chain --k 8 --memory 1GiB --threads 2 --json",
    );
    let plan: serde_json::Value = serde_json::from_slice(&planned.stdout).expect("JSON");
    let smallest = &plan["result"]["plan"]["smallest_budget_bytes"];
    let prove = format!(
        "prove --circuit chain --k 8 --memory {smallest} --threads 2 --dir . --params mixed.params --out proof"
    );
    let error = error_of(dir.path(), &prove.split_whitespace().collect::<Vec<_>>());
    assert!(error.contains("the proof does not verify"), "{error}");
    assert!(!dir.path().join("proof").exists());
    let mut trusting = Command::new(BINARY);
    let made = run(trusting.env("SPILLPROOF_SELF_VERIFICATION", "0"), &prove);
    assert!(made.status.success(), "{made:?}");
    assert!(dir.path().join("proof").exists());
}

fn run(command: &mut Command, arguments: &str) -> Output {
    let output = command.args(arguments.split_whitespace()).output();
    output.expect("the binary runs")
}

/// A folder for scratch files has to be there: one that is missing may be a disk that is not mounted. So it is
/// for `--dir`, for the variable, and for a session that a program builds.
#[test]
fn a_missing_folder_of_scratch_files_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let prove = "prove --circuit chain --k 8 --memory 16MiB --out proof";
    let mut with_flag = Command::new(BINARY);
    let flag = with_flag.args(["--dir", "made/for/this"]);
    let mut with_variable = Command::new(BINARY);
    let variable = with_variable.env("SPILLPROOF_DIR", "made/for/this");
    for command in [flag, variable] {
        let refused = run(command.current_dir(dir.path()), prove);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(1), "{said}");
        assert!(
            said.contains("`made/for/this` is no folder (No such file"),
            "{said}"
        );
        assert!(
            said.contains("mount its disk") && said.contains("flag: --dir"),
            "{said}"
        );
        assert_eq!(std::fs::read_dir(dir.path()).expect("a directory").count(), 0);
    }
    let built = Session::builder().dir(dir.path().join("made")).build();
    let refused = built.expect_err("no folder");
    assert!(
        matches!(refused, Error::Invalid(Invalid::NoFolder { .. })),
        "{refused}"
    );
    assert_eq!(std::fs::read_dir(dir.path()).expect("a directory").count(), 0);
}

/// A misspelt variable is named with the nearest one, once; not with `--quiet`.
#[test]
fn a_misspelt_variable_is_named() {
    let dir = tempfile::tempdir().expect("a directory");
    for (quiet, times) in [("", 1), (" --quiet", 0)] {
        let mut command = Command::new(BINARY);
        command.env("SPILLPROOF_MEMROY", "2GiB").current_dir(dir.path());
        let made = run(&mut command, &format!("srs gen --k 4 --out srs{quiet}"));
        let said = String::from_utf8_lossy(&made.stderr).into_owned();
        assert!(made.status.success(), "{said}");
        let line =
            "the variable SPILLPROOF_MEMROY is set, and has no effect: the nearest name is SPILLPROOF_MEMORY";
        assert_eq!(said.matches(line).count(), times, "{said}");
    }
}

/// A run that is long enough to be stopped, in `dir`, with scratch files in `folder`.
fn long_run(dir: &Path, folder: &Path) -> Child {
    let mut command = Command::new(BINARY);
    command.args("prove --circuit chain --k 17 --memory 64MiB --out proof --dir".split(' '));
    command.arg(folder).current_dir(dir);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("the binary runs")
}

/// SIGTERM and SIGINT end a run as they end other programs, and leave no scratch files.
#[test]
fn a_signal_leaves_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let scratch = tempfile::tempdir().expect("a directory");
    for (name, number) in [("-TERM", 15), ("-INT", 2)] {
        if is_ignored(number) {
            skipped(format_args!(
                "signal {number} was ignored when the tests were started"
            ));
            continue;
        }
        let mut child = long_run(dir.path(), scratch.path());
        std::thread::sleep(Duration::from_secs(2));
        let id = child.id().to_string();
        let sent = Command::new("kill").args([name, &id]).status().expect("kill");
        assert!(sent.success(), "the run ended before the signal");
        let status = child.wait().expect("an end");
        assert_eq!(status.signal(), Some(number), "{status}");
        for folder in [&dir, &scratch] {
            let left = std::fs::read_dir(folder.path()).expect("a directory");
            assert_eq!(left.count(), 0, "{name}");
        }
    }
}

/// How a short run ends in a shell that has said `limit`, and its errors. No file is left.
fn limited(limit: &str, memory: &str) -> (ExitStatus, String) {
    let dir = tempfile::tempdir().expect("a directory");
    let script = format!("{limit} && exec \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &script, BINARY, "--memory", memory]);
    command.args("prove --circuit chain --k 12 --out proof --dir .".split(' '));
    let output = command.current_dir(dir.path()).output().expect("a shell");
    if !output.status.success() {
        let left = std::fs::read_dir(dir.path()).expect("a directory");
        assert_eq!(left.count(), 0, "{limit}");
    }
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status, errors)
}

/// The command line alone would take more of a stack than such a limit leaves.
#[test]
fn a_limit_on_stacks() {
    for kib in [64, 256] {
        let (status, errors) = limited(&format!("ulimit -s {kib}"), "8MiB");
        assert!(status.success(), "{kib} KiB, {status}: {errors}");
    }
}

/// A limit on the size of files is an error, as a full disk is.
#[test]
fn a_limit_on_the_size_of_files() {
    let (status, errors) = limited("ulimit -f 8", "8MiB");
    assert_eq!(status.code(), Some(1), "{errors}");
    assert!(
        errors.contains("error: ") && errors.contains("too large"),
        "{errors}"
    );
}

/// Memory that the system does not give is an error, also that of the heap.
#[test]
fn a_limit_on_the_memory_of_the_process() {
    let program_kib = std::fs::metadata(BINARY).expect("the binary").len() >> 10;
    let mut ends = Vec::new();
    // The loader maps the program and its libraries, without what is for debuggers; an MPI has many.
    let little_mib = [
        40, 44, 48, 52, 56, 60, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256,
    ];
    let little_mib = little_mib.map(|mib| (mib, mib << 10));
    let more_mib = [16, 64, 400].map(|mib| (mib, program_kib + (mib << 10)));
    for (more_mib, limit_kib) in little_mib.into_iter().chain(more_mib) {
        let (status, errors) = limited(&format!("ulimit -v {limit_kib}"), "8MiB");
        // The loader and the first thread may need more than the limit: then the program has not begun.
        let has_begun = !errors.contains("shared libraries") && !errors.is_empty();
        if has_begun && !status.success() {
            assert_eq!(status.code(), Some(1), "{limit_kib} KiB, {status}: {errors}");
            assert!(errors.contains("error: "), "{limit_kib} KiB: {errors}");
        }
        ends.push((more_mib, status.code()));
    }
    assert!(ends.iter().any(|(_, code)| *code == Some(1)), "{ends:?}");
    // Arenas of the heap, one for each thread, would take 64 MiB of addresses each.
    assert_eq!(ends.last(), Some(&(400, Some(0))), "{ends:?}");
}

/// Before a proof begins, the room that it takes is compared with that which the disk has.
#[test]
fn a_disk_with_too_little_room() {
    let dir = tempfile::tempdir().expect("a directory");
    let (place, out) = (dir.path().join("place"), dir.path().join("proof"));
    std::fs::create_dir(&place).expect("a directory");
    let Some(mounted) = Mounted::new("-t tmpfs -o size=24m none", &place) else {
        return skipped("a small tmpfs cannot be mounted here (needs root)");
    };
    let mut command = Command::new(BINARY);
    command.args("prove --circuit chain --k 16 --memory 16MiB --dir".split(' '));
    let output = command.arg(&place).arg("--out").arg(&out).output();
    drop(mounted);
    let output = output.expect("the binary runs");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(
        errors.contains("bytes of disk") && errors.contains("--dir"),
        "{errors}"
    );
    assert!(!out.exists());
}

#[test]
fn more_rows_than_the_field_has_roots_for() {
    let error = error_of(
        Path::new("."),
        &["plan", "--circuit", "chain", "--k", "28", "--memory", "1GiB"],
    );
    assert!(
        error.contains("2^28 rows") && error.contains("at most 2^27 rows"),
        "{error}"
    );
}

/// Another user, with a few processes at most: the limit does not hold for root.
const FEW: &str = "setpriv --reuid=54321 --regid=54321 --clear-groups prlimit --nproc";

#[test]
fn a_system_without_threads_is_an_error() {
    use std::os::unix::fs::PermissionsExt as _;
    let words: Vec<&str> = FEW.split(' ').collect();
    let tried = Command::new(words[0])
        .args(&words[1..4])
        .arg(BINARY)
        .arg("--version")
        .output();
    if !tried.is_ok_and(|output| output.status.success()) {
        skipped("no other user can be taken here (needs root, and a binary that others may read)");
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o777)).expect("permissions");
    let proved = Command::new(BINARY)
        .args(["prove", "--k", "6", "--memory", "16MiB", "--out", "proof"])
        .current_dir(dir.path())
        .status();
    assert!(proved.expect("the binary runs").success());
    let mut refused = 0;
    for processes in [2, 3, 4, 6, 8, 12, 16] {
        for line in [
            "verify --k 6 proof",
            "prove --k 6 --no-session --out -",
            "prove --k 6 --memory 16MiB --out -",
            "groth16 example key witness --k 5",
            "msm --log-n 6 --in-memory",
        ] {
            let output = Command::new(words[0])
                .args(&words[1..words.len() - 1])
                .arg(format!("--nproc={processes}"))
                .arg(BINARY)
                .args(line.split(' '))
                .current_dir(dir.path())
                .output()
                .expect("the binary runs");
            let errors = String::from_utf8_lossy(&output.stderr).into_owned();
            let code = output.status.code();
            assert!(
                matches!(code, Some(0 | 1)),
                "{processes}, {line}: {code:?} {errors}"
            );
            refused += u32::from(code == Some(1));
        }
    }
    assert!(refused > 5, "{refused}");
}

#[test]
fn a_system_without_random_values_is_an_error() {
    let dir = tempfile::tempdir().expect("a directory");
    let (source, library) = (dir.path().join("none.c"), dir.path().join("none.so"));
    // Programs call the function of the C library, and libraries of Rust the system.
    let text = "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <errno.h>\n#include <stdarg.h>\n\
                #include <sys/syscall.h>\n#include <sys/types.h>\n\
                ssize_t getrandom(void *out, size_t bytes, unsigned flags) { \
                (void)out, (void)bytes, (void)flags; errno = EIO; return -1; }\n\
                long syscall(long number, ...) { long words[6]; va_list list; va_start(list, number); \
                for (int i = 0; i < 6; i++) words[i] = va_arg(list, long); va_end(list); \
                if (number == SYS_getrandom) { errno = EIO; return -1; } \
                long (*next)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, \"syscall\"); \
                return next(number, words[0], words[1], words[2], words[3], words[4], words[5]); }\n";
    std::fs::write(&source, text).expect("a file");
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .args([&library, &source])
        .status();
    if !built.is_ok_and(|status| status.success()) {
        skipped("there is no C compiler");
        return;
    }
    for line in [
        "msm --log-n 4",
        "prove --k 6 --out proof",
        "groth16 example key witness --k 5",
    ] {
        let output = Command::new(BINARY)
            .args(line.split(' '))
            .current_dir(dir.path())
            .env("LD_PRELOAD", &library)
            .output()
            .expect("the binary runs");
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{line}: {errors}");
        assert!(
            errors.contains("random values") && errors.lines().count() == 1,
            "{line}: {errors}"
        );
    }
}
