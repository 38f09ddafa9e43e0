// Entry points: streams, events, copies, modules, launches. All asynchronous work is queued; schedule.h says
// when it runs.
#include "entry.h"

#include <cstring>
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

namespace fake {
namespace {

// Polls of an unfinished event before it makes progress on its own, as a real event eventually does.
constexpr unsigned polls_until_progress = 3;
// The bytes of parameters that a launch copies: the parameters are variables of the caller, which may be gone
// when the kernel runs. Only a compiler knows their number and sizes, so the launch copies as many bytes as a
// kernel may have and as are readable.
constexpr size_t parameters_max = 32;
constexpr size_t parameter_bytes_max = 4096;

bool pinned(const void* start, size_t bytes) {
    const Region* region = region_of(reinterpret_cast<uintptr_t>(start), bytes);
    return region && !region->device;
}

// Queues a copy between two ranges; both must still be allocated when it runs.
void enqueue_copy(Stream* stream, uintptr_t to, uintptr_t from, size_t bytes, const char* what) {
    guard(to, true, true);
    guard(from, false, true);
    enqueue(stream, [=] {
        guard(to, true, false);
        guard(from, false, false);
        if (!live(to, bytes, what) || !live(from, bytes, what)) return false;
        memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
        return true;
    });
}

bool on_device(uint64_t start, size_t bytes) {
    const Region* region = region_of(start, bytes);
    return region && region->device;
}

// Reads memory that may be unmapped: returns the bytes copied, or 0.
size_t read_if_mapped(const void* from, void* to, size_t bytes) {
    static const int scratch = memfd_create("fake-cuda-parameters", 0);
    if (scratch < 0) {
        violation("no memfd: the parameters of kernels cannot be copied");
        return 0;
    }
    const ssize_t written = pwrite(scratch, from, bytes, 0);
    if (written <= 0) return 0;
    const ssize_t got = pread(scratch, to, static_cast<size_t>(written), 0);
    return got > 0 ? static_cast<size_t>(got) : 0;
}

struct Parameters {
    std::vector<std::vector<unsigned char>> values;

    explicit Parameters(void** pointers) {
        for (size_t i = 0; pointers && i < parameters_max; i++) {
            void* pointer = nullptr;
            if (read_if_mapped(pointers + i, &pointer, sizeof pointer) != sizeof pointer) break;
            std::vector<unsigned char> value(parameter_bytes_max);
            // Behind the last parameter there are arbitrary bytes, mostly no pointer.
            if (read_if_mapped(pointer, value.data(), value.size()) == 0) break;
            values.push_back(std::move(value));
        }
    }

    std::vector<void*> pointers() {
        std::vector<void*> all;
        for (auto& value : values) all.push_back(value.data());
        return all;
    }
};

} // namespace

Stream* stream_of(void* handle) {
    State& s = state();
    if (handle) {
        const auto found = s.streams.find(static_cast<Stream*>(handle));
        return found == s.streams.end() ? nullptr : found->second.get();
    }
    Context* context = current_context();
    if (!context) return nullptr;
    auto& stream = s.default_streams[context];
    if (!stream) {
        stream = std::make_unique<Stream>();
        stream->context = context;
    }
    return stream.get();
}

static Event* event_of(void* handle) {
    const auto found = state().events.find(static_cast<Event*>(handle));
    return found == state().events.end() ? nullptr : found->second.get();
}

} // namespace fake

using namespace fake;

EXPORT int cuStreamCreate(void** handle, unsigned) {
    ENTER("cuStreamCreate");
    Context* context = current_context();
    if (!context) return invalid_context;
    auto stream = std::make_unique<Stream>();
    stream->context = context;
    *handle = stream.get();
    state().streams[stream.get()] = std::move(stream);
    return success;
}

EXPORT int cuStreamCreateWithPriority(void** handle, unsigned flags, int) { return cuStreamCreate(handle, flags); }

EXPORT int cuStreamDestroy_v2(void* handle) {
    ENTER_RELEASE("cuStreamDestroy_v2");
    const auto found = state().streams.find(static_cast<Stream*>(handle));
    if (found == state().streams.end()) return invalid_handle;
    state().ended.push_back(std::move(found->second));
    state().streams.erase(found);
    return injected;
}

EXPORT int cuStreamSynchronize(void* handle) {
    ENTER("cuStreamSynchronize");
    Stream* stream = stream_of(handle);
    if (!stream) return invalid_handle;
    return drain(stream, stream->issued) ? success : state().lost;
}

EXPORT int cuStreamQuery(void* handle) {
    ENTER("cuStreamQuery");
    Stream* stream = stream_of(handle);
    if (!stream) return invalid_handle;
    return stream->queue.empty() ? success : not_ready;
}

EXPORT int cuStreamWaitEvent(void* handle, void* event_handle, unsigned) {
    ENTER("cuStreamWaitEvent");
    Stream* stream = stream_of(handle);
    const Event* event = event_of(event_handle);
    if (!stream || !event) return invalid_handle;
    if (event->point.stream && event->point.stream != stream) enqueue(stream, nullptr, event->point);
    return success;
}

