// Prime fields of up to 255 bits in Montgomery form with R = 2^256: eight 32-bit words, least significant
// first, below p. The bytes in memory are those of arkworks, halo2curves and the files of this project.
//
// Multiplication: word by word over b (CIOS; Koc, Acar, Kaliski, "Analyzing and comparing Montgomery
// multiplication algorithms", 1996), with the products by even words of `a` and `p` in one accumulator and
// those by odd words in another, one word up, so that each row is one carry chain of 32 x 32 -> 64 bit
// products at even places.
//
// Bound: with p < 2^255 the running sum t stays below 2p after a shift by one word, since (2p + (p - 1)(2^32
// - 1) + p (2^32 - 1)) / 2^32 < 2p. Before the shift it is below 2p 2^32 + 2p, so the odd accumulator, at
// most t / 2^32, fits eight words: its rows give no carry. The even one may give one, which belongs to the
// odd one's last word.
#pragma once
#include "chain.cuh"

namespace spk {

// BN254 (alt_bn128): the base field and the scalar field.
struct Bn254Fq {
    static constexpr u32 MODULUS[8] = {0xd87cfd47, 0x3c208c16, 0x6871ca8d, 0x97816a91,
                                       0x8181585d, 0xb85045b6, 0xe131a029, 0x30644e72};
};
struct Bn254Fr {
    static constexpr u32 MODULUS[8] = {0xf0000001, 0x43e1f593, 0x79b97091, 0x2833e848,
                                       0x8181585d, 0xb85045b6, 0xe131a029, 0x30644e72};
};
// The Pasta curves: Pallas has the base field Fp and the scalar field Fq, Vesta the reverse.
struct PastaFp {
    static constexpr u32 MODULUS[8] = {0x00000001, 0x992d30ed, 0x094cf91b, 0x224698fc,
                                       0x00000000, 0x00000000, 0x00000000, 0x40000000};
};
struct PastaFq {
    static constexpr u32 MODULUS[8] = {0x00000001, 0x8c46eb21, 0x0994a8dd, 0x224698fc,
                                       0x00000000, 0x00000000, 0x00000000, 0x40000000};
};

// Eight words at compile time.
struct Words {
    u32 w[8];
};

namespace constants {

template <class M> SPK_CONSTANT Words modulus() {
    Words p{};
    for (int i = 0; i < 8; i++) {
        p.w[i] = M::MODULUS[i];
    }
    return p;
}

// 2^exponent modulo p, by doubling.
template <class M> SPK_CONSTANT Words power_of_two(int exponent) {
    Words r{};
    r.w[0] = 1;
    for (int step = 0; step < exponent; step++) {
        // 2r < 2p < 2^256.
        u32 carry = 0;
        for (int i = 0; i < 8; i++) {
            u32 word = r.w[i];
            r.w[i] = (word << 1) | carry;
            carry = word >> 31;
        }
        Words less{};
        u64 borrow = 0;
        for (int i = 0; i < 8; i++) {
            u64 difference = u64(r.w[i]) - M::MODULUS[i] - borrow;
            less.w[i] = u32(difference);
            borrow = (difference >> 32) & 1;
        }
        if (borrow == 0) {
            r = less;
        }
    }
    return r;
}

// -1 / p modulo 2^32, by Newton's iteration: each step doubles the number of right bits.
template <class M> SPK_CONSTANT u32 negative_inverse() {
    u32 inverse = 1;
    for (int step = 0; step < 5; step++) {
        inverse *= 2 - M::MODULUS[0] * inverse;
    }
    return 0u - inverse;
}

// p - 2, the exponent of Fermat's inverse; the lowest word of an odd prime may be 1.
template <class M> SPK_CONSTANT Words modulus_minus_two() {
    Words e = modulus<M>();
    u64 borrow = 2;
    for (int i = 0; i < 8; i++) {
        u64 difference = u64(e.w[i]) - borrow;
        e.w[i] = u32(difference);
        borrow = (difference >> 32) & 1;
    }
    return e;
}

} // namespace constants

// An element, always below p.
template <class M> struct alignas(SPK_ALIGN) Fp {
    u32 w[8];
    static constexpr int WORDS = 8;

    SPK_INLINE Fp zero() {
        constexpr Words value = {{0}};
        return of(value);
    }

    SPK_INLINE Fp one() {
        constexpr Words value = constants::power_of_two<M>(256);
        return of(value);
    }

    SPK_INLINE Fp of(const Words &value) {
        Fp r;
        SPK_UNROLL
        for (int i = 0; i < 8; i++) {
            r.w[i] = value.w[i];
        }
        return r;
    }
};

template <class M> SPK_INLINE bool is_zero(const Fp<M> &a) {
    return (a.w[0] | a.w[1] | a.w[2] | a.w[3] | a.w[4] | a.w[5] | a.w[6] | a.w[7]) == 0;
}

template <class M> SPK_INLINE bool equal(const Fp<M> &a, const Fp<M> &b) {
    u32 difference = 0;
    SPK_UNROLL
    for (int i = 0; i < 8; i++) {
        difference |= a.w[i] ^ b.w[i];
    }
    return difference == 0;
}

// a or b, without a branch.
template <class M> SPK_INLINE Fp<M> choose(bool first, const Fp<M> &a, const Fp<M> &b) {
    Fp<M> r;
    SPK_UNROLL
    for (int i = 0; i < 8; i++) {
        r.w[i] = first ? a.w[i] : b.w[i];
    }
    return r;
}

// a - p if a >= p, else a; a < 2p.
template <class M> SPK_INLINE Fp<M> lowered(const Fp<M> &a) {
    constexpr Words p = constants::modulus<M>();
    Fp<M> less;
    u32 borrow = chain::sub(less.w, a.w, p.w);
    return choose(borrow != 0, a, less);
}

template <class M> SPK_INLINE Fp<M> add(const Fp<M> &a, const Fp<M> &b) {
    Fp<M> sum;
    // Below 2p < 2^256: no carry.
    chain::add(sum.w, a.w, b.w);
    return lowered(sum);
}

template <class M> SPK_INLINE Fp<M> twice(const Fp<M> &a) { return add(a, a); }

template <class M> SPK_INLINE Fp<M> sub(const Fp<M> &a, const Fp<M> &b) {
    constexpr Words p = constants::modulus<M>();
    Fp<M> difference, r;
    u32 borrow = chain::sub(difference.w, a.w, b.w);
    u32 correction[8];
    SPK_UNROLL
    for (int i = 0; i < 8; i++) {
        correction[i] = p.w[i] & borrow;
    }
    chain::add(r.w, difference.w, correction);
    return r;
}

template <class M> SPK_INLINE Fp<M> neg(const Fp<M> &a) {
    constexpr Words p = constants::modulus<M>();
    Fp<M> r;
    chain::sub(r.w, p.w, a.w);
    return choose(is_zero(a), a, r);
}

// even + odd * 2^32 += m * p, with the m that clears the lowest word.
template <class M> SPK_INLINE void reduce_row(u32 even[8], u32 odd[8]) {
    constexpr Words p = constants::modulus<M>();
    constexpr u32 inverse = constants::negative_inverse<M>();
    u32 m = even[0] * inverse;
    chain::mad_row_full(odd, p.w + 1, m);
    chain::mad_row(even, p.w, m, odd[7]);
}

template <class M> SPK_INLINE Fp<M> mul(const Fp<M> &a, const Fp<M> &b) {
    u32 even[8], odd[8];
    SPK_UNROLL
    for (int i = 0; i < 8; i += 2) {
        u64 product = u64(a.w[i]) * b.w[0];
        even[i] = u32(product);
        even[i + 1] = u32(product >> 32);
        product = u64(a.w[i + 1]) * b.w[0];
        odd[i] = u32(product);
        odd[i + 1] = u32(product >> 32);
    }
    reduce_row<M>(even, odd);
    SPK_UNROLL
    for (int j = 1; j < 8; j++) {
        // Shift down by a word: the odd accumulator becomes the even one, and the even one without its two
        // lowest words becomes the odd one. Of those two the lower is zero, and the higher joins the new even
        // one.
        u32 above[8];
        SPK_UNROLL
        for (int i = 0; i < 8; i++) {
            above[i] = i < 6 ? even[i + 2] : 0;
        }
        u32 second = even[1];
        SPK_UNROLL
        for (int i = 0; i < 8; i++) {
            even[i] = odd[i];
            odd[i] = above[i];
        }
        chain::shift_mad_row(even[0], second, odd, a.w + 1, b.w[j]);
        chain::mad_row(even, a.w, b.w[j], odd[7]);
        reduce_row<M>(even, odd);
    }
    u32 high[8];
    SPK_UNROLL
    for (int i = 0; i < 8; i++) {
        high[i] = i < 7 ? even[i + 1] : 0;
    }
    Fp<M> sum;
    chain::add(sum.w, high, odd);
    return lowered(sum);
}

template <class M> SPK_INLINE Fp<M> sqr(const Fp<M> &a) { return mul(a, a); }

// One copy of the code, for places where speed does not count.
template <class M> SPK_CALL Fp<M> mul_called(Fp<M> a, Fp<M> b) { return mul(a, b); }

// Out of Montgomery form: a / R, below p.
template <class M> SPK_INLINE Fp<M> canonical(const Fp<M> &a) {
    constexpr Words one = {{1}};
    return mul(a, Fp<M>::of(one));
}

// a^(p - 2): 1 / a, and 0 for 0.
template <class M> SPK_CALL Fp<M> inverse(Fp<M> a) {
    constexpr Words exponent = constants::modulus_minus_two<M>();
    Fp<M> r = Fp<M>::one();
    SPK_LOOP
    for (int bit = 255; bit >= 0; bit--) {
        r = mul_called(r, r);
        if ((exponent.w[bit / 32] >> (bit % 32)) & 1) {
            r = mul_called(r, a);
        }
    }
    return r;
}

typedef Fp<Bn254Fq> bn254_fq;
typedef Fp<Bn254Fr> bn254_fr;
typedef Fp<PastaFp> pasta_fp;
typedef Fp<PastaFq> pasta_fq;

} // namespace spk
