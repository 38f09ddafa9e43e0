// Multi-scalar multiplication in chunks of points and scalars, with buckets that stay on the device.
//
// Pippenger's method with signed digits (Bernstein, Doumen, Lange, Oosterwijk, "Faster batch forgery
// identification", section 4): a scalar is the sum of d_w 2^(c w) with |d_w| <= 2^(c - 1), so a window has
// 2^(c - 1) buckets, bucket b for the digits +-(b + 1). There must be enough windows for c * windows >= bits
// + 1.
//
// Witnesses are mostly zeros and ones. Zeros are left out; ones and minus ones, whose points would all be in one bucket of
// the first window, are summed in lanes instead: the digits of neither are made or sorted.
//
// For each chunk of n < 2^31 points:
//   kinds        scalars -> (kind, index | sign << 31), one row; sorted by kind: others, ones, zeros
//   starts       the ends of the first two kinds
//   lanes        equal parts of the ones, as runs of one row, a lane for each
//   digits       m others -> (key, value) = (|d|, index | sign << 31), m of row w of n for window w; key 0 adds
//                nothing; and the values of the ones, which the sort would overwrite
//   sort_*       each row by key (sort.cuh)
//   starts       the place where each bucket's run begins in its row, and m behind them
//   lengths      (split - min(length, split), item) for each item = window * buckets + bucket; sorted, the
//                longest runs are first, so the threads of a warp have the same amount of work
//   accumulate   the first `split` points of each run into the sum of the item
// extras       the rest of longer runs (scalars that repeat) in pieces of `split` points, each into a partial
//                sum of its own
//   fold         partial sums of one run, pairwise: strides 1, 2, 4, .. below n / split
//   merge        the folded partial sum into the sum of the item
//   accumulate   of the lanes: each of their runs into the sum of the lane
// At the end, once:
//   reduce       segments of a window's buckets by running sums, weighted
//   total        segments into one point for each window; 2^(c w) times that, summed up, is the result; and lanes into
//                one point, in two steps
//
// Memory for n points, W windows, B = 2^(c - 1) buckets, L lanes, of which only `sums` outlives a chunk: sums 128 (W B + L)
// (twice that in G2), ones 4 n, lanes 8 L, pairs twice 8 W n, starts 4 W (B + 1), order twice 8 W B, counts 4 * 2^bits * tiles W, partials as sums,
// for W slots.
//
// `slots` = ceil(n / split). Slot j of a window belongs to the one piece that begins in [j * split, (j + 1) *
// split) of its row and is not the first piece of its run. There is at most one: pieces of a run are `split`
// apart, and the second piece of a later run begins `split` after that run does. So slots need neither
// counting nor lists, and the slots of a run are neighbours.
#pragma once
#include "curve.cuh"
#include "sort.cuh"

