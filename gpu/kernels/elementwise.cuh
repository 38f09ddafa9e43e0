// Vectors of field elements, element by element.
#pragma once
#include "field.cuh"
#include "goldilocks.cuh"

namespace spk {

enum Elementwise : u32 { ADD, SUB, NEG, SQUARE, INVERSE };

// to[i] = a[i] * b[i]
template <class F> SPK_INLINE void elementwise_mul(F *to, const F *a, const F *b, u32 n) {
    for (u32 i = thread_index(); i < n; i += thread_count()) {
        store(to + i, mul(load(a + i), load(b + i)));
    }
}

// to[i] = a[i] `operation` b[i]; operations with one operand do not read `b`.
template <class F> SPK_INLINE void elementwise(F *to, const F *a, const F *b, u32 n, u32 operation) {
    for (u32 i = thread_index(); i < n; i += thread_count()) {
        switch (operation) {
        case ADD: store(to + i, add(load(a + i), load(b + i))); break;
        case SUB: store(to + i, sub(load(a + i), load(b + i))); break;
        case NEG: store(to + i, neg(load(a + i))); break;
        case SQUARE: store(to + i, sqr(load(a + i))); break;
        case INVERSE: store(to + i, inverse(load(a + i))); break;
        }
    }
}

} // namespace spk

#define SPK_ELEMENTWISE(field)                                                                                        \
    SPK_KERNEL void spk_mul_##field(spk::field *to, const spk::field *a, const spk::field *b, spk::u32 n) {         \
        spk::elementwise_mul(to, a, b, n);                                                                          \
    }                                                                                                                 \
    SPK_KERNEL void spk_elementwise_##field(spk::field *to, const spk::field *a, const spk::field *b, spk::u32 n,   \
                                             spk::u32 operation) {                                                  \
        spk::elementwise(to, a, b, n, operation);                                                                   \
    }

SPK_ELEMENTWISE(bn254_fq)
SPK_ELEMENTWISE(bn254_fr)
SPK_ELEMENTWISE(goldilocks)
#ifndef SPK_WITHOUT_PASTA
SPK_ELEMENTWISE(pasta_fp)
SPK_ELEMENTWISE(pasta_fq)
#endif
