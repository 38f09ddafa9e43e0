// The host's library of kernels: every kernel of all.cu, with an entry that runs its grid.
#define SPK_HOST 1
#include "../kernels/all.cu"

// name, whether it has barriers
#define SPK_EACH_FIELD(field)                                                                                         \
    SPK_HOST_ENTRY(spk_mul_##field, false)                                                                            \
    SPK_HOST_ENTRY(spk_elementwise_##field, false)

SPK_EACH_FIELD(bn254_fq)
SPK_EACH_FIELD(bn254_fr)
SPK_EACH_FIELD(pasta_fp)
SPK_EACH_FIELD(pasta_fq)
SPK_EACH_FIELD(goldilocks)
