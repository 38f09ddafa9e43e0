// What differs between the device's compiler and the host's: qualifiers, shared memory, carry chains.
//
// On the device a carry chain is one `asm` block, since nothing keeps the carry flag alive between two of them. On the host the
// same block is 64-bit arithmetic that gives the same words. `gpu/shim` has the rest of the host's side: the grid, barriers,
// shared memory, atomics.
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
#else
#define SPK_INLINE static __device__ __forceinline__
// Large and called from several places: one copy of the code.
#define SPK_CALL static __device__ __noinline__
// Evaluated while compiling.
#define SPK_CONSTANT __host__ __device__ constexpr
#define SPK_ALIGN 16
#define SPK_UNROLL _Pragma("unroll")
#define SPK_LOOP _Pragma("unroll 1")
#define SPK_BOUNDS(threads) __launch_bounds__(threads)
#endif
#define SPK_KERNEL extern "C" __global__

namespace spk {

typedef unsigned int u32;
typedef unsigned long long u64;

// The block's dynamic shared memory; its size is the launch's.
#ifdef SPK_HOST
SPK_INLINE u32 *shared_words() { return reinterpret_cast<u32 *>(spk_shim::shared_memory()); }
#else
extern __shared__ __align__(16) u32 shared_raw[];
SPK_INLINE u32 *shared_words() { return shared_raw; }
#endif

// Values in memory, sixteen bytes at a time where their alignment allows it.
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

// Carry chains over numbers of eight 32-bit words, least significant first.
namespace chain {

#ifdef SPK_HOST

// One step of a chain: the pair of words (low, high) += product + carry.
SPK_INLINE void wide_step(u32 &low, u32 &high, u64 product, u32 &carry) {
    u64 pair = (u64(high) << 32) | low;
    u64 sum = pair + product;
    u32 out = sum < pair;
    u64 with = sum + carry;
    out += with < sum;
    low = u32(with);
    high = u32(with >> 32);
    carry = out;
}

SPK_INLINE void mad_pairs(u32 r[8], const u32 *a, u32 b, u32 &carry) {
    for (int i = 0; i < 8; i += 2) {
        wide_step(r[i], r[i + 1], u64(a[i]) * b, carry);
    }
}

SPK_INLINE void mad_row(u32 r[8], const u32 *a, u32 b, u32 &top) {
    u32 carry = 0;
    mad_pairs(r, a, b, carry);
    top += carry;
}

SPK_INLINE void mad_row_full(u32 r[8], const u32 *a, u32 b) {
    u32 carry = 0;
    mad_pairs(r, a, b, carry);
    // The bound in field.cuh says so; a wrong one must not pass unseen.
    spk_shim::require(carry == 0, "a row of a Montgomery product overflows");
}

SPK_INLINE void shift_mad_row(u32 &low, u32 addend, u32 r[8], const u32 *a, u32 b) {
    u64 sum = u64(low) + addend;
    low = u32(sum);
    u32 carry = u32(sum >> 32);
    mad_pairs(r, a, b, carry);
    spk_shim::require(carry == 0, "a shifted row of a Montgomery product overflows");
}

SPK_INLINE u32 add(u32 r[8], const u32 a[8], const u32 b[8]) {
    u64 carry = 0;
    for (int i = 0; i < 8; i++) {
        carry += u64(a[i]) + b[i];
        r[i] = u32(carry);
        carry >>= 32;
    }
    return u32(carry);
}

// All ones if a < b, else 0.
SPK_INLINE u32 sub(u32 r[8], const u32 a[8], const u32 b[8]) {
    u64 borrow = 0;
    for (int i = 0; i < 8; i++) {
        u64 difference = u64(a[i]) - b[i] - borrow;
        r[i] = u32(difference);
        borrow = (difference >> 32) & 1;
    }
    return 0u - u32(borrow);
}

SPK_INLINE u64 mul_high(u64 a, u64 b) { return u64((unsigned __int128)(a) * b >> 64); }

#else

// r += (a[0], a[2], a[4], a[6]) * b, each product at the place of its word; what leaves the eighth word goes to `top`.
SPK_INLINE void mad_row(u32 r[8], const u32 *a, u32 b, u32 &top) {
    asm("mad.lo.cc.u32 %0, %9, %13, %0;\n\t"
        "madc.hi.cc.u32 %1, %9, %13, %1;\n\t"
        "madc.lo.cc.u32 %2, %10, %13, %2;\n\t"
        "madc.hi.cc.u32 %3, %10, %13, %3;\n\t"
        "madc.lo.cc.u32 %4, %11, %13, %4;\n\t"
        "madc.hi.cc.u32 %5, %11, %13, %5;\n\t"
        "madc.lo.cc.u32 %6, %12, %13, %6;\n\t"
        "madc.hi.cc.u32 %7, %12, %13, %7;\n\t"
        "addc.u32 %8, %8, 0;"
        : "+r"(r[0]), "+r"(r[1]), "+r"(r[2]), "+r"(r[3]), "+r"(r[4]), "+r"(r[5]), "+r"(r[6]), "+r"(r[7]),
          "+r"(top)
        : "r"(a[0]), "r"(a[2]), "r"(a[4]), "r"(a[6]), "r"(b));
}

// As `mad_row`, where nothing leaves the eighth word.
SPK_INLINE void mad_row_full(u32 r[8], const u32 *a, u32 b) {
    asm("mad.lo.cc.u32 %0, %8, %12, %0;\n\t"
        "madc.hi.cc.u32 %1, %8, %12, %1;\n\t"
        "madc.lo.cc.u32 %2, %9, %12, %2;\n\t"
        "madc.hi.cc.u32 %3, %9, %12, %3;\n\t"
        "madc.lo.cc.u32 %4, %10, %12, %4;\n\t"
        "madc.hi.cc.u32 %5, %10, %12, %5;\n\t"
        "madc.lo.cc.u32 %6, %11, %12, %6;\n\t"
        "madc.hi.u32 %7, %11, %12, %7;"
        : "+r"(r[0]), "+r"(r[1]), "+r"(r[2]), "+r"(r[3]), "+r"(r[4]), "+r"(r[5]), "+r"(r[6]), "+r"(r[7])
        : "r"(a[0]), "r"(a[2]), "r"(a[4]), "r"(a[6]), "r"(b));
}

// low += addend, then `mad_row_full` with the carry of that.
SPK_INLINE void shift_mad_row(u32 &low, u32 addend, u32 r[8], const u32 *a, u32 b) {
    asm("add.cc.u32 %8, %8, %14;\n\t"
        "madc.lo.cc.u32 %0, %9, %13, %0;\n\t"
        "madc.hi.cc.u32 %1, %9, %13, %1;\n\t"
        "madc.lo.cc.u32 %2, %10, %13, %2;\n\t"
        "madc.hi.cc.u32 %3, %10, %13, %3;\n\t"
        "madc.lo.cc.u32 %4, %11, %13, %4;\n\t"
        "madc.hi.cc.u32 %5, %11, %13, %5;\n\t"
        "madc.lo.cc.u32 %6, %12, %13, %6;\n\t"
        "madc.hi.u32 %7, %12, %13, %7;"
        : "+r"(r[0]), "+r"(r[1]), "+r"(r[2]), "+r"(r[3]), "+r"(r[4]), "+r"(r[5]), "+r"(r[6]), "+r"(r[7]),
          "+r"(low)
        : "r"(a[0]), "r"(a[2]), "r"(a[4]), "r"(a[6]), "r"(b), "r"(addend));
}

// r = a + b; gives what leaves the eighth word.
SPK_INLINE u32 add(u32 r[8], const u32 a[8], const u32 b[8]) {
    u32 carry;
    asm("add.cc.u32 %0, %9, %17;\n\t"
        "addc.cc.u32 %1, %10, %18;\n\t"
        "addc.cc.u32 %2, %11, %19;\n\t"
        "addc.cc.u32 %3, %12, %20;\n\t"
        "addc.cc.u32 %4, %13, %21;\n\t"
        "addc.cc.u32 %5, %14, %22;\n\t"
        "addc.cc.u32 %6, %15, %23;\n\t"
        "addc.cc.u32 %7, %16, %24;\n\t"
        "addc.u32 %8, 0, 0;"
        : "=&r"(r[0]), "=&r"(r[1]), "=&r"(r[2]), "=&r"(r[3]), "=&r"(r[4]), "=&r"(r[5]), "=&r"(r[6]), "=&r"(r[7]),
          "=&r"(carry)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]), "r"(a[6]), "r"(a[7]), "r"(b[0]),
          "r"(b[1]), "r"(b[2]), "r"(b[3]), "r"(b[4]), "r"(b[5]), "r"(b[6]), "r"(b[7]));
    return carry;
}

