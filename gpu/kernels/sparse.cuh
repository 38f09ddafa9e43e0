// Products of sparse matrices with a vector: the rows of both matrices of a rank-1 constraint system, whose
// coefficients come in chunks, in the order of their rows.
//
// Algorithm: a thread adds up a run of neighbouring coefficients, so work is even whatever the rows are (Bell and
// Garland, "Implementing sparse matrix-vector multiplication on throughput-oriented processors", 2009, COO). A sum
// goes to its row, unless the row begins before the run: then it is a part of that row. The parts of a block
// whose coefficients are all of one row are added up in a tree. `sparse_join` adds parts to the row that they
// belong to: the thread whose run has the row's first coefficient takes those of the runs behind it, and of a block
// of one row the sum of all.
//
// Memory: two elements for each run. Rows are added to what is there: zeros, or what earlier chunks gave a row
// that continues.
#pragma once
#include "field.cuh"

namespace spk {

// As the key has it on disk.
struct alignas(SPK_ALIGN) Coefficient {
    u32 row, signal, value, matrix;
};

// Threads of a block, and coefficients of a thread.
constexpr u32 SPARSE_THREADS = 128;
constexpr u32 SPARSE_RUN = 16;

// What all chunks share. `state` has two words: not 0 if a coefficient is outside of the matrices or out of order;
// the row of the last coefficient of the chunks before.
struct Sparse {
    u64 rows, signals, values;
    u64 of_values, of_signals, of_rows[2], parts, state;
};
static_assert(sizeof(Sparse) == 72, "the launch writes nine words");

template <class F> SPK_INLINE F *elements(u64 address) { return reinterpret_cast<F *>(address); }

// Whether the coefficients of a run's block are all of a row that begins before the block.
SPK_INLINE bool is_of_one_row(const Coefficient *all, u32 count, u32 block) {
    constexpr u32 length = SPARSE_THREADS * SPARSE_RUN;
    u32 first = block * length, end = count - first < length ? count : first + length;
    return first > 0 && all[first - 1].row == all[end - 1].row;
}

template <class F> SPK_INLINE void add_to(F *to, const F &sum) {
    if (!is_zero(sum)) {
        store(to, add(load(to), sum));
    }
}

template <class F> SPK_INLINE void sparse_runs(const Sparse &by, const Coefficient *all, u32 count) {
    u32 first = thread_index() * SPARSE_RUN;
    u32 end = first >= count ? first : count - first < SPARSE_RUN ? count : first + SPARSE_RUN;
    u32 *state = elements<u32>(by.state);
    F *parts = elements<F>(by.parts) + 2 * thread_index();
    F left = F::zero(), right = F::zero();
    u32 row = first > 0 && first < count ? all[first - 1].row : state[1];
    bool is_part = first > 0;
    SPK_LOOP
    for (u32 i = first; i < end; i++) {
        Coefficient next = load(all + i);
        if (next.row < row || next.row >= by.rows || next.signal >= by.signals || next.value >= by.values ||
            next.matrix > 1) {
            state[0] = 1;
            // What is added up is not used.
            end = first;
            break;
        }
        if (next.row != row) {
            if (is_part) {
                store(parts, left), store(parts + 1, right);
            } else {
                add_to(elements<F>(by.of_rows[0]) + row, left);
                add_to(elements<F>(by.of_rows[1]) + row, right);
            }
            is_part = false;
            row = next.row;
            left = right = F::zero();
        }
        F product = mul(load(elements<const F>(by.of_values) + next.value),
                        load(elements<const F>(by.of_signals) + next.signal));
        F sum = add(choose(next.matrix == 0, left, right), product);
        left = choose(next.matrix == 0, sum, left);
        right = choose(next.matrix == 0, right, sum);
    }
    if (end > first && !is_part) {
        add_to(elements<F>(by.of_rows[0]) + row, left);
        add_to(elements<F>(by.of_rows[1]) + row, right);
    } else if (end > first) {
        store(parts, left), store(parts + 1, right);
    }
    if (is_of_one_row(all, count, blockIdx.x)) {
        // Each thread has a part of the row, or nothing.
        F *sums = reinterpret_cast<F *>(shared_words()) + 2 * threadIdx.x;
        sums[0] = left, sums[1] = right;
        for (u32 half = SPARSE_THREADS / 2; half > 0; half /= 2) {
            __syncthreads();
            if (threadIdx.x < half) {
                sums[0] = add(sums[0], sums[2 * half]);
                sums[1] = add(sums[1], sums[2 * half + 1]);
            }
        }
        if (threadIdx.x == 0) {
            store(parts, sums[0]), store(parts + 1, sums[1]);
        }
    }
}

template <class F> SPK_INLINE void sparse_join(const Sparse &by, const Coefficient *all, u32 count) {
    u32 *state = elements<u32>(by.state);
    u32 run = thread_index(), runs = (count - 1) / SPARSE_RUN + 1;
    if (run == 0) {
        state[1] = all[count - 1].row;
    }
    // The rows of wrong coefficients may not be there.
    if (state[0] != 0 || run + 1 >= runs) {
        return;
    }
    u32 first = run * SPARSE_RUN, row = all[first + SPARSE_RUN - 1].row;
    bool begins_before = first > 0 && all[first - 1].row == row;
    if (begins_before || all[first + SPARSE_RUN].row != row) {
        return;
    }
    const F *parts = elements<const F>(by.parts);
    F left = F::zero(), right = F::zero();
    SPK_LOOP
    for (u32 next = run + 1; next < runs && all[next * SPARSE_RUN].row == row;) {
        left = add(left, load(parts + 2 * next));
        right = add(right, load(parts + 2 * next + 1));
        bool is_block = next % SPARSE_THREADS == 0 && is_of_one_row(all, count, next / SPARSE_THREADS);
        next += is_block ? SPARSE_THREADS : 1;
    }
    add_to(elements<F>(by.of_rows[0]) + row, left);
    add_to(elements<F>(by.of_rows[1]) + row, right);
}

} // namespace spk

SPK_KERNEL void SPK_BOUNDS(128)
    spk_sparse_runs_bn254_fr(spk::Sparse by, const spk::Coefficient *all, spk::u32 count) {
    spk::sparse_runs<spk::bn254_fr>(by, all, count);
}
SPK_KERNEL void SPK_BOUNDS(128)
    spk_sparse_join_bn254_fr(spk::Sparse by, const spk::Coefficient *all, spk::u32 count) {
    spk::sparse_join<spk::bn254_fr>(by, all, count);
}
