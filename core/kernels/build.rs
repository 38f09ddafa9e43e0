//! Which lanes kernels are compiled for.
//!
//! Each kind is nearly half of this package's compile time. A release has all kinds. A debug build for the
//! machine that it is built on has the kind that this machine takes; `SPILLPROOF_LANES=all` gives all.

#[cfg(target_arch = "x86_64")]
#[path = "src/backend/avx512/detection.rs"]
mod avx512;

#[cfg(not(target_arch = "x86_64"))]
mod avx512 {
    pub fn are_here() -> bool {
        false
    }
}

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/backend/avx512/detection.rs");
    println!("cargo::rerun-if-env-changed=SPILLPROOF_LANES");
    println!("cargo::rustc-check-cfg=cfg(lanes, values(\"avx2\", \"avx512\"))");
    let variable = |name| std::env::var(name).unwrap_or_default();
    let all = variable("PROFILE") == "release"
        || variable("SPILLPROOF_LANES") == "all"
        || variable("HOST") != variable("TARGET");
    if all || avx512::are_here() {
        println!("cargo::rustc-cfg=lanes=\"avx512\"");
    }
    if all || !avx512::are_here() {
        println!("cargo::rustc-cfg=lanes=\"avx2\"");
    }
}
