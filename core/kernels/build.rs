//! Which lanes kernels are compiled for.
//!
//! Each kind is nearly half of this package's compile time. A release has all kinds. A debug build for the
//! machine that it is built on has the kind that this machine takes; `SPILLPROOF_LANES=all` gives all.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=SPILLPROOF_LANES");
    println!("cargo::rustc-check-cfg=cfg(lanes, values(\"avx2\", \"avx512\"))");
    let variable = |name| std::env::var(name).unwrap_or_default();
    let all = variable("PROFILE") == "release"
        || variable("SPILLPROOF_LANES") == "all"
        || variable("HOST") != variable("TARGET");
    if all || takes_avx512() {
        println!("cargo::rustc-cfg=lanes=\"avx512\"");
    }
    if all || !takes_avx512() {
        println!("cargo::rustc-cfg=lanes=\"avx2\"");
    }
}

#[cfg(target_arch = "x86_64")]
fn takes_avx512() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512ifma")
}

#[cfg(not(target_arch = "x86_64"))]
fn takes_avx512() -> bool {
    false
}
