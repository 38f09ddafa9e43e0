// The state of the fake driver: devices, memory, streams, events, modules, and violations.
//
// Device memory is host memory on maps of its own, with a guard page behind it: a kernel (host code) that
// runs over the end or uses freed memory is killed at once. Streams are queues, which move only when a call
// needs it (see schedule.h). One lock guards all state; any thread may call the library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace fake {

// The results of the driver API that this library returns (numbers: CUDA driver API reference, CUresult).
enum Result : int {
    success = 0,
    invalid_value = 1,
    out_of_memory = 2,
    not_initialized = 3,
    no_device = 100,
    invalid_device = 101,
    invalid_image = 200,
    invalid_context = 201,
    shared_object_init_failed = 303,
    invalid_handle = 400,
    not_found = 500,
    not_ready = 600,
    illegal_address = 700,
    peer_already_enabled = 704,
    launch_failed = 719,
};

struct Device;

struct Context {
    Device* device;
};

struct Device {
    int ordinal;
    uint64_t memory_bytes;
    uint64_t used_bytes = 0;
    uint64_t peak_bytes = 0;
    int retains = 0;
    std::set<Device*> peers; // whose memory copies reach directly
    // Calls while its context is current; which of them fails, as in `State`.
    uint64_t calls = 0;
    uint64_t fail_at = 0;
    int fail_code = 0;
    bool fail_is_final = false;
    int lost = 0;
    Context primary;
};

// A map with the allocation at its end and a guard page behind it. Freed maps stay inaccessible for a while.
struct Region {
    unsigned char* start;
    size_t bytes;
    unsigned char* map;
    size_t map_bytes;
    Device* device; // null: page-locked host memory
    unsigned flags;
    // Copies under way, for page-locked memory. While there are some, the pages are closed to the host, see
    // `guard`.
    unsigned read_by_device = 0;
    unsigned written_by_device = 0;
};

struct Stream;

// A point in a stream's work: everything up to the `tick`-th item.
struct Point {
    Stream* stream = nullptr;
    uint64_t tick = 0;
};

struct Work {
    std::function<bool()> run; // false: the device faults
    Point after;               // waits for this first
};

struct Stream {
    Context* context;
    std::deque<Work> queue;
    uint64_t issued = 0;
    uint64_t done = 0;
    bool draining = false;
};

struct Event {
    Context* context;
    bool timed;
    Point point;
    std::shared_ptr<double> seconds; // of the latest record; negative until it has run
    unsigned queries = 0;
};

struct Module {
    Context* context;
    void* library;
};

struct Function {
    Module* module;
    std::string name;
    void (*run)(unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, size_t, void**);
    size_t shared_bytes_max = 48 * 1024;
};

// How two devices reach each other's memory: unless a test says otherwise, directly.
enum class Peers { directly, none, with_atomics };

struct State {
    std::recursive_mutex lock;
    bool initialized = false;
    int version = 13000;
    std::vector<std::unique_ptr<Device>> devices;
    std::map<std::pair<int, int>, Peers> peers_of; // the lower number first
    std::map<uintptr_t, Region> regions; // by start
    std::vector<Region> quarantine;
    std::map<Stream*, std::unique_ptr<Stream>> streams;
    std::vector<std::unique_ptr<Stream>> ended; // destroyed with work in them, or still named by an event
    std::map<Context*, std::unique_ptr<Stream>> default_streams;
    std::map<Event*, std::unique_ptr<Event>> events;
    std::map<Module*, std::unique_ptr<Module>> modules;
    std::map<Function*, std::unique_ptr<Function>> functions;
    std::vector<std::string> violations;
    bool guarding = false;

    // Calls so far, all and by name; which one fails.
    uint64_t calls = 0;
    std::map<std::string, uint64_t> calls_by_name;
    std::string fail_name; // empty: any
    uint64_t fail_at = 0;  // counted from 1; 0: never
    int fail_code = 0;
    bool fail_is_final = false;
    uint64_t failures = 0;
    int lost = 0; // what a lost device answers to everything
};

State& state();

// Records misuse that a real driver need not detect.
void violation(const std::string& what);

// Loses the device: queued work never runs, and every later call returns `code`.
void lose(int code);
// The same for one of several devices; calls on the others succeed.
void lose_one(Device& device, int code);

// memory.cpp
int allocate(Device* device, size_t bytes, unsigned flags, Region*& out);
int release(uintptr_t start, bool on_device);
const Region* region_of(uintptr_t at, size_t bytes);
bool live(uintptr_t at, size_t bytes, const char* what);
void free_all_quarantined();
// Closes page-locked memory to the host while a copy of it is queued: to writers, and if the device writes,
// to readers too. An access then kills the process at that instruction. Whole allocations only; with `begins`
// false the copy is about to run.
void guard(uintptr_t at, bool device_writes, bool begins);

} // namespace fake