namespace spk {

constexpr u32 SIGN = 0x80000000u;

// Kinds of scalars; there are two bounds between them.
constexpr u32 OTHER = 0, ONE = 1, ZERO = 2;

template <class M> SPK_INLINE void msm_kinds(const Fp<M> *scalars, u32 n, u32 *keys, u32 *values) {
    for (u32 i = thread_index(); i < n; i += thread_count()) {
        Fp<M> scalar = load(scalars + i), one = Fp<M>::one();
        bool negative = is_zero(add(scalar, one));
        keys[i] = is_zero(scalar) ? ZERO : negative || is_zero(sub(scalar, one)) ? ONE : OTHER;
        values[i] = i | (negative ? SIGN : 0);
    }
}

// `listed` are the values by kind.
template <class M>
SPK_INLINE void msm_digits(const Fp<M> *scalars, const u32 *listed, const u32 *bounds, u32 n, u32 bits, u32 windows,
                           u32 *keys, u32 *values, u32 *ones) {
    u32 others = bounds[OTHER], end = bounds[ONE];
    for (u32 place = thread_index(); place < end; place += thread_count()) {
        u32 i = listed[place];
        if (place >= others) {
            ones[place - others] = i;
            continue;
        }
        Fp<M> scalar = canonical(load(scalars + i));
        u32 carry = 0;
        SPK_LOOP
        for (u32 window = 0; window < windows; window++) {
            u32 digit = (scalar.w[0] & ((1u << bits) - 1)) + carry;
            bool negative = digit > 1u << (bits - 1);
            carry = negative;
            size_t at = size_t(window) * n + place;
            keys[at] = negative ? (1u << bits) - digit : digit;
            values[at] = i | (negative ? SIGN : 0);
            SPK_UNROLL
            for (int word = 0; word < 8; word++) {
                u64 pair = (u64(word < 7 ? scalar.w[word + 1] : 0) << 32) | scalar.w[word];
                scalar.w[word] = u32(pair >> bits);
            }
        }
    }
}

// A run: the places of a bucket's pairs in the row of its window.
struct Run {
    u32 from, to;
};

SPK_INLINE Run run_of(const u32 *starts, u32 buckets, u32 window, u32 bucket) {
    const u32 *row = starts + size_t(window) * (buckets + 1);
    return {row[bucket], row[bucket + 1]};
}

// The piece of a slot.
struct Piece {
    Run run;
    // The number of the piece, 0 for the second piece of the run, and the number of pieces after the first; 0
    // if there is no piece.
    u32 number, count;
    // Its first pair.
    u32 from;
};

SPK_INLINE Piece piece_of(const u32 *keys, const u32 *starts, u32 n, u32 buckets, u32 split, u32 window, u32 slot) {
    Piece none = {{0, 0}, 0, 0, 0};
    u64 position = u64(slot) * split;
    // Behind the last bucket's run there is nothing.
    if (position >= starts[size_t(window) * (buckets + 1) + buckets]) {
        return none;
    }
    u32 key = keys[size_t(window) * n + position];
    if (key == 0) {
        return none;
    }
    Run run = run_of(starts, buckets, window, key - 1);
    u32 step = (u32(position) - run.from + split - 1) / split;
    u64 from = u64(run.from) + u64(step) * split;
    if (step == 0 || from >= run.to) {
        return none;
    }
    return {run, step - 1, (run.to - run.from - 1) / split, u32(from)};
}

template <class F>
SPK_INLINE void add_pairs(Xyzz<F> &sum, const Affine<F> *points, const u32 *values, u32 count) {
    SPK_LOOP
    for (u32 i = 0; i < count; i++) {
        u32 value = values[i];
        add_affine(sum, negated_if(value & SIGN, load(points + (value & ~SIGN))));
    }
}

// A thread for each item: around a loop of G2's additions there are no registers left for another one.
template <class F>
SPK_INLINE void msm_accumulate(const Affine<F> *points, const u32 *values, const u32 *starts, const u32 *order, u32 n,
                               u32 buckets, u32 items, u32 split, Xyzz<F> *sums) {
    if (thread_index() >= items) {
        return;
    }
    u32 item = order[thread_index()], window = item / buckets;
    Run run = run_of(starts, buckets, window, item - window * buckets);
    u32 length = run.to - run.from;
    if (length == 0) {
        return;
    }
    Xyzz<F> sum = load(sums + item);
    add_pairs(sum, points, values + size_t(window) * n + run.from, length < split ? length : split);
    store(sums + item, sum);
}

template <class F>
SPK_INLINE void msm_extras(const Affine<F> *points, const u32 *keys, const u32 *values, const u32 *starts, u32 n,
                           u32 buckets, u32 split, u32 slots, Xyzz<F> *partials) {
    for (u32 slot = thread_index(); slot < slots; slot += thread_count()) {
        Piece piece = piece_of(keys, starts, n, buckets, split, blockIdx.y, slot);
        if (piece.count == 0) {
            continue;
        }
        u32 left = piece.run.to - piece.from;
        Xyzz<F> sum = Xyzz<F>::infinity();
        add_pairs(sum, points, values + size_t(blockIdx.y) * n + piece.from, left < split ? left : split);
        store(partials + size_t(blockIdx.y) * slots + slot, sum);
    }
}

template <class F>
SPK_INLINE void msm_fold(const u32 *keys, const u32 *starts, u32 n, u32 buckets, u32 split, u32 slots, u32 stride,
                         Xyzz<F> *partials) {
    for (u32 slot = thread_index(); slot < slots; slot += thread_count()) {
        Piece piece = piece_of(keys, starts, n, buckets, split, blockIdx.y, slot);
        if (piece.number % (2 * stride) != 0 || piece.count <= stride || piece.number >= piece.count - stride) {
            continue;
        }
        Xyzz<F> *own = partials + size_t(blockIdx.y) * slots + slot;
        add_points(own, own + stride);
    }
}

template <class F>
SPK_INLINE void msm_merge(const u32 *starts, u32 buckets, u32 items, u32 split, u32 slots, const Xyzz<F> *partials,
                          Xyzz<F> *sums) {
    for (u32 item = thread_index(); item < items; item += thread_count()) {
        u32 window = item / buckets;
        Run run = run_of(starts, buckets, window, item - window * buckets);
        // The slot of its second piece.
        u32 slot = run.from / split + 1;
        if (run.to - run.from > split) {
            add_points(sums + item, partials + size_t(window) * slots + slot);
        }
    }
}

// The place of a point in shared memory. The words behind it put those of a warp's threads into different banks.
template <class F> struct alignas(SPK_ALIGN) Shared {
    Xyzz<F> point;
    u32 behind[4];
};

template <class F>
SPK_INLINE void msm_reduce(const Xyzz<F> *sums, u32 buckets, u32 segment, u32 segments, Xyzz<F> *to) {
    Shared<F> *shared = reinterpret_cast<Shared<F> *>(shared_words()) + threadIdx.x;
    Xyzz<F> *running = &shared->point, *first_times = &shared[blockDim.x].point;
    for (u32 i = thread_index(); i < segments; i += thread_count()) {
        u32 first = i * segment, end = buckets - first < segment ? buckets : first + segment;
        Xyzz<F> *weighted = to + size_t(blockIdx.y) * segments + i;
        store(running, Xyzz<F>::infinity());
        store(weighted, Xyzz<F>::infinity());
        SPK_LOOP
        for (u32 bucket = end; bucket > first; bucket--) {
            add_points(running, sums + size_t(blockIdx.y) * buckets + bucket - 1);
            add_points(weighted, running);
        }
        // Bucket `first` weighs 1 so far.
        times(first_times, running, first);
        add_points(weighted, first_times);
    }
}

template <class F> SPK_INLINE void msm_total(const Xyzz<F> *segments, u32 count, Xyzz<F> *to) {
    Shared<F> *shared = reinterpret_cast<Shared<F> *>(shared_words()) + threadIdx.x;
    store(&shared->point, Xyzz<F>::infinity());
    SPK_LOOP
    for (u32 i = threadIdx.x; i < count; i += blockDim.x) {
        add_points(&shared->point, segments + size_t(blockIdx.y) * count + i);
    }
    __syncthreads();
    SPK_LOOP
    for (u32 half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            add_points(&shared->point, &shared[half].point);
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        store(to + blockIdx.y, load(&shared->point));
    }
}

} // namespace spk

