// All kernels. One translation unit: NVRTC compiles it for the device, a C++ compiler for the host.
// -DSPK_WITHOUT_PASTA leaves out the Pasta curves, which take two thirds of the compiler's time.
#include "elementwise.cuh"
#include "msm.cuh"
#include "ntt.cuh"
#include "program.cuh"
#include "rates.cuh"
#include "sparse.cuh"
