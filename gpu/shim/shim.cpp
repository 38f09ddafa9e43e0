// The grid, fibers and shared memory behind shim.h.
#include "shim.h"

#include <setjmp.h>
#include <ucontext.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

thread_local spk_shim::Index threadIdx, blockIdx, blockDim, gridDim;

namespace spk_shim {
namespace {

constexpr size_t STACK_BYTES = 256 * 1024;
constexpr size_t GUARD_BYTES = 4096;
constexpr unsigned char POISON = 0xA5;
constexpr unsigned char GUARD = 0x5C;

// Reused from block to block. The first switch to it uses its context; later ones use `_setjmp` and
// `_longjmp`, which do not change the signal mask and so make no system call.
struct Fiber {
    ucontext_t start;
    jmp_buf here;
    Index thread;
    bool done;
    std::unique_ptr<unsigned char[]> stack;
};

// One launch at a time on each thread of the process; threads are independent.
struct Device {
    std::vector<std::unique_ptr<Fiber>> fibers;
    std::vector<unsigned char> shared;
    size_t shared_bytes = 0;
    jmp_buf scheduler;
    Fiber *running = nullptr;
    Body body = nullptr;
    void *body_context = nullptr;
    unsigned random = 0x2545F491;
};

thread_local Device device;

std::string &names() {
    static std::string all;
    return all;
}

void yield() {
    if (_setjmp(device.running->here) == 0) {
        _longjmp(device.scheduler, 1);
    }
}

void fiber_main() {
    for (;;) {
        device.body(device.body_context);
        device.running->done = true;
        yield();
    }
}

Index thread_of(unsigned number, Index block) {
    return {number % block.x, number / block.x % block.y, number / block.x / block.y};
}

// Marsaglia's xorshift: the order of threads is the same in every run, and no kernel can rely on it.
unsigned next_random() {
    device.random ^= device.random << 13;
    device.random ^= device.random >> 17;
    device.random ^= device.random << 5;
    return device.random;
}

void resume(Fiber &fiber) {
    device.running = &fiber;
    threadIdx = fiber.thread;
    if (_setjmp(device.scheduler) == 0) {
        _longjmp(fiber.here, 1);
    }
    device.running = nullptr;
}

// A fiber whose first `resume` starts it.
std::unique_ptr<Fiber> new_fiber() {
    auto fiber = std::make_unique<Fiber>();
    fiber->stack = std::make_unique<unsigned char[]>(STACK_BYTES);
    require(getcontext(&fiber->start) == 0, "a fiber cannot start");
    fiber->start.uc_stack.ss_sp = fiber->stack.get();
    fiber->start.uc_stack.ss_size = STACK_BYTES;
    fiber->start.uc_link = nullptr;
    makecontext(
        &fiber->start,
        [] {
            yield();
            fiber_main();
        },
        0);
    device.running = fiber.get();
    if (_setjmp(device.scheduler) == 0) {
        setcontext(&fiber->start);
    }
    device.running = nullptr;
    return fiber;
}

void run_block_in_fibers(unsigned threads, Index block) {
    while (device.fibers.size() < threads) {
        device.fibers.push_back(new_fiber());
    }
    for (unsigned number = 0; number < threads; number++) {
        Fiber &fiber = *device.fibers[number];
        fiber.thread = thread_of(number, block);
        fiber.done = false;
    }
    unsigned ended = 0;
    while (ended == 0) {
        unsigned random = next_random(), first = random % threads;
        bool reverse = random >> 31;
        for (unsigned turn = 0; turn < threads; turn++) {
            unsigned place = (first + turn) % threads;
            Fiber &fiber = *device.fibers[reverse ? threads - 1 - place : place];
            resume(fiber);
            ended += fiber.done;
        }
    }
    require(ended == threads, "some threads wait at a barrier that other threads never reach");
}

} // namespace

void fail(const char *message) {
    std::fprintf(stderr, "host kernel: %s (block %u,%u thread %u)\n", message, blockIdx.x, blockIdx.y, threadIdx.x);
    std::abort();
}

Registration::Registration(const char *name) {
    if (!names().empty()) {
        names() += '\n';
    }
    names() += name;
}

void *shared_memory() {
    require(device.shared_bytes > 0, "the kernel uses shared memory, and the launch gives none");
    return device.shared.data();
}

void barrier() {
    require(device.running != nullptr, "a barrier in a kernel that is listed without barriers");
    yield();
}

void run_grid(Index grid, Index block, size_t shared_bytes, bool has_barriers, Body body, void *context) {
    unsigned threads = block.x * block.y * block.z;
    require(threads > 0 && threads <= 1024, "a block has 1 to 1024 threads");
    require(shared_bytes <= 227 * 1024, "a block has at most 227 KiB of shared memory");
    require(grid.x > 0 && grid.y > 0 && grid.z > 0, "an empty grid");
    require(grid.y <= 65535 && grid.z <= 65535, "a grid is at most 65535 blocks high and deep");
    device.body = body;
    device.body_context = context;
    device.shared_bytes = shared_bytes;
    device.shared.resize(shared_bytes + GUARD_BYTES);
    gridDim = grid;
    blockDim = block;
    for (unsigned z = 0; z < grid.z; z++) {
        for (unsigned y = 0; y < grid.y; y++) {
            for (unsigned x = 0; x < grid.x; x++) {
                blockIdx = {x, y, z};
                if (shared_bytes > 0) {
                    std::memset(device.shared.data(), POISON, shared_bytes);
                    std::memset(device.shared.data() + shared_bytes, GUARD, GUARD_BYTES);
                }
                if (has_barriers) {
                    run_block_in_fibers(threads, block);
                } else {
                    for (unsigned number = 0; number < threads; number++) {
                        threadIdx = thread_of(number, block);
                        body(context);
                    }
                }
                for (size_t at = 0; shared_bytes > 0 && at < GUARD_BYTES; at++) {
                    require(device.shared[shared_bytes + at] == GUARD, "shared memory is written past its end");
                }
            }
        }
    }
}

} // namespace spk_shim

extern "C" const char *host_spk_names(void) { return spk_shim::names().c_str(); }
