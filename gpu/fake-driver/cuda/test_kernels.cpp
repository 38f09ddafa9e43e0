// Two test kernels of the fake driver, in the form in which a host build exports kernels: one function each,
// which runs the whole grid on the calling thread.
#include <cstddef>
#include <cstdint>

extern "C" {

// values[i] = values[i] * factor + i + first, for i < count
void host_spk_test_scale(unsigned gx, unsigned, unsigned, unsigned bx, unsigned, unsigned, size_t, void** args) {
    auto* values = *static_cast<uint64_t**>(args[0]);
    const uint64_t count = *static_cast<uint64_t*>(args[1]);
    const uint64_t factor = *static_cast<uint64_t*>(args[2]);
    const uint64_t first = *static_cast<uint64_t*>(args[3]);
    const uint64_t threads = uint64_t{gx} * bx;
    for (uint64_t i = 0; i < count && i < threads; i++) values[i] = values[i] * factor + i + first;
}

// total[0] += sum of (position + 1) * values[position - first], so that both order and content count
void host_spk_test_accumulate(unsigned gx, unsigned, unsigned, unsigned bx, unsigned, unsigned, size_t, void** args) {
    auto* total = *static_cast<uint64_t**>(args[0]);
    const auto* values = *static_cast<const uint64_t**>(args[1]);
    const uint64_t count = *static_cast<uint64_t*>(args[2]);
    const uint64_t first = *static_cast<uint64_t*>(args[3]);
    const uint64_t threads = uint64_t{gx} * bx;
    for (uint64_t i = 0; i < count && i < threads; i++) total[0] += values[i] * (first + i + 1);
}
}
