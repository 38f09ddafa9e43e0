// Points of a short Weierstrass curve y^2 = x^3 + b, without a (both groups of BN254, Pallas, Vesta), in affine and
// XYZZ coordinates.
//
// XYZZ (Sutherland; formulas madd-2008-s, add-2008-s, dbl-2008-s-1 and mdbl-2008-s-1 of the Explicit-Formulas
// Database): x = X / ZZ, y = Y / ZZZ with ZZ^3 = ZZZ^2. The point at infinity has ZZ = 0, so zeroed memory is
// points at infinity. The affine point at infinity is (0, 0), which is on none of these curves.
//
// Every case is exact: infinity on either side, equal points, opposite points. The curves have no points of
// order two.
#pragma once
#include "fp2.cuh"

namespace spk {

template <class F> struct alignas(SPK_ALIGN) Affine {
    F x, y;
};

template <class F> struct alignas(SPK_ALIGN) Xyzz {
    F x, y, zz, zzz;

    SPK_INLINE Xyzz infinity() {
        Xyzz r;
        r.x = r.y = r.zz = r.zzz = F::zero();
        return r;
    }
};

template <class F> SPK_INLINE bool is_infinity(const Affine<F> &p) { return is_zero(p.x) && is_zero(p.y); }

template <class F> SPK_INLINE bool is_infinity(const Xyzz<F> &p) { return is_zero(p.zz); }

template <class F> SPK_INLINE Affine<F> negated_if(bool negative, const Affine<F> &p) {
    Affine<F> r;
    r.x = p.x;
    r.y = choose(negative, neg(p.y), p.y);
    return r;
}

// 2p for a p that is not infinity.
template <class F> SPK_CALL Xyzz<F> double_affine(Affine<F> p) {
    Xyzz<F> r;
    F u = twice(p.y);
    F v = mul_called(u, u);
    F w = mul_called(u, v);
    F s = mul_called(p.x, v);
    F m = mul_called(p.x, p.x);
    m = add(twice(m), m);
    r.x = sub(mul_called(m, m), twice(s));
    r.y = sub(mul_called(m, sub(s, r.x)), mul_called(w, p.y));
    r.zz = v;
    r.zzz = w;
    return r;
}

// sum += p: 10 multiplications. The hot loop of an MSM, so all of it is inlined but the doubling.
template <class F> SPK_INLINE void add_affine(Xyzz<F> &sum, const Affine<F> &p) {
    if (is_infinity(p)) {
        return;
    }
    if (is_infinity(sum)) {
        sum.x = p.x;
        sum.y = p.y;
        sum.zz = sum.zzz = F::one();
        return;
    }
    F dx = sub(mul(p.x, sum.zz), sum.x);
    F dy = sub(mul(p.y, sum.zzz), sum.y);
    if (is_zero(dx)) {
        sum = is_zero(dy) ? double_affine(p) : Xyzz<F>::infinity();
        return;
    }
    F square = sqr(dx);
    F cube = mul(square, dx);
    F q = mul(sum.x, square);
    F x = sub(sub(sqr(dy), cube), twice(q));
    sum.y = sub(mul(dy, sub(q, x)), mul(sum.y, cube));
    sum.x = x;
    sum.zz = mul(sum.zz, square);
    sum.zzz = mul(sum.zzz, cube);
}

// The functions below have their operands in memory and load a coordinate when they need it: two points of the second
// group do not fit a thread's registers. `to` may be an operand.

// *to = 2 *p. Infinity needs no case: the formula for ZZ = ZZZ = 1, scaled by ZZ and ZZZ.
template <class F> SPK_CALL void double_point(Xyzz<F> *to, const Xyzz<F> *p) {
    F y = load(&p->y);
    F u = twice(y);
    F v = mul_called(u, u);
    F w = mul_called(u, v);
    F x = load(&p->x);
    F s = mul_called(x, v);
    F m = mul_called(x, x);
    m = add(twice(m), m);
    x = sub(mul_called(m, m), twice(s));
    store(&to->y, sub(mul_called(m, sub(s, x)), mul_called(w, y)));
    store(&to->x, x);
    store(&to->zz, mul_called(v, load(&p->zz)));
    store(&to->zzz, mul_called(w, load(&p->zzz)));
}

// *a += *b: 14 multiplications.
template <class F> SPK_CALL void add_points(Xyzz<F> *a, const Xyzz<F> *b) {
    if (is_zero(load(&b->zz))) {
        return;
    }
    if (is_zero(load(&a->zz))) {
        store(a, load(b));
        return;
    }
    F xa = mul_called(load(&a->x), load(&b->zz));
    F ya = mul_called(load(&a->y), load(&b->zzz));
    F dx = sub(mul_called(load(&b->x), load(&a->zz)), xa);
    F dy = sub(mul_called(load(&b->y), load(&a->zzz)), ya);
    if (is_zero(dx)) {
        if (is_zero(dy)) {
            double_point(a, b);
        } else {
            store(a, Xyzz<F>::infinity());
        }
        return;
    }
    F square = mul_called(dx, dx);
    F cube = mul_called(square, dx);
    F q = mul_called(xa, square);
    F x = sub(sub(mul_called(dy, dy), cube), twice(q));
    store(&a->x, x);
    store(&a->y, sub(mul_called(dy, sub(q, x)), mul_called(ya, cube)));
    store(&a->zz, mul_called(mul_called(load(&a->zz), load(&b->zz)), square));
    store(&a->zzz, mul_called(mul_called(load(&a->zzz), load(&b->zzz)), cube));
}

// *to = factor * *p, by doubling and adding; `to` is another place.
template <class F> SPK_CALL void times(Xyzz<F> *to, const Xyzz<F> *p, u32 factor) {
    store(to, Xyzz<F>::infinity());
    SPK_LOOP
    for (int bit = 31 - __clz(factor); bit >= 0; bit--) {
        double_point(to, to);
        if ((factor >> bit) & 1) {
            add_points(to, p);
        }
    }
}

// sums[i] += points[i], negative where the lowest bit of `signs[i]` says so.
template <class F>
SPK_INLINE void curve_add_affine(Xyzz<F> *sums, const Affine<F> *points, const u32 *signs, u32 n) {
    for (u32 i = thread_index(); i < n; i += thread_count()) {
        Xyzz<F> sum = load(sums + i);
        add_affine(sum, negated_if(signs[i] & 1, load(points + i)));
        store(sums + i, sum);
    }
}

// sums[i] += points[i]
template <class F> SPK_INLINE void curve_add(Xyzz<F> *sums, const Xyzz<F> *points, u32 n) {
    for (u32 i = thread_index(); i < n; i += thread_count()) {
        add_points(sums + i, points + i);
    }
}

// to[i] = factors[i] * points[i]
template <class F> SPK_INLINE void curve_times(Xyzz<F> *to, const Xyzz<F> *points, const u32 *factors, u32 n) {
    for (u32 i = thread_index(); i < n; i += thread_count()) {
        times(to + i, points + i, factors[i]);
    }
}

} // namespace spk

#define SPK_CURVE(curve, field)                                                                                       \
    SPK_KERNEL void spk_curve_add_affine_##curve(spk::Xyzz<spk::field> *sums, const spk::Affine<spk::field> *points, \
                                                 const spk::u32 *signs, spk::u32 n) {                               \
        spk::curve_add_affine(sums, points, signs, n);                                                              \
    }                                                                                                                 \
    SPK_KERNEL void spk_curve_add_##curve(spk::Xyzz<spk::field> *sums, const spk::Xyzz<spk::field> *points,         \
                                          spk::u32 n) {                                                             \
        spk::curve_add(sums, points, n);                                                                            \
    }                                                                                                                 \
    SPK_KERNEL void spk_curve_times_##curve(spk::Xyzz<spk::field> *to, const spk::Xyzz<spk::field> *points,         \
                                            const spk::u32 *factors, spk::u32 n) {                                  \
        spk::curve_times(to, points, factors, n);                                                                   \
    }

SPK_CURVE(bn254, bn254_fq)
SPK_CURVE(bn254_g2, bn254_fq2)
#ifndef SPK_WITHOUT_PASTA
SPK_CURVE(pallas, pasta_fp)
SPK_CURVE(vesta, pasta_fq)
#endif
