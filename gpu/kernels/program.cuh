// Constraint programs, row by row: an interpreter for straight-line code over columns.
//
// A program is a list of instructions, each of which reads operands and writes one register or output. All
// rows run the same list, so the threads of a warp never diverge. Registers are in shared memory where they
// fit, else in device memory.
//
// An instruction is four words: operation | constant << 8, to, a, b, where
//   an operand (a, b)  is a register's number, or QUERY | the number of a query
//   to                 is a register's number, or OUTPUT | the number of an output
//   constant           is the number of a constant, below 2^24
// Operands are read before the result is written, so a register may be both.
#pragma once
#include "rows.cuh"

namespace spk {

enum Operation : u32 {
    OP_SUM = 0,        // a + b
    OP_DIFFERENCE = 1, // a - b
    OP_PRODUCT = 2,    // a * b
    OP_SCALED_SUM = 3, // a * constant + b
    OP_SQUARE = 4,     // a * a
    OP_DOUBLE = 5,     // 2 * a
    OP_NEGATED = 6,    // -a
    OP_SCALED = 7,     // a * constant
    OP_SHIFTED = 8,    // a + constant
    OP_REFLECTED = 9,  // constant - a
    OP_COPY = 10,      // a
    OP_CONSTANT = 11,  // constant
};

constexpr u32 QUERY = 0x80000000u;
constexpr u32 OUTPUT = 0x80000000u;

// The registers of a block, word by word: neighbouring threads have neighbouring words.
template <class F> struct Registers {
    u32 *words;
};

template <class F> SPK_INLINE F get(const Registers<F> &registers, u32 number) {
    F value;
    SPK_UNROLL
    for (int word = 0; word < F::WORDS; word++) {
        value.w[word] = registers.words[(size_t(number) * F::WORDS + word) * blockDim.x];
    }
    return value;
}

template <class F> SPK_INLINE void put(const Registers<F> &registers, u32 number, const F &value) {
    SPK_UNROLL
    for (int word = 0; word < F::WORDS; word++) {
        registers.words[(size_t(number) * F::WORDS + word) * blockDim.x] = value.w[word];
    }
}

template <class F>
SPK_INLINE F operand(const Program<F> &program, const Registers<F> &registers, u32 number, u64 row) {
    if (!(number & QUERY)) {
        return get(registers, number);
    }
    return queried(program.queries, program.rows, number & ~QUERY, row);
}

template <class F> SPK_INLINE void run_program(const Program<F> &program) {
    u32 *words = program.registers_at
                     ? program.registers_at + size_t(blockIdx.x) * program.registers * F::WORDS * blockDim.x
                     : shared_words();
    Registers<F> registers = {words + threadIdx.x};
    for (u64 i = thread_index(); i < program.count; i += thread_count()) {
        u64 row = program.first + i;
        SPK_LOOP
        for (u64 at = 0; at < program.length; at++) {
            Instruction instruction = program.instructions[at];
            u32 operation = instruction.operation & 0xff;
            const F *constant = program.constants + (instruction.operation >> 8);
            F x = operation == OP_CONSTANT ? load(constant) : operand(program, registers, instruction.a, row);
            // One call site for each kind of arithmetic, which keeps the code small.
            F y = x;
            switch (operation) {
            case OP_SUM:
            case OP_DIFFERENCE:
            case OP_PRODUCT: y = operand(program, registers, instruction.b, row); break;
            case OP_SCALED_SUM:
            case OP_SCALED:
            case OP_SHIFTED: y = load(constant); break;
            case OP_NEGATED: x = F::zero(); break;
            case OP_REFLECTED: x = load(constant); break;
            default: break;
            }
            switch (operation) {
            case OP_PRODUCT:
            case OP_SCALED:
            case OP_SCALED_SUM:
            case OP_SQUARE:
                x = mul(x, y);
                if (operation == OP_SCALED_SUM) {
                    x = add(x, operand(program, registers, instruction.b, row));
                }
                break;
            case OP_SUM:
            case OP_SHIFTED:
            case OP_DOUBLE: x = add(x, y); break;
            case OP_DIFFERENCE:
            case OP_NEGATED:
            case OP_REFLECTED: x = sub(x, y); break;
            default: break;
            }
            if (instruction.to & OUTPUT) {
                store(program.outputs[instruction.to & ~OUTPUT] + program.at + i, x);
            } else {
                put(registers, instruction.to, x);
            }
        }
    }
}

} // namespace spk

#define SPK_PROGRAM(field)                                                                                            \
    SPK_KERNEL void SPK_BOUNDS(128) spk_program_##field(const spk::Program<spk::field> program) {                    \
        spk::run_program(program);                                                                                    \
    }

SPK_PROGRAM(bn254_fr)
