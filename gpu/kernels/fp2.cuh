// The quadratic extension u^2 = -1 of a prime field, in which BN254's second group has its coordinates: c0 + c1 u.
// The bytes in memory are c0, then c1, as in arkworks and the files of this project.
//
// Products are Karatsuba's: three products of the base field, two for a square. They are called: with inlined ones
// the compiler works on the additions of points several times as long, and spills.
#pragma once
#include "field.cuh"

namespace spk {

template <class B> struct alignas(SPK_ALIGN) Fp2 {
    B c0, c1;

    SPK_INLINE Fp2 zero() { return {B::zero(), B::zero()}; }

    SPK_INLINE Fp2 one() { return {B::one(), B::zero()}; }
};

template <class B> SPK_INLINE bool is_zero(const Fp2<B> &a) { return is_zero(a.c0) && is_zero(a.c1); }

template <class B> SPK_INLINE Fp2<B> choose(bool first, const Fp2<B> &a, const Fp2<B> &b) {
    return {choose(first, a.c0, b.c0), choose(first, a.c1, b.c1)};
}

template <class B> SPK_INLINE Fp2<B> add(const Fp2<B> &a, const Fp2<B> &b) {
    return {add(a.c0, b.c0), add(a.c1, b.c1)};
}

template <class B> SPK_INLINE Fp2<B> sub(const Fp2<B> &a, const Fp2<B> &b) {
    return {sub(a.c0, b.c0), sub(a.c1, b.c1)};
}

template <class B> SPK_INLINE Fp2<B> twice(const Fp2<B> &a) { return add(a, a); }

template <class B> SPK_INLINE Fp2<B> neg(const Fp2<B> &a) { return {neg(a.c0), neg(a.c1)}; }

template <class B> SPK_CALL Fp2<B> mul(Fp2<B> a, Fp2<B> b) {
    B low = mul(a.c0, b.c0), high = mul(a.c1, b.c1);
    B both = mul(add(a.c0, a.c1), add(b.c0, b.c1));
    return {sub(low, high), sub(sub(both, low), high)};
}

template <class B> SPK_CALL Fp2<B> sqr(Fp2<B> a) {
    return {mul(add(a.c0, a.c1), sub(a.c0, a.c1)), twice(mul(a.c0, a.c1))};
}

template <class B> SPK_INLINE Fp2<B> mul_called(const Fp2<B> &a, const Fp2<B> &b) { return mul(a, b); }

typedef Fp2<bn254_fq> bn254_fq2;

} // namespace spk
