// The field of p = 2^64 - 2^32 + 1: one 64-bit word below p, not in Montgomery form.
//
// 2^64 = 2^32 - 1 and 2^96 = -1 modulo p, so a product low + 2^64 (middle + 2^32 high) is low - high + (2^32
// - 1) middle.
#pragma once
#include "chain.cuh"

namespace spk {

struct alignas(8) goldilocks {
    u32 w[2];
    static constexpr int WORDS = 2;
    static constexpr u64 MODULUS = 0xffffffff00000001ull;

    SPK_INLINE goldilocks of(u64 value) {
        goldilocks r;
        r.w[0] = u32(value);
        r.w[1] = u32(value >> 32);
        return r;
    }

    SPK_INLINE goldilocks zero() { return of(0); }
    SPK_INLINE goldilocks one() { return of(1); }
};

SPK_INLINE u64 value_of(const goldilocks &a) { return (u64(a.w[1]) << 32) | a.w[0]; }

SPK_INLINE bool is_zero(const goldilocks &a) { return (a.w[0] | a.w[1]) == 0; }

SPK_INLINE goldilocks add(const goldilocks &a, const goldilocks &b) {
    u64 x = value_of(a), y = value_of(b), sum = x + y;
    // If the sum is p or more, or 2^64 or more, subtract p modulo 2^64.
    return goldilocks::of(sum < x || sum >= goldilocks::MODULUS ? sum - goldilocks::MODULUS : sum);
}

SPK_INLINE goldilocks twice(const goldilocks &a) { return add(a, a); }

SPK_INLINE goldilocks sub(const goldilocks &a, const goldilocks &b) {
    u64 x = value_of(a), y = value_of(b), difference = x - y;
    return goldilocks::of(x < y ? difference + goldilocks::MODULUS : difference);
}

SPK_INLINE goldilocks neg(const goldilocks &a) { return sub(goldilocks::zero(), a); }

SPK_INLINE goldilocks mul(const goldilocks &a, const goldilocks &b) {
    u64 x = value_of(a), y = value_of(b);
    u64 low = x * y, above = chain::mul_high(x, y);
    u64 high = above >> 32, middle = above & 0xffffffffull;
    // low - high: a borrow of 2^64 is a borrow of 2^32 - 1, and the difference is then above 2^64 - 2^32.
    u64 difference = low - high;
    if (low < high) {
        difference -= 0xffffffffull;
    }
    u64 product = (middle << 32) - middle, sum = difference + product;
    // A carry of 2^64 is a carry of 2^32 - 1. The product is at most (2^32 - 1)^2, so that does not carry
    // again.
    if (sum < product) {
        sum += 0xffffffffull;
    }
    return goldilocks::of(sum >= goldilocks::MODULUS ? sum - goldilocks::MODULUS : sum);
}

SPK_INLINE goldilocks sqr(const goldilocks &a) { return mul(a, a); }

SPK_CALL goldilocks inverse(goldilocks a) {
    goldilocks r = goldilocks::one();
    SPK_LOOP
    for (int bit = 63; bit >= 0; bit--) {
        r = mul(r, r);
        if (((goldilocks::MODULUS - 2) >> bit) & 1) {
            r = mul(r, a);
        }
    }
    return r;
}

} // namespace spk
