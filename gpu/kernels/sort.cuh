// A stable radix sort of (key, value) pairs in several rows at once: the windows of an MSM.
//
// Up to eight bits a pass, each pass three kernels (Satish, Harris, Garland, "Designing efficient sorting algorithms
// for manycore GPUs", 2009): count the digits of each tile, scan the counts, scatter. Row y of the grid sorts
// `keys[y * n .. (y + 1) * n]`. `counts` has 2^bits * tiles words a row, digit-major, so its scan gives the place of
// each tile's first pair with each digit.
//
// Rows may be shorter than n, all by the same: `*length` is the number of their pairs, or n without a pointer. Who launches
// need not know it.
//
// A block scatters its tile in blocks of SORT_RUN pairs a thread: it sorts one in shared memory by four bits at a
// time, so that pairs of one digit leave as neighbours. Stable without warp instructions: a thread has consecutive
// pairs and counts their digits in shared memory; a scan over (digit, thread) gives the places of its pairs.
#pragma once
#include "platform.cuh"

namespace spk {

constexpr u32 DIGITS_MAX = 256;
// Bits, and values, that are sorted in shared memory at a time.
constexpr u32 SPLIT_BITS = 4;
constexpr u32 SPLITS = 1 << SPLIT_BITS;
// Pairs of a thread.
constexpr u32 SORT_RUN = 8;

// Replaces each of `words[0 .. length)` by the sum of the words before it; returns the sum of all. All
// threads of a block call it, with a word of `scratch` for each.
SPK_INLINE u32 block_scan(u32 *words, u32 length, u32 *scratch) {
    u32 thread = threadIdx.x, threads = blockDim.x;
    u32 each = (length + threads - 1) / threads;
    u32 from = thread * each < length ? thread * each : length;
    u32 to = from + each < length ? from + each : length;
    u32 own = 0;
    for (u32 i = from; i < to; i++) {
        own += words[i];
    }
    scratch[thread] = own;
    __syncthreads();
    for (u32 distance = 1; distance < threads; distance *= 2) {
        u32 before = thread >= distance ? scratch[thread - distance] : 0;
        __syncthreads();
        scratch[thread] += before;
        __syncthreads();
    }
    u32 total = scratch[threads - 1];
    u32 running = scratch[thread] - own;
    for (u32 i = from; i < to; i++) {
        u32 here = words[i];
        words[i] = running;
        running += here;
    }
    __syncthreads();
    return total;
}

SPK_INLINE u32 digit_of(u32 key, u32 shift, u32 bits) { return (key >> shift) & ((1u << bits) - 1); }

SPK_INLINE u32 smaller(u32 a, u32 b) { return a < b ? a : b; }

// The end of the tile that begins at `start`, which may be behind the pairs.
SPK_INLINE u32 end_of_tile(u32 start, u32 tile, u32 n, const u32 *length) {
    u32 pairs = length ? *length : n;
    return start < pairs ? start + smaller(tile, pairs - start) : start;
}

// The place of a pair in shared memory, where runs of neighbouring threads are in different banks.
SPK_INLINE u32 spread(u32 i) { return i + i / 32; }

// The shared memory of a block that scatters: pairs, counts of each value and thread, a word a thread, and of each
// digit the next place in the row and the first pair in shared memory.
struct Scatter {
    u32 *keys, *values, *counted, *scratch, *next, *first;

    SPK_INLINE Scatter of_block() {
        u32 pairs = spread(SORT_RUN * blockDim.x);
        u32 *at = shared_words();
        Scatter r;
        r.keys = at, r.values = r.keys + pairs, r.counted = r.values + pairs;
        r.scratch = r.counted + SPLITS * blockDim.x, r.next = r.scratch + blockDim.x, r.first = r.next + DIGITS_MAX;
        return r;
    }
};

// Sorts the first `count` pairs in shared memory by some bits of their keys, SPLIT_BITS at most.
SPK_INLINE void split(const Scatter &block, u32 count, u32 shift, u32 bits) {
    u32 thread = threadIdx.x, threads = blockDim.x;
    u32 from = smaller(thread * SORT_RUN, count), run = smaller(count - from, SORT_RUN);
    u32 keys[SORT_RUN], values[SORT_RUN];
    for (u32 digit = 0; digit < SPLITS; digit++) {
        block.counted[digit * threads + thread] = 0;
    }
    SPK_UNROLL
    for (u32 i = 0; i < SORT_RUN; i++) {
        if (i < run) {
            keys[i] = block.keys[spread(from + i)];
            values[i] = block.values[spread(from + i)];
            block.counted[digit_of(keys[i], shift, bits) * threads + thread]++;
        }
    }
    __syncthreads();
    block_scan(block.counted, SPLITS * threads, block.scratch);
    SPK_UNROLL
    for (u32 i = 0; i < SORT_RUN; i++) {
        if (i < run) {
            u32 place = spread(block.counted[digit_of(keys[i], shift, bits) * threads + thread]++);
            block.keys[place] = keys[i];
            block.values[place] = values[i];
        }
    }
    __syncthreads();
}

} // namespace spk

