// Control for tests: settings from the environment, failures on demand, counts of objects, the list of
// violations.
#include "entry.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace fake {
namespace {

uint64_t number(const char* name, uint64_t otherwise) {
    const char* text = getenv(name);
    return text ? strtoull(text, nullptr, 10) : otherwise;
}

void read_order() {
    const char* text = getenv("FAKE_CUDA_ORDER");
    if (!text || !strcmp(text, "late")) set_order(Order::late, 0);
    else if (!strcmp(text, "eager")) set_order(Order::eager, 0);
    else if (!strncmp(text, "random:", 7)) set_order(Order::random, strtoull(text + 7, nullptr, 10));
}

bool is_final(const std::string& text) { return text.size() > 5 && text.compare(text.size() - 5, 5, ":lost") == 0; }

// FAKE_CUDA_FAIL_ON=<device>:<n>:<code>[:lost]
void read_failure_of_one(State& s) {
    const char* text = getenv("FAKE_CUDA_FAIL_ON");
    if (!text) return;
    const std::string all(text);
    const size_t first = all.find(':'), second = all.find(':', first + 1);
    const size_t ordinal = strtoull(text, nullptr, 10);
    if (first == std::string::npos || second == std::string::npos || ordinal >= s.devices.size()) return;
    Device& device = *s.devices[ordinal];
    device.fail_at = strtoull(all.c_str() + first + 1, nullptr, 10);
    device.fail_code = atoi(all.c_str() + second + 1);
    device.fail_is_final = is_final(all);
}

// FAKE_CUDA_PEERS=<from>-<to>:<none or atomics>[,..]
void read_peers(State& s) {
    const char* text = getenv("FAKE_CUDA_PEERS");
    int from = 0, to = 0, read = 0;
    for (; text && sscanf(text, "%d-%d:%n", &from, &to, &read) == 2; text = strchr(text, ',') ? strchr(text, ',') + 1 : nullptr) {
        const bool is_none = !strncmp(text + read, "none", 4);
        s.peers_of[{from, to}] = is_none ? Peers::none : Peers::with_atomics;
    }
}

// FAKE_CUDA_FAIL=<call, kernel or any>:<n>:<code>[:lost]
void read_failure(State& s) {
    const char* text = getenv("FAKE_CUDA_FAIL");
    if (!text) return;
    const std::string all(text);
    const size_t first = all.find(':'), second = all.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) return;
    s.fail_name = all.substr(0, first) == "any" ? "" : all.substr(0, first);
    s.fail_at = strtoull(all.c_str() + first + 1, nullptr, 10);
    s.fail_code = atoi(all.c_str() + second + 1);
    s.fail_is_final = is_final(all);
}

void make_devices(State& s, uint64_t count, uint64_t memory_bytes) {
    s.devices.clear();
    for (uint64_t i = 0; i < count; i++) {
        auto device = std::make_unique<Device>();
        device->ordinal = static_cast<int>(i);
        device->memory_bytes = memory_bytes;
        device->primary.device = device.get();
        s.devices.push_back(std::move(device));
    }
}

} // namespace

State& state() {
    // Never destroyed: threads of the program may outlive static objects.
    static State* made = [] {
        auto* s = new State;
        make_devices(*s, number("FAKE_CUDA_DEVICES", 1), number("FAKE_CUDA_MEMORY_BYTES", 64 << 20));
        s->version = static_cast<int>(number("FAKE_CUDA_VERSION", 13000));
        read_peers(*s);
        read_failure(*s);
        read_failure_of_one(*s);
        read_order();
        return s;
    }();
    return *made;
}

void violation(const std::string& what) { state().violations.push_back(what); }

void lose(int code) {
    State& s = state();
    s.lost = code;
    // No copy is in flight any more.
    for (auto& entry : s.regions) {
        Region& region = entry.second;
        while (region.read_by_device > 0) guard(entry.first, false, false);
        while (region.written_by_device > 0) guard(entry.first, true, false);
    }
    const auto clear = [](Stream& stream) { stream.queue.clear(); };
    for (auto& entry : s.default_streams) clear(*entry.second);
    for (auto& entry : s.streams) clear(*entry.second);
    for (auto& stream : s.ended) clear(*stream);
}

void lose_one(Device& device, int code) {
    State& s = state();
    device.lost = code;
    const auto clear = [&](Stream& stream) {
        if (stream.context->device != &device) return;
        stream.queue.clear();
        // Streams of other devices that wait for it continue with whatever data there is.
        stream.done = stream.issued;
    };
    for (auto& entry : s.default_streams) clear(*entry.second);
    for (auto& entry : s.streams) clear(*entry.second);
    for (auto& stream : s.ended) clear(*stream);
}

// The answer of the device of the current context; a thread may always switch to another device.
static int enter_device(const char* name) {
    Context* context = current_context();
    if (!context || !strncmp(name, "cuCtxSetCurrent", 15) || !strncmp(name, "cuCtxGetCurrent", 15) || !strncmp(name, "cuDevice", 8)) return 0;
    Device& device = *context->device;
    device.calls++;
    if (device.lost) return device.lost;
    if (device.fail_at == 0 || device.calls != device.fail_at) return 0;
    state().failures++;
    if (device.fail_is_final) lose_one(device, device.fail_code);
    return device.fail_code;
}