// Grid: (blocks, windows), for starts[0 ..= buckets] of each window's sorted keys, `*length` of n or all.
SPK_KERNEL void spk_msm_starts(const spk::u32 *keys, spk::u32 n, const spk::u32 *length, spk::u32 buckets,
                               spk::u32 *starts) {
    using namespace spk;
    const u32 *row = keys + size_t(blockIdx.y) * n;
    for (u32 bucket = thread_index(); bucket <= buckets; bucket += thread_count()) {
        // The first place whose key is above `bucket`.
        u32 low = 0, high = length ? *length : n;
        while (low < high) {
            u32 middle = low + (high - low) / 2;
            if (row[middle] <= bucket) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        starts[size_t(blockIdx.y) * (buckets + 1) + bucket] = low;
    }
}

SPK_KERNEL void spk_msm_lengths(const spk::u32 *starts, spk::u32 buckets, spk::u32 items, spk::u32 split, spk::u32 *keys,
                                spk::u32 *values) {
    using namespace spk;
    for (u32 item = thread_index(); item < items; item += thread_count()) {
        u32 window = item / buckets;
        Run run = run_of(starts, buckets, window, item - window * buckets);
        u32 length = run.to - run.from;
        keys[item] = split - (length < split ? length : split);
        values[item] = item;
    }
}

// The runs of the lanes in the list of ones, in their order.
SPK_KERNEL void spk_msm_lanes(const spk::u32 *bounds, spk::u32 lanes, spk::u32 *starts, spk::u32 *order) {
    using namespace spk;
    u32 count = bounds[ONE] - bounds[OTHER], part = (count + lanes - 1) / lanes;
    for (u32 lane = thread_index(); lane <= lanes; lane += thread_count()) {
        starts[lane] = smaller(lane * part, count);
        if (lane < lanes) {
            order[lane] = lane;
        }
    }
}

// The groups of one scalar field share the digits.
#define SPK_DIGITS(curve, scalar)                                                                                     \
    SPK_KERNEL void spk_msm_kinds_##curve(const spk::scalar *scalars, spk::u32 n, spk::u32 *keys, spk::u32 *values) { \
        spk::msm_kinds(scalars, n, keys, values);                                                                   \
    }                                                                                                                 \
    SPK_KERNEL void spk_msm_digits_##curve(const spk::scalar *scalars, const spk::u32 *listed,                      \
                                           const spk::u32 *bounds, spk::u32 n, spk::u32 bits, spk::u32 windows,     \
                                           spk::u32 *keys, spk::u32 *values, spk::u32 *ones) {                      \
        spk::msm_digits(scalars, listed, bounds, n, bits, windows, keys, values, ones);                             \
    }