// Grid: (tiles, rows), tiles of `tile` pairs. Shared memory: a word for each digit.
SPK_KERNEL void spk_sort_count(const spk::u32 *keys, spk::u32 n, const spk::u32 *length, spk::u32 shift, spk::u32 bits,
                               spk::u32 tile, spk::u32 *counts) {
    using namespace spk;
    u32 *counted = shared_words(), digits = 1u << bits;
    for (u32 digit = threadIdx.x; digit < digits; digit += blockDim.x) {
        counted[digit] = 0;
    }
    __syncthreads();
    const u32 *row = keys + size_t(blockIdx.y) * n;
    u32 start = blockIdx.x * tile, end = end_of_tile(start, tile, n, length);
    // Neighbours are often alike: a thread counts a run of equal digits at once.
    SPK_LOOP
    for (u32 from = start + threadIdx.x * SORT_RUN; from < end; from += blockDim.x * SORT_RUN) {
        u32 last = digit_of(row[from], shift, bits), run = 1;
        for (u32 i = from + 1; i < smaller(from + SORT_RUN, end); i++) {
            u32 digit = digit_of(row[i], shift, bits);
            if (digit != last) {
                atomicAdd(counted + last, run);
                last = digit, run = 0;
            }
            run++;
        }
        atomicAdd(counted + last, run);
    }
    __syncthreads();
    for (u32 digit = threadIdx.x; digit < digits; digit += blockDim.x) {
        counts[(size_t(blockIdx.y) * digits + digit) * gridDim.x + blockIdx.x] = counted[digit];
    }
}

// Grid: (1, rows), each of `length` words. Shared memory: a word a thread.
SPK_KERNEL void spk_scan(spk::u32 *words, spk::u32 length) {
    using namespace spk;
    block_scan(words + size_t(blockIdx.y) * length, length, shared_words());
}

// Grid: (tiles, rows), as in the count. Shared memory: 33.5 words a thread, and 512.
SPK_KERNEL void spk_sort_scatter(const spk::u32 *keys, const spk::u32 *values, spk::u32 n, const spk::u32 *length,
                                 spk::u32 shift, spk::u32 bits, spk::u32 tile, const spk::u32 *counts,
                                 spk::u32 *keys_to, spk::u32 *values_to) {
    using namespace spk;
    Scatter block = Scatter::of_block();
    size_t row = size_t(blockIdx.y) * n;
    u32 digits = 1u << bits;
    for (u32 digit = threadIdx.x; digit < digits; digit += blockDim.x) {
        block.next[digit] = counts[(size_t(blockIdx.y) * digits + digit) * gridDim.x + blockIdx.x];
    }
    u32 start = blockIdx.x * tile, end = end_of_tile(start, tile, n, length);
    SPK_LOOP
    for (u32 from = start; from < end; from += blockDim.x * SORT_RUN) {
        u32 count = smaller(end - from, blockDim.x * SORT_RUN);
        for (u32 i = threadIdx.x; i < count; i += blockDim.x) {
            block.keys[spread(i)] = keys[row + from + i];
            block.values[spread(i)] = values[row + from + i];
        }
        __syncthreads();
        SPK_LOOP
        for (u32 done = 0; done < bits; done += SPLIT_BITS) {
            split(block, count, shift + done, smaller(bits - done, SPLIT_BITS));
        }
        for (u32 i = threadIdx.x; i < count; i += blockDim.x) {
            u32 digit = digit_of(block.keys[spread(i)], shift, bits);
            if (i == 0 || digit_of(block.keys[spread(i - 1)], shift, bits) != digit) {
                block.first[digit] = i;
            }
        }
        __syncthreads();
        for (u32 i = threadIdx.x; i < count; i += blockDim.x) {
            u32 key = block.keys[spread(i)], digit = digit_of(key, shift, bits);
            size_t place = row + block.next[digit] + (i - block.first[digit]);
            keys_to[place] = key;
            values_to[place] = block.values[spread(i)];
        }
        __syncthreads();
        for (u32 i = threadIdx.x; i < count; i += blockDim.x) {
            u32 digit = digit_of(block.keys[spread(i)], shift, bits);
            if (i + 1 == count || digit_of(block.keys[spread(i + 1)], shift, bits) != digit) {
                block.next[digit] += i + 1 - block.first[digit];
            }
        }
        __syncthreads();
    }
}