// r = a - b modulo 2^256; all ones if a < b, else 0.
SPK_INLINE u32 sub(u32 r[8], const u32 a[8], const u32 b[8]) {
    u32 borrow;
    asm("sub.cc.u32 %0, %9, %17;\n\t"
        "subc.cc.u32 %1, %10, %18;\n\t"
        "subc.cc.u32 %2, %11, %19;\n\t"
        "subc.cc.u32 %3, %12, %20;\n\t"
        "subc.cc.u32 %4, %13, %21;\n\t"
        "subc.cc.u32 %5, %14, %22;\n\t"
        "subc.cc.u32 %6, %15, %23;\n\t"
        "subc.cc.u32 %7, %16, %24;\n\t"
        "subc.u32 %8, 0, 0;"
        : "=&r"(r[0]), "=&r"(r[1]), "=&r"(r[2]), "=&r"(r[3]), "=&r"(r[4]), "=&r"(r[5]), "=&r"(r[6]), "=&r"(r[7]),
          "=&r"(borrow)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]), "r"(a[6]), "r"(a[7]), "r"(b[0]),
          "r"(b[1]), "r"(b[2]), "r"(b[3]), "r"(b[4]), "r"(b[5]), "r"(b[6]), "r"(b[7]));
    return borrow;
}

SPK_INLINE u64 mul_high(u64 a, u64 b) { return __umul64hi(a, b); }

#endif

} // namespace chain
} // namespace spk
