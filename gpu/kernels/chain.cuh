// Carry chains over numbers of eight 32-bit words, least significant first.
//
// On the device a chain is one `asm` block, since the carry flag does not survive between two blocks. On the
// host `chain` is 64-bit arithmetic, and `chain_text` interprets the text of the blocks: a test compares the
// two.
#pragma once
#include "platform.cuh"

#define SPK_LIST(...) __VA_ARGS__
#ifdef SPK_HOST
#define SPK_ASM(text, outputs, inputs) spk_shim::interpret(text, {outputs}, {inputs})
#define SPK_CHANGED(word) &(word)
#define SPK_WRITTEN(word) &(word)
#define SPK_GIVEN(word) (word)
#define SPK_CHAIN_TEXT chain_text
#else
#define SPK_ASM(text, outputs, inputs) asm(text : outputs : inputs)
// Operand constraints: read and written; written before all inputs are read; read.
#define SPK_CHANGED(word) "+r"(word)
#define SPK_WRITTEN(word) "=&r"(word)
#define SPK_GIVEN(word) "r"(word)
#define SPK_CHAIN_TEXT chain
#endif

#define SPK_8(of, words)                                                                                              \
    of(words[0]), of(words[1]), of(words[2]), of(words[3]), of(words[4]), of(words[5]), of(words[6]), of(words[7])
#define SPK_CHANGED_8(words) SPK_8(SPK_CHANGED, words)
#define SPK_WRITTEN_8(words) SPK_8(SPK_WRITTEN, words)
#define SPK_GIVEN_8(words) SPK_8(SPK_GIVEN, words)
#define SPK_GIVEN_EVEN(words)                                                                                         \
    SPK_GIVEN(words[0]), SPK_GIVEN(words[2]), SPK_GIVEN(words[4]), SPK_GIVEN(words[6])

namespace spk {
namespace SPK_CHAIN_TEXT {

// r += (a[0], a[2], a[4], a[6]) * b, each product at the place of its word; the carry out of the eighth word
// goes to `top`.
SPK_INLINE void mad_row(u32 r[8], const u32 *a, u32 b, u32 &top) {
    SPK_ASM("mad.lo.cc.u32 %0, %9, %13, %0;\n\t"
            "madc.hi.cc.u32 %1, %9, %13, %1;\n\t"
            "madc.lo.cc.u32 %2, %10, %13, %2;\n\t"
            "madc.hi.cc.u32 %3, %10, %13, %3;\n\t"
            "madc.lo.cc.u32 %4, %11, %13, %4;\n\t"
            "madc.hi.cc.u32 %5, %11, %13, %5;\n\t"
            "madc.lo.cc.u32 %6, %12, %13, %6;\n\t"
            "madc.hi.cc.u32 %7, %12, %13, %7;\n\t"
            "addc.u32 %8, %8, 0;",
            SPK_LIST(SPK_CHANGED_8(r), SPK_CHANGED(top)), SPK_LIST(SPK_GIVEN_EVEN(a), SPK_GIVEN(b)));
}

// As `mad_row`, without a carry out of the eighth word.
SPK_INLINE void mad_row_full(u32 r[8], const u32 *a, u32 b) {
    SPK_ASM("mad.lo.cc.u32 %0, %8, %12, %0;\n\t"
            "madc.hi.cc.u32 %1, %8, %12, %1;\n\t"
            "madc.lo.cc.u32 %2, %9, %12, %2;\n\t"
            "madc.hi.cc.u32 %3, %9, %12, %3;\n\t"
            "madc.lo.cc.u32 %4, %10, %12, %4;\n\t"
            "madc.hi.cc.u32 %5, %10, %12, %5;\n\t"
            "madc.lo.cc.u32 %6, %11, %12, %6;\n\t"
            "madc.hi.u32 %7, %11, %12, %7;",
            SPK_LIST(SPK_CHANGED_8(r)), SPK_LIST(SPK_GIVEN_EVEN(a), SPK_GIVEN(b)));
}

// low += addend, then `mad_row_full` with its carry.
SPK_INLINE void shift_mad_row(u32 &low, u32 addend, u32 r[8], const u32 *a, u32 b) {
    SPK_ASM("add.cc.u32 %8, %8, %14;\n\t"
            "madc.lo.cc.u32 %0, %9, %13, %0;\n\t"
            "madc.hi.cc.u32 %1, %9, %13, %1;\n\t"
            "madc.lo.cc.u32 %2, %10, %13, %2;\n\t"
            "madc.hi.cc.u32 %3, %10, %13, %3;\n\t"
            "madc.lo.cc.u32 %4, %11, %13, %4;\n\t"
            "madc.hi.cc.u32 %5, %11, %13, %5;\n\t"
            "madc.lo.cc.u32 %6, %12, %13, %6;\n\t"
            "madc.hi.u32 %7, %12, %13, %7;",
            SPK_LIST(SPK_CHANGED_8(r), SPK_CHANGED(low)), SPK_LIST(SPK_GIVEN_EVEN(a), SPK_GIVEN(b), SPK_GIVEN(addend)));
}

// r = a + b; returns the carry out of the eighth word.
SPK_INLINE u32 add(u32 r[8], const u32 a[8], const u32 b[8]) {
    u32 carry;
    SPK_ASM("add.cc.u32 %0, %9, %17;\n\t"
            "addc.cc.u32 %1, %10, %18;\n\t"
            "addc.cc.u32 %2, %11, %19;\n\t"
            "addc.cc.u32 %3, %12, %20;\n\t"
            "addc.cc.u32 %4, %13, %21;\n\t"
            "addc.cc.u32 %5, %14, %22;\n\t"
            "addc.cc.u32 %6, %15, %23;\n\t"
            "addc.cc.u32 %7, %16, %24;\n\t"
            "addc.u32 %8, 0, 0;",
            SPK_LIST(SPK_WRITTEN_8(r), SPK_WRITTEN(carry)), SPK_LIST(SPK_GIVEN_8(a), SPK_GIVEN_8(b)));
    return carry;
}

// r = a - b modulo 2^256; all ones if a < b, else 0.
SPK_INLINE u32 sub(u32 r[8], const u32 a[8], const u32 b[8]) {
    u32 borrow;
    SPK_ASM("sub.cc.u32 %0, %9, %17;\n\t"
            "subc.cc.u32 %1, %10, %18;\n\t"
            "subc.cc.u32 %2, %11, %19;\n\t"
            "subc.cc.u32 %3, %12, %20;\n\t"
            "subc.cc.u32 %4, %13, %21;\n\t"
            "subc.cc.u32 %5, %14, %22;\n\t"
            "subc.cc.u32 %6, %15, %23;\n\t"
            "subc.cc.u32 %7, %16, %24;\n\t"
            "subc.u32 %8, 0, 0;",
            SPK_LIST(SPK_WRITTEN_8(r), SPK_WRITTEN(borrow)), SPK_LIST(SPK_GIVEN_8(a), SPK_GIVEN_8(b)));
    return borrow;
}

} // namespace SPK_CHAIN_TEXT

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
    // The bound in field.cuh excludes a carry; a wrong bound must not go unnoticed.
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

SPK_INLINE u64 mul_high(u64 a, u64 b) { return __umul64hi(a, b); }

#endif

} // namespace chain
} // namespace spk