EXPORT int cuEventCreate(void** handle, unsigned flags) {
    ENTER("cuEventCreate");
    Context* context = current_context();
    if (!context) return invalid_context;
    auto event = std::make_unique<Event>();
    event->context = context;
    event->timed = (flags & 2) == 0;
    *handle = event.get();
    state().events[event.get()] = std::move(event);
    return success;
}

EXPORT int cuEventDestroy_v2(void* handle) {
    ENTER_RELEASE("cuEventDestroy_v2");
    return state().events.erase(static_cast<Event*>(handle)) == 0 ? static_cast<int>(invalid_handle) : injected;
}

EXPORT int cuEventRecord(void* handle, void* stream_handle) {
    ENTER("cuEventRecord");
    Event* event = event_of(handle);
    Stream* stream = stream_of(stream_handle);
    if (!event || !stream || event->context != stream->context) return invalid_handle;
    auto seconds = std::make_shared<double>(-1.0);
    event->seconds = seconds;
    event->point = Point{stream, stream->issued + 1};
    event->queries = 0;
    enqueue(stream, [=] {
        *seconds = seconds_now();
        return true;
    });
    return success;
}

EXPORT int cuEventQuery(void* handle) {
    ENTER("cuEventQuery");
    Event* event = event_of(handle);
    if (!event) return invalid_handle;
    if (!reached(event->point) && ++event->queries > polls_until_progress) drain(event->point.stream, event->point.tick);
    if (state().lost) return state().lost;
    return reached(event->point) ? success : not_ready;
}

EXPORT int cuEventSynchronize(void* handle) {
    ENTER("cuEventSynchronize");
    const Event* event = event_of(handle);
    if (!event) return invalid_handle;
    if (reached(event->point)) return success;
    return drain(event->point.stream, event->point.tick) ? success : state().lost;
}

EXPORT int cuEventElapsedTime(float* milliseconds, void* start_handle, void* end_handle) {
    ENTER("cuEventElapsedTime");
    const Event* start = event_of(start_handle);
    const Event* end = event_of(end_handle);
    if (!start || !end || !start->timed || !end->timed || !start->seconds || !end->seconds) return invalid_handle;
    if (*start->seconds < 0 || *end->seconds < 0) return not_ready;
    *milliseconds = static_cast<float>((*end->seconds - *start->seconds) * 1e3);
    return success;
}

EXPORT int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes, void* handle) {
    ENTER("cuMemcpyHtoDAsync_v2");
    Stream* stream = stream_of(handle);
    if (!stream) return invalid_handle;
    if (!on_device(to, bytes)) return invalid_value;
    if (pinned(from, bytes)) {
        enqueue_copy(stream, to, reinterpret_cast<uintptr_t>(from), bytes, "copy to the device");
        return success;
    }
    // Pageable memory is staged before the call returns.
    const auto* start = static_cast<const unsigned char*>(from);
    auto staged = std::make_shared<std::vector<unsigned char>>(start, start + bytes);
    enqueue(stream, [=] {
        if (!live(to, bytes, "copy to the device")) return false;
        memcpy(reinterpret_cast<void*>(to), staged->data(), bytes);
        return true;
    });
    return success;
}

EXPORT int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t bytes, void* handle) {
    ENTER("cuMemcpyDtoHAsync_v2");
    Stream* stream = stream_of(handle);
    if (!stream) return invalid_handle;
    if (!on_device(from, bytes)) return invalid_value;
    if (pinned(to, bytes)) {
        enqueue_copy(stream, reinterpret_cast<uintptr_t>(to), from, bytes, "copy to the host");
        return success;
    }
    // A copy to pageable memory is done when the call returns.
    if (!drain(stream, stream->issued)) return state().lost;
    memcpy(to, reinterpret_cast<const void*>(from), bytes);
    return success;
}

EXPORT int cuMemcpyHtoD_v2(uint64_t to, const void* from, size_t bytes) {
    ENTER("cuMemcpyHtoD_v2");
    if (!on_device(to, bytes)) return invalid_value;
    memcpy(reinterpret_cast<void*>(to), from, bytes);
    return success;
}

EXPORT int cuMemcpyDtoH_v2(void* to, uint64_t from, size_t bytes) {
    ENTER("cuMemcpyDtoH_v2");
    if (!on_device(from, bytes)) return invalid_value;
    memcpy(to, reinterpret_cast<const void*>(from), bytes);
    return success;
}

EXPORT int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void* handle) {
    ENTER("cuMemcpyDtoDAsync_v2");
    Stream* stream = stream_of(handle);
    if (!stream) return invalid_handle;
    if (!on_device(to, bytes) || !on_device(from, bytes)) return invalid_value;
    enqueue_copy(stream, to, from, bytes, "copy on the device");
    return success;
}

