// Number-theoretic transforms by passes in Stockham's order: from natural order to natural order, no
// permutation.
//
// A transform of n = 2^k elements is passes with radices R_1 * R_2 * .. = n, each reading one array and
// writing another (Govindaraju and others, "High performance discrete Fourier transforms on graphics
// processors", 2008, section 4). With L the product of the radices before it, a pass does for each column j <
// n / R
//   v[r]  = in[j + r n / R] * w_n^(r l n / (L R)),  l = j mod L
//   u[r'] = the sum over r of v[r] * w_R^(r r')
// out[(j - l) R + r' L + l] = u[r'] A block has a tile of 2^log_columns neighbouring columns in shared
// memory, so that reads are runs of that many elements. In the tile a transform of R elements is radix 2 by
// decimation in time; that its input has its bits reversed costs nothing, since it is where a thread puts
// what it has read.
//
// Powers come from two tables, w^e = low[e mod 2^log_low] * high[e >> log_low], of about sqrt(n) elements
// each.
//
// Before the first pass and after the last one elements may be multiplied by a power whose exponent is
// bilinear in the element's index i and the row y of the batch, (a + b y) i + (c + d y): the shift of a coset
// (a = 1), 1 / n (all zero, low[0] = 1 / n), the factors w_N^(i y) between the two steps of a transform that
// is split into rows and columns (a = first row, b = 1), and the shift of a coset in such a transform (a =
// row length, c = first column, d = 1). An inverse transform has tables of inverse powers.
//
// Row y of the grid is row y of a batch: element i is at in[i * in_stride + y * in_batch].
#pragma once
#include "field.cuh"
#include "goldilocks.cuh"

namespace spk {

// `low` = 0: no factor. `high` = 0: exponents are below 2^log_low. 56 bytes.
template <class F> struct Scale {
    const F *low;
    const F *high;
    u64 a, b, c, d;
    u64 log_low;
};

// 232 bytes of 64-bit words; the only argument of the kernel.
template <class F> struct NttPass {
    const F *in;
    F *out;
    u64 in_stride, in_batch, out_stride, out_batch;
    // log2 of the transform, of the passes before this one, of this radix, of the tile's columns.
    u64 log_n, log_before, log_radix, log_columns;
    // w^k for k < 2^(log_roots - 1), w of order 2^log_roots: roots of the tile's transform, log_roots >=
    // log_radix.
    const F *roots;
    u64 log_roots;
    // Powers of the transform's w, of order n; the first pass does not read them.
    const F *twiddle_low;
    const F *twiddle_high;
    u64 log_twiddle_low;
    // The factors of the elements that are read, and of those that are written.
    Scale<F> load, store;
};
static_assert(sizeof(Scale<goldilocks>) == 56 && sizeof(NttPass<goldilocks>) == 232, "as hosts lay it out");

// low[e mod 2^log_low] * high[e >> log_low]
template <class F> SPK_INLINE F power(const F *low, const F *high, u64 log_low, u64 exponent) {
    F value = load(low + (exponent & ((u64(1) << log_low) - 1)));
    return high ? mul(value, load(high + (exponent >> log_low))) : value;
}

template <class F> SPK_INLINE F scaled(const Scale<F> &by, const F &value, u64 index, u64 row) {
    return mul(value, power(by.low, by.high, by.log_low, (by.a + by.b * row) * index + by.c + by.d * row));
}

// A tile in shared memory: word w of element i at w * size + i, so that neighbours are in neighbouring banks.
template <class F> struct Tile {
    u32 *words;
    u32 size;
};

template <class F> SPK_INLINE F tile_get(const Tile<F> &tile, u32 at) {
    F value;
    SPK_UNROLL
    for (int word = 0; word < F::WORDS; word++) {
        value.w[word] = tile.words[word * tile.size + at];
    }
    return value;
}

template <class F> SPK_INLINE void tile_put(const Tile<F> &tile, u32 at, const F &value) {
    SPK_UNROLL
    for (int word = 0; word < F::WORDS; word++) {
        tile.words[word * tile.size + at] = value.w[word];
    }
}

// Grid: (n / (R * columns), batch). Shared memory: R * columns elements.
template <class F> SPK_INLINE void ntt_pass(const NttPass<F> &pass) {
    u32 log_n = u32(pass.log_n), log_before = u32(pass.log_before), log_radix = u32(pass.log_radix);
    u32 log_columns = u32(pass.log_columns), columns = 1u << log_columns, radix = 1u << log_radix;
    u32 log_stride = log_n - log_radix;
    Tile<F> tile = {shared_words(), radix << log_columns};
    u64 row = blockIdx.y, first_column = u64(blockIdx.x) << log_columns, before_mask = (u64(1) << log_before) - 1;

    for (u32 t = threadIdx.x; t < tile.size; t += blockDim.x) {
        u32 column = t & (columns - 1), r = t >> log_columns;
        u64 j = first_column + column, index = (u64(r) << log_stride) + j;
        F value = load(pass.in + index * pass.in_stride + row * pass.in_batch);
        if (pass.load.low) {
            value = scaled(pass.load, value, index, row);
        }
        if (log_before > 0) {
            u64 exponent = (u64(r) * (j & before_mask)) << (log_stride - log_before);
            value = mul(value, power(pass.twiddle_low, pass.twiddle_high, pass.log_twiddle_low, exponent));
        }
        u32 reversed = log_radix == 0 ? 0 : __brev(r) >> (32 - log_radix);
        tile_put(tile, (reversed << log_columns) + column, value);
    }
    __syncthreads();

    SPK_LOOP
    for (u32 stage = 0; stage < log_radix; stage++) {
        u32 half = 1u << stage;
        for (u32 t = threadIdx.x; t < tile.size / 2; t += blockDim.x) {
            u32 column = t & (columns - 1), k = t >> log_columns, place = k & (half - 1);
            u32 upper = (((k - place) * 2 + place) << log_columns) + column, lower = upper + (half << log_columns);
            F u = tile_get(tile, upper), v = tile_get(tile, lower);
            if (stage > 0) {
                v = mul(v, load(pass.roots + (u64(place) << (pass.log_roots - 1 - stage))));
            }
            tile_put(tile, upper, add(u, v));
            tile_put(tile, lower, sub(u, v));
        }
        __syncthreads();
    }

    // Neighbouring threads write neighbouring elements: along the columns if those are neighbours, else along
    // the transform.
    bool along_columns = log_before >= log_columns;
    for (u32 t = threadIdx.x; t < tile.size; t += blockDim.x) {
        u32 column = along_columns ? t & (columns - 1) : t >> log_radix;
        u32 r = along_columns ? t >> log_columns : t & (radix - 1);
        u64 j = first_column + column, l = j & before_mask;
        u64 index = ((j - l) << log_radix) + (u64(r) << log_before) + l;
        F value = tile_get(tile, (r << log_columns) + column);
        if (pass.store.low) {
            value = scaled(pass.store, value, index, row);
        }
        store(pass.out + index * pass.out_stride + row * pass.out_batch, value);
    }
}

} // namespace spk

#define SPK_NTT(field)                                                                                                \
    SPK_KERNEL void SPK_BOUNDS(256) spk_ntt_pass_##field(const spk::NttPass<spk::field> pass) {                      \
        spk::ntt_pass(pass);                                                                                          \
    }

SPK_NTT(bn254_fr)
SPK_NTT(goldilocks)
#ifndef SPK_WITHOUT_PASTA
SPK_NTT(pasta_fp)
SPK_NTT(pasta_fq)
#endif