#define SPK_MSM(curve, field)                                                                                         \
    SPK_KERNEL void SPK_BOUNDS(128)                                                                                  \
        spk_msm_accumulate_##curve(const spk::Affine<spk::field> *points, const spk::u32 *values,                   \
                                   const spk::u32 *starts, const spk::u32 *order, spk::u32 n, spk::u32 buckets,     \
                                   spk::u32 items, spk::u32 split, spk::Xyzz<spk::field> *sums) {                   \
        spk::msm_accumulate(points, values, starts, order, n, buckets, items, split, sums);                         \
    }                                                                                                                 \
    SPK_KERNEL void SPK_BOUNDS(128)                                                                                  \
        spk_msm_extras_##curve(const spk::Affine<spk::field> *points, const spk::u32 *keys, const spk::u32 *values, \
                               const spk::u32 *starts, spk::u32 n, spk::u32 buckets, spk::u32 split,                \
                               spk::u32 slots, spk::Xyzz<spk::field> *partials) {                                   \
        spk::msm_extras(points, keys, values, starts, n, buckets, split, slots, partials);                          \
    }                                                                                                                 \
    SPK_KERNEL void SPK_BOUNDS(128)                                                                                  \
        spk_msm_fold_##curve(const spk::u32 *keys, const spk::u32 *starts, spk::u32 n, spk::u32 buckets,            \
                             spk::u32 split, spk::u32 slots, spk::u32 stride, spk::Xyzz<spk::field> *partials) {    \
        spk::msm_fold(keys, starts, n, buckets, split, slots, stride, partials);                                    \
    }                                                                                                                 \
    SPK_KERNEL void SPK_BOUNDS(128)                                                                                  \
        spk_msm_merge_##curve(const spk::u32 *starts, spk::u32 buckets, spk::u32 items, spk::u32 split,             \
                              spk::u32 slots, const spk::Xyzz<spk::field> *partials, spk::Xyzz<spk::field> *sums) { \
        spk::msm_merge(starts, buckets, items, split, slots, partials, sums);                                       \
    }                                                                                                                 \
    SPK_KERNEL void SPK_BOUNDS(128)                                                                                  \
        spk_msm_reduce_##curve(const spk::Xyzz<spk::field> *sums, spk::u32 buckets, spk::u32 segment,               \
                               spk::u32 segments, spk::Xyzz<spk::field> *to) {                                      \
        spk::msm_reduce(sums, buckets, segment, segments, to);                                                      \
    }                                                                                                                 \
    SPK_KERNEL void SPK_BOUNDS(128)                                                                                  \
        spk_msm_total_##curve(const spk::Xyzz<spk::field> *segments, spk::u32 count, spk::Xyzz<spk::field> *to) {   \
        spk::msm_total(segments, count, to);                                                                        \
    }

SPK_DIGITS(bn254, bn254_fr)
SPK_MSM(bn254, bn254_fq)
SPK_MSM(bn254_g2, bn254_fq2)
#ifndef SPK_WITHOUT_PASTA
SPK_DIGITS(pallas, pasta_fq)
SPK_MSM(pallas, pasta_fp)
SPK_DIGITS(vesta, pasta_fp)
SPK_MSM(vesta, pasta_fq)
#endif
