// The differences between the two compilers: qualifiers, shared memory, wide loads. `gpu/shim` has the rest
// for the host: the grid, barriers, shared memory, atomics.
#pragma once

#ifdef SPK_HOST
#include "shim.h"
#define SPK_INLINE static inline
#define SPK_CALL static inline
#define SPK_CONSTANT constexpr
#define SPK_ALIGN 8
#define SPK_UNROLL
#define SPK_LOOP
#define SPK_BOUNDS(threads)
#define SPK_BLOCKS(threads, blocks)
#else
#define SPK_INLINE static __device__ __forceinline__
// For large functions with several callers: one copy of the code.
#define SPK_CALL static __device__ __noinline__
// Evaluated by the compiler.
#define SPK_CONSTANT __host__ __device__ constexpr
#define SPK_ALIGN 16
#define SPK_UNROLL _Pragma("unroll")
#define SPK_LOOP _Pragma("unroll 1")
#define SPK_BOUNDS(threads) __launch_bounds__(threads)
// The least number of blocks of a multiprocessor at one time, which bounds registers.
#define SPK_BLOCKS(threads, blocks) __launch_bounds__(threads, blocks)
#endif
#define SPK_KERNEL extern "C" __global__

namespace spk {

typedef unsigned int u32;
typedef unsigned long long u64;

// The block's dynamic shared memory; the launch sets its size.
#ifdef SPK_HOST
SPK_INLINE u32 *shared_words() { return reinterpret_cast<u32 *>(spk_shim::shared_memory()); }
#else
extern __shared__ __align__(16) u32 shared_raw[];
SPK_INLINE u32 *shared_words() { return shared_raw; }
#endif

// Loads and stores of sixteen bytes, where the alignment of a value allows it.
template <class T> SPK_INLINE T load(const T *from) {
#ifdef SPK_HOST
    return *from;
#else
    static_assert(sizeof(T) % sizeof(u64) == 0, "whole pairs of words");
    T value;
    if constexpr (sizeof(T) % sizeof(uint4) == 0) {
        SPK_UNROLL
        for (int i = 0; i < int(sizeof(T) / sizeof(uint4)); i++) {
            uint4 part = reinterpret_cast<const uint4 *>(from)[i];
            u32 *to = reinterpret_cast<u32 *>(&value) + 4 * i;
            to[0] = part.x, to[1] = part.y, to[2] = part.z, to[3] = part.w;
        }
    } else {
        SPK_UNROLL
        for (int i = 0; i < int(sizeof(T) / sizeof(uint2)); i++) {
            uint2 part = reinterpret_cast<const uint2 *>(from)[i];
            u32 *to = reinterpret_cast<u32 *>(&value) + 2 * i;
            to[0] = part.x, to[1] = part.y;
        }
    }
    return value;
#endif
}

template <class T> SPK_INLINE void store(T *to, const T &value) {
#ifdef SPK_HOST
    *to = value;
#else
    const u32 *from = reinterpret_cast<const u32 *>(&value);
    if constexpr (sizeof(T) % sizeof(uint4) == 0) {
        SPK_UNROLL
        for (int i = 0; i < int(sizeof(T) / sizeof(uint4)); i++) {
            reinterpret_cast<uint4 *>(to)[i] =
                make_uint4(from[4 * i], from[4 * i + 1], from[4 * i + 2], from[4 * i + 3]);
        }
    } else {
        SPK_UNROLL
        for (int i = 0; i < int(sizeof(T) / sizeof(uint2)); i++) {
            reinterpret_cast<uint2 *>(to)[i] = make_uint2(from[2 * i], from[2 * i + 1]);
        }
    }
#endif
}

SPK_INLINE u32 thread_index() { return blockIdx.x * blockDim.x + threadIdx.x; }
SPK_INLINE u32 thread_count() { return gridDim.x * blockDim.x; }

} // namespace spk
