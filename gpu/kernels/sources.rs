//! The text of the kernels for the compiler: `all.cu`, and its headers by the names under which it includes
//! them.

/// The main file.
pub const MAIN: (&str, &str) = ("all.cu", include_str!("all.cu"));

/// The headers.
pub const HEADERS: &[(&str, &str)] = &[
    ("chain.cuh", include_str!("chain.cuh")),
    ("compiled.cuh", include_str!("compiled.cuh")),
    ("curve.cuh", include_str!("curve.cuh")),
    ("elementwise.cuh", include_str!("elementwise.cuh")),
    ("field.cuh", include_str!("field.cuh")),
    ("fp2.cuh", include_str!("fp2.cuh")),
    ("goldilocks.cuh", include_str!("goldilocks.cuh")),
    ("msm.cuh", include_str!("msm.cuh")),
    ("ntt.cuh", include_str!("ntt.cuh")),
    ("platform.cuh", include_str!("platform.cuh")),
    ("program.cuh", include_str!("program.cuh")),
    ("rates.cuh", include_str!("rates.cuh")),
    ("rows.cuh", include_str!("rows.cuh")),
    ("sort.cuh", include_str!("sort.cuh")),
    ("sparse.cuh", include_str!("sparse.cuh")),
];
