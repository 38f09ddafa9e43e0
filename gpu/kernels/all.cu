// Every kernel of the device tier. One translation unit: NVRTC compiles it for the device, a C++ compiler for the host.
#include "elementwise.cuh"
#include "msm.cuh"
#include "ntt.cuh"
#include "program.cuh"
