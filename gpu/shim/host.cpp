// The library of kernels for the host: every kernel of all.cu, with an entry that runs its grid. A kernel
// that is not listed has no entry.
#define SPK_HOST 1
#include "../kernels/all.cu"

#define SPK_FIELD_ENTRIES(field)                                                                                      \
    SPK_HOST_ENTRY(spk_mul_##field, false)                                                                            \
    SPK_HOST_ENTRY(spk_elementwise_##field, false)

#define SPK_CURVE_ENTRIES(curve)                                                                                      \
    SPK_HOST_ENTRY(spk_curve_add_affine_##curve, false)                                                               \
    SPK_HOST_ENTRY(spk_curve_add_##curve, false)                                                                      \
    SPK_HOST_ENTRY(spk_curve_times_##curve, false)                                                                    \
    SPK_HOST_ENTRY(spk_msm_accumulate_##curve, false)                                                                 \
    SPK_HOST_ENTRY(spk_msm_extras_##curve, false)                                                                     \
    SPK_HOST_ENTRY(spk_msm_fold_##curve, false)                                                                       \
    SPK_HOST_ENTRY(spk_msm_merge_##curve, false)                                                                      \
    SPK_HOST_ENTRY(spk_msm_reduce_##curve, false)                                                                     \
    SPK_HOST_ENTRY(spk_msm_total_##curve, true)

// The second operand says whether the kernel has barriers.
SPK_FIELD_ENTRIES(bn254_fq)
SPK_FIELD_ENTRIES(bn254_fr)
SPK_FIELD_ENTRIES(pasta_fp)
SPK_FIELD_ENTRIES(pasta_fq)
SPK_FIELD_ENTRIES(goldilocks)

SPK_CURVE_ENTRIES(bn254)
SPK_CURVE_ENTRIES(bn254_g2)
SPK_CURVE_ENTRIES(pallas)
SPK_CURVE_ENTRIES(vesta)

SPK_HOST_ENTRY(spk_msm_kinds_bn254, false)
SPK_HOST_ENTRY(spk_msm_kinds_pallas, false)
SPK_HOST_ENTRY(spk_msm_kinds_vesta, false)
SPK_HOST_ENTRY(spk_msm_digits_bn254, false)
SPK_HOST_ENTRY(spk_msm_digits_pallas, false)
SPK_HOST_ENTRY(spk_msm_digits_vesta, false)
SPK_HOST_ENTRY(spk_sort_count, true)
SPK_HOST_ENTRY(spk_scan, true)
SPK_HOST_ENTRY(spk_sort_scatter, true)
SPK_HOST_ENTRY(spk_msm_starts, false)
SPK_HOST_ENTRY(spk_msm_lanes, false)
SPK_HOST_ENTRY(spk_msm_lengths, false)
SPK_HOST_ENTRY(spk_ntt_pass_bn254_fr, true)
SPK_HOST_ENTRY(spk_ntt_pass_pasta_fp, true)
SPK_HOST_ENTRY(spk_ntt_pass_pasta_fq, true)
SPK_HOST_ENTRY(spk_ntt_pass_goldilocks, true)
SPK_HOST_ENTRY(spk_program_bn254_fr, false)
SPK_HOST_ENTRY(spk_rate_mul_bn254_fq, false)
SPK_HOST_ENTRY(spk_rate_mul_bn254_fr, false)
SPK_HOST_ENTRY(spk_rate_add_bn254, false)
SPK_HOST_ENTRY(spk_sparse_runs_bn254_fr, true)
SPK_HOST_ENTRY(spk_sparse_join_bn254_fr, false)
