// Measures how fast a device multiplies and adds points: chains of operations in registers, each on the
// result of the one before, which access memory at their start and end only. No job uses them.
#pragma once
#include "curve.cuh"

namespace spk {

// Independent chains of a thread.
constexpr u32 RATE_CHAINS = 4;

// to[t] = f^times (a[4 t] + a[4 t + 1] + a[4 t + 2] + a[4 t + 3]), f = a[t], for each thread t of the grid;
// indices wrap around at n.
template <class F> SPK_INLINE void rate_mul(F *to, const F *a, u32 n, u32 times) {
    u32 t = thread_index();
    F factor = load(a + t % n);
    F x[RATE_CHAINS];
    SPK_UNROLL
    for (u32 i = 0; i < RATE_CHAINS; i++) {
        x[i] = load(a + (RATE_CHAINS * t + i) % n);
    }
    SPK_LOOP
    for (u32 step = 0; step < times; step++) {
        SPK_UNROLL
        for (u32 i = 0; i < RATE_CHAINS; i++) {
            x[i] = mul(x[i], factor);
        }
    }
    store(to + t, add(add(x[0], x[1]), add(x[2], x[3])));
}

// to[t] = p[t] + times p[t + 1] for each thread t of the grid, by `times` mixed additions; indices wrap
// around at n.
template <class F> SPK_INLINE void rate_add(Xyzz<F> *to, const Affine<F> *p, u32 n, u32 times) {
    u32 t = thread_index();
    Affine<F> first = load(p + t % n);
    Xyzz<F> sum;
    sum.x = first.x;
    sum.y = first.y;
    sum.zz = sum.zzz = is_infinity(first) ? F::zero() : F::one();
    Affine<F> step = load(p + (t + 1) % n);
    SPK_LOOP
    for (u32 i = 0; i < times; i++) {
        add_affine(sum, step);
    }
    store(to + t, sum);
}

} // namespace spk

#define SPK_RATE_MUL(field)                                                                                           \
    SPK_KERNEL void SPK_BOUNDS(128)                                                                                   \
        spk_rate_mul_##field(spk::field *to, const spk::field *a, spk::u32 n, spk::u32 times) {                       \
        spk::rate_mul(to, a, n, times);                                                                               \
    }

SPK_RATE_MUL(bn254_fq)
SPK_RATE_MUL(bn254_fr)

SPK_KERNEL void SPK_BOUNDS(128) spk_rate_add_bn254(spk::Xyzz<spk::bn254_fq> *to, const spk::Affine<spk::bn254_fq> *p,
                                                   spk::u32 n, spk::u32 times) {
    spk::rate_add(to, p, n, times);
}