// The answer of the injected failure, if this is its call.
static int injected(const char* name) {
    State& s = state();
    const uint64_t of_this_name = ++s.calls_by_name[name];
    const uint64_t index = s.fail_name.empty() ? s.calls : of_this_name;
    if (s.fail_at == 0 || index != s.fail_at || (!s.fail_name.empty() && s.fail_name != name)) return 0;
    s.failures++;
    if (s.fail_is_final) lose(s.fail_code);
    return s.fail_code;
}

int enter_kernel(const std::string& name) { return state().fail_name == name ? injected(name.c_str()) : 0; }

int enter(const char* name) {
    State& s = state();
    s.calls++;
    if (s.lost) return s.lost;
    if (const int answer = injected(name)) return answer;
    if (const int answer = enter_device(name)) return answer;
    progress();
    return s.lost;
}

} // namespace fake

using fake::state;

// Resets all state: devices of this size, no objects, no injected failure.
EXPORT void fake_cuda_reset(uint64_t devices, uint64_t memory_bytes) {
    std::lock_guard<std::recursive_mutex> guard(state().lock);
    fake::State& s = state();
    for (auto& entry : s.regions) s.quarantine.push_back(entry.second);
    s.regions.clear();
    fake::free_all_quarantined();
    s.streams.clear();
    s.ended.clear();
    s.default_streams.clear();
    s.events.clear();
    s.functions.clear();
    s.modules.clear();
    s.violations.clear();
    s.calls = 0;
    s.calls_by_name.clear();
    s.fail_at = 0;
    s.failures = 0;
    s.lost = 0;
    s.peers_of.clear();
    fake::make_devices(s, devices, memory_bytes);
}

// How two devices reach each other's memory, by the number of `Peers`.
EXPORT void fake_cuda_peers(int from, int to, int how) {
    std::lock_guard<std::recursive_mutex> guard(state().lock);
    state().peers_of[{from < to ? from : to, from < to ? to : from}] = static_cast<fake::Peers>(how);
}

// The n-th call from now of this name, or launch of a kernel of this name (null: any call) returns `code`; if `is_final`, all later calls, too.
EXPORT void fake_cuda_fail(const char* name, uint64_t nth, int code, int is_final) {
    std::lock_guard<std::recursive_mutex> guard(state().lock);
    fake::State& s = state();
    s.fail_name = name ? name : "";
    s.fail_at = nth == 0 ? 0 : nth + (name ? s.calls_by_name[name] : s.calls);
    s.fail_code = code;
    s.fail_is_final = is_final != 0;
    s.failures = 0;
}

// The n-th call from now while the context of this device is current returns `code`; if `is_final`, this
// device is lost, and no other.
EXPORT void fake_cuda_fail_on(int ordinal, uint64_t nth, int code, int is_final) {
    std::lock_guard<std::recursive_mutex> guard(state().lock);
    auto& devices = state().devices;
    if (ordinal < 0 || static_cast<size_t>(ordinal) >= devices.size()) return;
    fake::Device& device = *devices[ordinal];
    device.fail_at = nth == 0 ? 0 : nth + device.calls;
    device.fail_code = code;
    device.fail_is_final = is_final != 0;
}

// Calls while this device's context was current.
EXPORT uint64_t fake_cuda_calls_on(int ordinal) {
    std::lock_guard<std::recursive_mutex> guard(state().lock);
    const auto& devices = state().devices;
    return ordinal >= 0 && static_cast<size_t>(ordinal) < devices.size() ? devices[ordinal]->calls : 0;
}

// 0: late, 1: eager, 2: random.
EXPORT void fake_cuda_order(int order, uint64_t seed) {
    std::lock_guard<std::recursive_mutex> guard(state().lock);
    fake::set_order(static_cast<fake::Order>(order), seed);
}

// Whether page-locked memory is closed to the host while a copy of it is queued.
EXPORT void fake_cuda_guard(int guarding) {
    std::lock_guard<std::recursive_mutex> guard(state().lock);
    state().guarding = guarding != 0;
}

EXPORT uint64_t fake_cuda_calls(const char* name) {
    std::lock_guard<std::recursive_mutex> guard(state().lock);
    return name ? state().calls_by_name[name] : state().calls;
}

// How often the injected failure has happened.
EXPORT uint64_t fake_cuda_failures() {
    std::lock_guard<std::recursive_mutex> guard(state().lock);
    return state().failures;
}

EXPORT uint64_t fake_cuda_live(const char* kind) {
    std::lock_guard<std::recursive_mutex> guard(state().lock);
    const fake::State& s = state();
    const std::string what(kind);
    uint64_t count = 0;
    if (what == "device memory" || what == "pinned memory") {
        for (const auto& entry : s.regions) count += (entry.second.device != nullptr) == (what == "device memory");
    } else if (what == "contexts") {
        for (const auto& device : s.devices) count += static_cast<uint64_t>(device->retains);
    } else if (what == "streams") count = s.streams.size();
    else if (what == "events") count = s.events.size();
    else if (what == "modules") count = s.modules.size();
    else count = ~uint64_t{0};
    return count;
}

// The most device memory that was allocated at one time.
EXPORT uint64_t fake_cuda_peak_bytes(int ordinal) {
    std::lock_guard<std::recursive_mutex> guard(state().lock);
    const auto& devices = state().devices;
    return ordinal >= 0 && static_cast<size_t>(ordinal) < devices.size() ? devices[ordinal]->peak_bytes : 0;
}

// The violation of this number, or null.
EXPORT const char* fake_cuda_violation(uint64_t index) {
    std::lock_guard<std::recursive_mutex> guard(state().lock);
    return index < state().violations.size() ? state().violations[index].c_str() : nullptr;
}
