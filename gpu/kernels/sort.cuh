// A stable radix sort of (key, value) pairs in several rows at once: the windows of an MSM.
//
// Four bits a pass, each pass three kernels (Satish, Harris, Garland, "Designing efficient sorting algorithms
// for manycore GPUs", 2009): count the digits of each tile, scan the counts, scatter. Row y of the grid sorts
// `keys[y * n .. (y + 1) * n]`. `counts` has `16 * tiles` words a row, digit-major, so its scan gives the
// place of each tile's first pair with each digit.
//
// Stable without warp instructions: a thread has consecutive pairs of the tile and counts their digits in
// shared memory; a scan over (digit, thread) gives the places of its pairs.
#pragma once
#include "platform.cuh"

namespace spk {

constexpr u32 DIGIT_BITS = 4;
constexpr u32 DIGITS = 1 << DIGIT_BITS;
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

SPK_INLINE u32 digit_of(u32 key, u32 shift) { return (key >> shift) & (DIGITS - 1); }

// The place of this thread's first pair, and of the one past its last.
SPK_INLINE u32 sort_from(u32 n) {
    u64 from = (u64(blockIdx.x) * blockDim.x + threadIdx.x) * SORT_RUN;
    return from < n ? u32(from) : n;
}

SPK_INLINE u32 sort_to(u32 from, u32 n) { return n - from < SORT_RUN ? n : from + SORT_RUN; }

// Counts this thread's digits: `counted[digit * threads + thread]`.
SPK_INLINE void count_digits(u32 *counted, const u32 *keys, u32 n, u32 shift) {
    for (u32 digit = 0; digit < DIGITS; digit++) {
        counted[digit * blockDim.x + threadIdx.x] = 0;
    }
    u32 from = sort_from(n);
    for (u32 i = from; i < sort_to(from, n); i++) {
        counted[digit_of(keys[i], shift) * blockDim.x + threadIdx.x]++;
    }
}

} // namespace spk

// Grid: (tiles, rows). Shared memory: 16 words a thread. `threads` is at least 16.
SPK_KERNEL void spk_sort_count(const spk::u32 *keys, spk::u32 n, spk::u32 shift, spk::u32 *counts) {
    using namespace spk;
    u32 *counted = shared_words();
    count_digits(counted, keys + size_t(blockIdx.y) * n, n, shift);
    __syncthreads();
    if (threadIdx.x < DIGITS) {
        u32 sum = 0;
        for (u32 thread = 0; thread < blockDim.x; thread++) {
            sum += counted[threadIdx.x * blockDim.x + thread];
        }
        counts[(size_t(blockIdx.y) * DIGITS + threadIdx.x) * gridDim.x + blockIdx.x] = sum;
    }
}

// Grid: (1, rows), each of `length` words. Shared memory: a word a thread.
SPK_KERNEL void spk_scan(spk::u32 *words, spk::u32 length) {
    using namespace spk;
    block_scan(words + size_t(blockIdx.y) * length, length, shared_words());
}

// Grid: (tiles, rows), as in the count. Shared memory: 17 words a thread.
SPK_KERNEL void spk_sort_scatter(const spk::u32 *keys, const spk::u32 *values, spk::u32 n, spk::u32 shift,
                                 const spk::u32 *counts, spk::u32 *keys_to, spk::u32 *values_to) {
    using namespace spk;
    u32 *counted = shared_words(), *scratch = counted + DIGITS * blockDim.x;
    size_t row = size_t(blockIdx.y) * n;
    count_digits(counted, keys + row, n, shift);
    __syncthreads();
    block_scan(counted, DIGITS * blockDim.x, scratch);
    // The first place of each digit in the tile; the threads then advance their own.
    if (threadIdx.x < DIGITS) {
        scratch[threadIdx.x] = counted[threadIdx.x * blockDim.x];
    }
    __syncthreads();
    u32 from = sort_from(n);
    for (u32 i = from; i < sort_to(from, n); i++) {
        u32 key = keys[row + i], digit = digit_of(key, shift);
        u32 in_tile = counted[digit * blockDim.x + threadIdx.x]++;
        u32 first = counts[(size_t(blockIdx.y) * DIGITS + digit) * gridDim.x + blockIdx.x];
        size_t place = row + first + (in_tile - scratch[digit]);
        keys_to[place] = key;
        values_to[place] = values[row + i];
    }
}
