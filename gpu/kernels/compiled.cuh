// Compiled constraint programs: the building blocks of the generated text (gpu/src/program/text.rs).
//
// The text is straight-line code, one statement an operation, in several kernels that run one after the other
// over the same rows. Field operations are calls: inlined, a few hundred products take a compiler minutes and
// spill. Values that one kernel leaves to another, or that do not fit a thread's registers, are in slots of
// device memory, with an element for every row of the launch. Constants are read from memory, so the text and
// its cache entry depend on the shape of a program only.
//
// Grid: one thread a row; at most 128 threads a block. Three blocks on a multiprocessor: 168 registers.
//
//   SPK_COMPILED(spk_compiled_0, bn254_fr) {
//       SPK_ROW(i, row) {
//           const F x0 = read(program, 3, row);
//           const F x1 = product(x0, x0);
//           keep(program, 0, i, x1);
//       }
//   }
#pragma once
#include "rows.cuh"

namespace spk {

template <class F> SPK_CALL F product(F a, F b) { return mul(a, b); }
template <class F> SPK_CALL F sum(F a, F b) { return add(a, b); }
template <class F> SPK_CALL F difference(F a, F b) { return sub(a, b); }

// Values are read where the text reads them: a read that the compiler moves up occupies registers.
SPK_INLINE void here() {
#ifndef SPK_HOST
    asm volatile("" ::: "memory");
#endif
}

template <class F> SPK_CALL F read_called(const Query<F> *queries, u64 rows, u32 number, u64 row) {
    return queried(queries, rows, number, row);
}

template <class F> SPK_INLINE F read(const Program<F> &program, u32 number, u64 row) {
    here();
    return read_called(program.queries, program.rows, number, row);
}

template <class F> SPK_INLINE F constant(const Program<F> &program, u32 number) {
    here();
    return load(program.constants + number);
}

template <class F> SPK_INLINE F *slot_at(const Program<F> &program, u32 slot, u64 i) {
    return reinterpret_cast<F *>(program.registers_at) + slot * program.registers + i;
}

template <class F> SPK_INLINE F kept(const Program<F> &program, u32 slot, u64 i) {
    here();
    return load(static_cast<const F *>(slot_at(program, slot, i)));
}

template <class F> SPK_INLINE void keep(const Program<F> &program, u32 slot, u64 i, const F &value) {
    store(slot_at(program, slot, i), value);
    here();
}

template <class F> SPK_INLINE void give(const Program<F> &program, u32 output, u64 i, const F &value) {
    store(program.outputs[output] + program.at + i, value);
    here();
}

} // namespace spk

// Not a loop: around so many calls a loop doubles the compiler's time.
#define SPK_ROW(i, row)                                                                                               \
    const u64 i = thread_index();                                                                                    \
    [[maybe_unused]] const u64 row = program.first + i;                                                              \
    if (i < program.count)

#ifdef SPK_HOST
#define SPK_COMPILED(name, field)                                                                                     \
    SPK_KERNEL void name(const spk::Program<spk::field> program);                                                    \
    SPK_HOST_ENTRY(name, false)                                                                                       \
    SPK_KERNEL void name(const spk::Program<spk::field> program)
#else
#define SPK_COMPILED(name, field)                                                                                     \
    SPK_KERNEL void SPK_BLOCKS(128, 3) name(const spk::Program<spk::field> program)
#endif