EXPORT int cuMemcpyPeerAsync(uint64_t to, void* to_context, uint64_t from, void* from_context, size_t bytes, void* handle) {
    ENTER("cuMemcpyPeerAsync");
    Stream* stream = stream_of(handle);
    if (!stream) return invalid_handle;
    if (!on_device(to, bytes) || !on_device(from, bytes)) return invalid_value;
    if (region_of(to, bytes)->device != static_cast<Context*>(to_context)->device) return invalid_value;
    if (region_of(from, bytes)->device != static_cast<Context*>(from_context)->device) return invalid_value;
    enqueue_copy(stream, to, from, bytes, "copy between devices");
    return success;
}

EXPORT int cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, void* handle) {
    ENTER("cuMemsetD8Async");
    Stream* stream = stream_of(handle);
    if (!stream) return invalid_handle;
    if (!on_device(to, bytes)) return invalid_value;
    enqueue(stream, [=] {
        if (!live(to, bytes, "fill")) return false;
        memset(reinterpret_cast<void*>(to), value, bytes);
        return true;
    });
    return success;
}

// An image is the text `spillproof-host-module:<path>`, with the path of a shared library of kernels that
// were compiled for the host.
EXPORT int cuModuleLoadData(void** handle, const void* image) {
    ENTER("cuModuleLoadData");
    Context* context = current_context();
    if (!context) return invalid_context;
    static const char prefix[] = "spillproof-host-module:";
    const char* text = static_cast<const char*>(image);
    if (strncmp(text, prefix, sizeof prefix - 1) != 0) return invalid_image;
    std::string path(text + sizeof prefix - 1);
    while (!path.empty() && (path.back() == '\n' || path.back() == ' ')) path.pop_back();
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        violation(std::string("a module of the host: ") + dlerror());
        return shared_object_init_failed;
    }
    auto module = std::make_unique<Module>(Module{context, library});
    *handle = module.get();
    state().modules[module.get()] = std::move(module);
    return success;
}

// The library stays loaded, since queued work may use its code.
EXPORT int cuModuleUnload(void* handle) {
    ENTER_RELEASE("cuModuleUnload");
    return state().modules.erase(static_cast<Module*>(handle)) == 0 ? static_cast<int>(invalid_handle) : injected;
}

EXPORT int cuModuleGetFunction(void** handle, void* module_handle, const char* name) {
    ENTER("cuModuleGetFunction");
    const auto module = state().modules.find(static_cast<Module*>(module_handle));
    if (module == state().modules.end()) return invalid_handle;
    void* symbol = dlsym(module->second->library, ("host_" + std::string(name)).c_str());
    if (!symbol) return not_found;
    auto function = std::make_unique<Function>();
    function->module = module->second.get();
    function->name = name;
    function->run = reinterpret_cast<decltype(function->run)>(symbol);
    *handle = function.get();
    state().functions[function.get()] = std::move(function);
    return success;
}

EXPORT int cuFuncGetAttribute(int* value, int which, void*) {
    ENTER("cuFuncGetAttribute");
    *value = which == 0 ? 1024 : which == 4 ? 64 : 0; // threads per block, registers
    return success;
}

EXPORT int cuFuncSetAttribute(void* handle, int which, int value) {
    ENTER("cuFuncSetAttribute");
    const auto function = state().functions.find(static_cast<Function*>(handle));
    if (function == state().functions.end()) return invalid_handle;
    constexpr int dynamic_shared_bytes_max = 8;
    if (which == dynamic_shared_bytes_max) {
        if (value < 0 || value > 227 * 1024) return invalid_value;
        function->second->shared_bytes_max = static_cast<size_t>(value);
    }
    return success;
}

EXPORT int cuLaunchKernel(void* handle, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                          unsigned shared_bytes, void* stream_handle, void** parameters, void**) {
    ENTER("cuLaunchKernel");
    const auto function = state().functions.find(static_cast<Function*>(handle));
    Stream* stream = stream_of(stream_handle);
    if (function == state().functions.end() || !stream) return invalid_handle;
    if (state().modules.count(function->second->module) == 0) return invalid_handle;
    const bool grid_fits = gx && gy && gz && gx <= 0x7FFFFFFF && gy <= 65535 && gz <= 65535;
    const bool block_fits = bx && by && bz && bx <= 1024 && by <= 1024 && bz <= 64 && uint64_t{bx} * by * bz <= 1024;
    if (!grid_fits || !block_fits || shared_bytes > function->second->shared_bytes_max) return invalid_value;
    if (const int injected = enter_kernel(function->second->name)) return injected == lie ? success : injected;
    const auto run = function->second->run;
    auto copied = std::make_shared<Parameters>(parameters);
    enqueue(stream, [=] {
        std::vector<void*> pointers = copied->pointers();
        run(gx, gy, gz, bx, by, bz, shared_bytes, pointers.data());
        return true;
    });
    return success;
}
