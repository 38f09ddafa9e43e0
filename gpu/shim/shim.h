// Runs the grid of a kernel on the calling thread, for the host build of `kernels/all.cu`.
//
// Blocks run one after another. The threads of a kernel with barriers are fibers that run from barrier to
// barrier, beginning at any of them and going up or down, so that a missing barrier shows in the results.
// Shared memory is filled with a pattern before each block, with a guard behind it. What is undefined on a
// device (a barrier that some threads never reach, shared memory past its end) ends the process with a
// message.
//
// Not simulated: warps, memory order between blocks, alignment faults.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <tuple>
#include <utility>

#define __global__
#define __device__
#define __host__
#define __forceinline__
#define __restrict__ __restrict

namespace spk_shim {

struct Index {
    unsigned x, y, z;
};

[[noreturn]] void fail(const char *message);

inline void require(bool holds, const char *message) {
    if (__builtin_expect(!holds, 0)) {
        fail(message);
    }
}

void *shared_memory();
void barrier();

// Runs the text of an `asm` block of 32-bit additions and multiplications with carry (PTX ISA,
// "Extended-precision integer arithmetic instructions"): %0, %1, .. are `outputs`, then `inputs`.
void interpret(const char *text, std::initializer_list<unsigned *> outputs, std::initializer_list<unsigned> inputs);

// One thread of the grid: a function, and its arguments behind `context`.
typedef void (*Body)(void *context);
void run_grid(Index grid, Index block, size_t shared_bytes, bool has_barriers, Body body, void *context);

template <class... Arguments, size_t... I>
void launch(void (*kernel)(Arguments...), void **pointers, Index grid, Index block, size_t shared_bytes,
            bool has_barriers, std::index_sequence<I...>) {
    struct Call {
        void (*kernel)(Arguments...);
        std::tuple<Arguments...> arguments;
    };
    // Copies the arguments first, as the driver does. The caller's arguments may be unaligned.
    Call call{kernel, {}};
    (std::memcpy(static_cast<void *>(&std::get<I>(call.arguments)), pointers[I], sizeof(Arguments)), ...);
    run_grid(
        grid, block, shared_bytes, has_barriers,
        [](void *context) {
            Call *call = static_cast<Call *>(context);
            std::apply(call->kernel, call->arguments);
        },
        &call);
}

// The list of kernels, filled when the library is loaded.
struct Registration {
    explicit Registration(const char *name);
};

} // namespace spk_shim

extern thread_local spk_shim::Index threadIdx, blockIdx, blockDim, gridDim;

inline void __syncthreads() { spk_shim::barrier(); }

// The bits of a word in reverse.
inline unsigned __brev(unsigned word) {
    unsigned reversed = 0;
    for (int bit = 0; bit < 32; bit++) {
        reversed = (reversed << 1) | ((word >> bit) & 1);
    }
    return reversed;
}

// Zeros above the highest bit; 32 for 0.
inline int __clz(unsigned word) { return word == 0 ? 32 : __builtin_clz(word); }

// Blocks and threads run one at a time, so plain arithmetic is atomic.
template <class T, class V> inline T atomicAdd(T *at, V value) {
    T before = *at;
    *at = before + value;
    return before;
}

#define SPK_HOST_ENTRY(name, has_barriers)                                                                            \
    extern "C" void host_##name(unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,        \
                                size_t shared_bytes, void **args) {                                                 \
        auto start = [&]<class... A>(void (*kernel)(A...)) {                                                        \
            spk_shim::launch(kernel, args, {gx, gy, gz}, {bx, by, bz}, shared_bytes, has_barriers,                  \
                             std::index_sequence_for<A...>{});                                                      \
        };                                                                                                            \
        start(&name);                                                                                                 \
    }                                                                                                                 \
    static const spk_shim::Registration register_##name(#name);
