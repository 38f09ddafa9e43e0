//! What these lanes take of a processor. The build asks it too, of the machine that it runs on.

/// Whether this processor has AVX-512 F, DQ and IFMA.
pub fn are_here() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512ifma")
}
