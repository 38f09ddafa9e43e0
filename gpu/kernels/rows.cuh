// The columns, outputs and rows of interpreted programs (program.cuh) and of compiled ones (compiled.cuh).
//
// A query is a column and a rotation: row i reads `values[(i + rotation) mod rows]`, with |rotation| < rows.
// Rows are computed from `first` on; row `first + i` goes to place `at + i` of each output.
#pragma once
#include "field.cuh"
#include "goldilocks.cuh"

namespace spk {

struct alignas(16) Instruction {
    u32 operation, to, a, b;
};

template <class F> struct Query {
    const F *values;
    long long rotation;
};

// 88 bytes.
template <class F> struct Program {
    // A compiled program does not read this.
    const Instruction *instructions;
    const F *constants;
    const Query<F> *queries;
    F *const *outputs;
    // Interpreted: `registers` elements for each thread of the grid, or 0 if they are in shared memory.
    // Compiled: the slots for values between kernels, each of `registers` elements, one for each row of a
    // launch.
    u32 *registers_at;
    u64 length, registers;
    // The rows of a column, at which rotations wrap; the rows to compute.
    u64 rows, first, count;
    u64 at;
};
static_assert(sizeof(Instruction) == 16 && sizeof(Query<goldilocks>) == 16 && sizeof(Program<goldilocks>) == 88,
              "as hosts lay it out");

template <class F> SPK_INLINE F queried(const Query<F> *queries, u64 rows, u32 number, u64 row) {
    Query<F> query = queries[number];
    long long at = (long long)(row) + query.rotation;
    if (at < 0) {
        at += (long long)(rows);
    } else if (u64(at) >= rows) {
        at -= (long long)(rows);
    }
    return load(query.values + at);
}

} // namespace spk
