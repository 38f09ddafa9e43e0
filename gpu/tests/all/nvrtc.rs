//! The real NVRTC, where it is installed. Needs no device.

use std::path::{Path, PathBuf};

use spillproof_gpu::Error;
use spillproof_gpu::kernels::{Cache, Compiler, FOLDER_VARIABLE, Nvrtc, Text};

use crate::support::ring_jobs;
use crate::support::skipped;

fn nvrtc() -> Option<Nvrtc> {
    // The library that gpu/kernels/nvrtc.sh fetched is not where the loader looks.
    let fetched = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../nvrtc");
    let named = std::env::var_os(FOLDER_VARIABLE).map(PathBuf::from);
    match Nvrtc::find_in(named.into_iter().chain([fetched])) {
        Ok(nvrtc) => Some(nvrtc),
        Err(reason) => {
            assert!(matches!(reason, Error::NoCompiler { .. }));
            skipped(&reason);
            None
        }
    }
}

fn text(body: &str) -> Text {
    Text {
        name: "test.cu".into(),
        main: format!(
            "#include \"twice.cuh\"\nextern \"C\" __global__ void spk_test(unsigned long long* values) {{ {body} }}"
        ),
        headers: vec![(
            "twice.cuh".into(),
            "inline __device__ unsigned long long twice(unsigned long long x) { return 2 * x; }".into(),
        )],
        options: vec!["--maxrregcount=64".into()],
    }
}

#[test]
fn a_text_becomes_an_image_for_the_device() {
    let Some(nvrtc) = nvrtc() else { return };
    let version = nvrtc.version().unwrap();
    assert!(version.starts_with("nvrtc "), "{version}");
    let image = nvrtc
        .compile(&text("values[threadIdx.x] = twice(values[0]);"), (9, 0))
        .unwrap();
    assert!(image.starts_with(b"\x7fELF"), "a cubin");
    assert!(image.windows(8).any(|bytes| bytes == b"spk_test"));
    // A device that is newer than the compiler gets PTX, which its driver compiles.
    let image = nvrtc
        .compile(&text("values[threadIdx.x] = twice(values[0]);"), (99, 0))
        .unwrap();
    let text_of_image = String::from_utf8_lossy(&image);
    assert!(text_of_image.contains(".entry spk_test"), "PTX");
    // A device that NVRTC no longer supports gives an error with a remedy.
    let too_old = nvrtc.compile(&text(""), (2, 0)).unwrap_err();
    assert!(too_old.to_string().contains("install an older one"), "{too_old}");
}

/// The test kernels compile for a device.
#[test]
fn the_test_kernels_compile_for_a_device() {
    let Some(nvrtc) = nvrtc() else { return };
    let text = Text {
        name: "test_kernels.cu".into(),
        main: ring_jobs::DEVICE_TEXT.into(),
        ..Text::default()
    };
    let image = nvrtc.compile(&text, (9, 0)).unwrap();
    assert!(image.windows(19).any(|bytes| bytes == b"spk_test_accumulate"));
}

#[test]
fn what_is_wrong_with_a_text_is_said() {
    let Some(nvrtc) = nvrtc() else { return };
    let error = nvrtc
        .compile(&text("values[0] = thrice(1);"), (9, 0))
        .unwrap_err();
    assert!(error.to_string().contains("sm_90"), "{error}");
    assert!(error.to_string().contains("thrice"), "{error}");
    let mut zero = text("");
    zero.main.push('\0');
    assert!(matches!(nvrtc.compile(&zero, (9, 0)), Err(Error::Invalid(_))));
}

#[test]
fn a_cached_image_is_the_compiled_one() {
    let Some(nvrtc) = nvrtc() else { return };
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::new(folder.path());
    let text = text("values[0] = twice(1);");
    let first = cache.image(&text, (9, 0), &nvrtc).unwrap();
    let file = cache.file(&text, (9, 0), &nvrtc.version().unwrap());
    assert_eq!(&std::fs::read(file).unwrap()[40..], first);
    assert_eq!(cache.image(&text, (9, 0), &nvrtc).unwrap(), first);
}
