// Entry points: devices, contexts, memory.
#include "entry.h"

#include <algorithm>
#include <cstring>

namespace fake {
namespace {

thread_local Context* bound = nullptr;

Device* device_of(int handle) {
    auto& devices = state().devices;
    return handle >= 0 && static_cast<size_t>(handle) < devices.size() ? devices[handle].get() : nullptr;
}

bool known(Context* context) {
    for (const auto& device : state().devices) {
        if (context == &device->primary && device->retains > 0) return true;
    }
    return false;
}

// CUdevice_attribute, by number.
int attribute(const Device& device, int which) {
    switch (which) {
    case 1: return 1024;          // threads per block
    case 8: return 48 * 1024;     // shared memory per block
    case 10: return 32;           // warp size
    case 12: return 65536;        // registers per block
    case 13: return 1980000;      // clock, kHz
    case 16: return 4;            // multiprocessors
    case 33: return device.ordinal + 1; // PCI bus
    case 39: return 2048;         // threads per multiprocessor
    case 40: return 2;            // copy engines
    case 41: return 1;            // unified addressing
    case 75: return 9;            // compute capability, major
    case 76: return 0;            // and minor
    case 81: return 228 * 1024;   // shared memory per multiprocessor
    case 97: return 227 * 1024;   // shared memory per block after opting in
    case 115: return 0;           // memory pools
    default: return 0;
    }
}

} // namespace

Context* current_context() { return known(bound) ? bound : nullptr; }

} // namespace fake

using namespace fake;

EXPORT int cuInit(unsigned) {
    ENTER("cuInit");
    if (state().devices.empty()) return no_device;
    state().initialized = true;
    return success;
}

EXPORT int cuDriverGetVersion(int* version) {
    ENTER("cuDriverGetVersion");
    *version = state().version;
    return success;
}

EXPORT int cuDeviceGetCount(int* count) {
    ENTER("cuDeviceGetCount");
    *count = static_cast<int>(state().devices.size());
    return success;
}

EXPORT int cuDeviceGet(int* handle, int ordinal) {
    ENTER("cuDeviceGet");
    if (!device_of(ordinal)) return invalid_device;
    *handle = ordinal;
    return success;
}

EXPORT int cuDeviceGetName(char* name, int bytes, int handle) {
    ENTER("cuDeviceGetName");
    if (!device_of(handle) || bytes < 1) return invalid_device;
    const std::string text = "fake device " + std::to_string(handle);
    strncpy(name, text.c_str(), static_cast<size_t>(bytes) - 1);
    name[bytes - 1] = 0;
    return success;
}

EXPORT int cuDeviceGetUuid_v2(char* uuid, int handle) {
    ENTER("cuDeviceGetUuid_v2");
    if (!device_of(handle)) return invalid_device;
    memset(uuid, handle + 1, 16);
    return success;
}

EXPORT int cuDeviceGetAttribute(int* value, int which, int handle) {
    ENTER("cuDeviceGetAttribute");
    const Device* device = device_of(handle);
    if (!device) return invalid_device;
    *value = attribute(*device, which);
    return success;
}

EXPORT int cuDeviceTotalMem_v2(size_t* bytes, int handle) {
    ENTER("cuDeviceTotalMem_v2");
    const Device* device = device_of(handle);
    if (!device) return invalid_device;
    *bytes = device->memory_bytes;
    return success;
}

EXPORT int cuDeviceCanAccessPeer(int* can, int from, int to) {
    ENTER("cuDeviceCanAccessPeer");
    if (!device_of(from) || !device_of(to)) return invalid_device;
    *can = from != to && state().peers_of[{std::min(from, to), std::max(from, to)}] != Peers::none;
    return success;
}

// CUdevice_P2PAttribute, by number.
EXPORT int cuDeviceGetP2PAttribute(int* value, int which, int from, int to) {
    ENTER("cuDeviceGetP2PAttribute");
    if (!device_of(from) || !device_of(to) || from == to) return invalid_device;
    const Peers peers = state().peers_of[{std::min(from, to), std::max(from, to)}];
    switch (which) {
    case 2: *value = peers != Peers::none; break;       // access
    case 3: *value = peers == Peers::with_atomics; break; // atomic operations
    default: *value = 0;
    }
    return success;
}

EXPORT int cuCtxEnablePeerAccess(void* context, unsigned) {
    ENTER("cuCtxEnablePeerAccess");
    Context* from = current_context();
    if (!from || !known(static_cast<Context*>(context)) || from == context) return invalid_context;
    return from->device->peers.insert(static_cast<Context*>(context)->device).second ? success : peer_already_enabled;
}

EXPORT int cuDevicePrimaryCtxRetain(void** context, int handle) {
    ENTER("cuDevicePrimaryCtxRetain");
    if (!state().initialized) return not_initialized;
    Device* device = device_of(handle);
    if (!device) return invalid_device;
    device->retains++;
    *context = &device->primary;
    return success;
}

EXPORT int cuDevicePrimaryCtxRelease_v2(int handle) {
    ENTER_RELEASE("cuDevicePrimaryCtxRelease_v2");
    Device* device = device_of(handle);
    if (!device || device->retains == 0) return invalid_context;
    // The last release: queued work runs now, or is found to use freed memory.
    if (device->retains == 1) drain_context(&device->primary);
    if (--device->retains == 0) {
        device->peers.clear();
        device->lost = 0;
        // A lost context is gone; the next one is a new one.
        bool any = false;
        for (const auto& other : state().devices) any = any || other->retains > 0;
        if (!any) state().lost = 0;
    }
    return injected;
}

EXPORT int cuCtxSetCurrent(void* context) {
    ENTER("cuCtxSetCurrent");
    if (context && !known(static_cast<Context*>(context))) return invalid_context;
    bound = static_cast<Context*>(context);
    return success;
}

EXPORT int cuCtxGetCurrent(void** context) {
    ENTER("cuCtxGetCurrent");
    *context = current_context();
    return success;
}

EXPORT int cuCtxSetFlags(unsigned) {
    ENTER("cuCtxSetFlags");
    return current_context() ? success : invalid_context;
}

EXPORT int cuCtxGetStreamPriorityRange(int* least, int* greatest) {
    ENTER("cuCtxGetStreamPriorityRange");
    *least = 0;
    *greatest = -5;
    return success;
}

EXPORT int cuCtxSynchronize() {
    ENTER("cuCtxSynchronize");
    Context* context = current_context();
    if (!context) return invalid_context;
    return drain_context(context) ? success : state().lost;
}

EXPORT int cuMemGetInfo_v2(size_t* free_bytes, size_t* total_bytes) {
    ENTER("cuMemGetInfo_v2");
    const Context* context = current_context();
    if (!context) return invalid_context;
    *total_bytes = context->device->memory_bytes;
    *free_bytes = context->device->memory_bytes - context->device->used_bytes;
    return success;
}

EXPORT int cuMemAlloc_v2(uint64_t* pointer, size_t bytes) {
    ENTER("cuMemAlloc_v2");
    const Context* context = current_context();
    if (!context) return invalid_context;
    Region* region = nullptr;
    if (const int failed = allocate(context->device, bytes, 0, region)) return failed;
    *pointer = reinterpret_cast<uint64_t>(region->start);
    return success;
}

EXPORT int cuMemFree_v2(uint64_t pointer) {
    ENTER_RELEASE("cuMemFree_v2");
    const int released = pointer == 0 ? success : release(pointer, true);
    return injected ? injected : released;
}

EXPORT int cuMemAllocAsync(uint64_t* pointer, size_t bytes, void*) {
    ENTER("cuMemAllocAsync");
    const Context* context = current_context();
    if (!context) return invalid_context;
    Region* region = nullptr;
    if (const int failed = allocate(context->device, bytes, 0, region)) return failed;
    *pointer = reinterpret_cast<uint64_t>(region->start);
    return success;
}

EXPORT int cuMemFreeAsync(uint64_t pointer, void* handle) {
    ENTER_RELEASE("cuMemFreeAsync");
    Stream* stream = stream_of(handle);
    if (!stream) return invalid_handle;
    if (state().lost) return release(pointer, true), injected;
    enqueue(stream, [=] { return release(pointer, true) == success; });
    return injected;
}

EXPORT int cuMemHostAlloc(void** pointer, size_t bytes, unsigned flags) {
    ENTER("cuMemHostAlloc");
    if (!current_context()) return invalid_context;
    Region* region = nullptr;
    if (const int failed = allocate(nullptr, bytes, flags, region)) return failed;
    *pointer = region->start;
    return success;
}

EXPORT int cuMemHostGetFlags(unsigned* flags, void* pointer) {
    ENTER("cuMemHostGetFlags");
    const Region* region = region_of(reinterpret_cast<uintptr_t>(pointer), 1);
    if (!region || region->device) return invalid_value;
    *flags = region->flags;
    return success;
}

EXPORT int cuMemFreeHost(void* pointer) {
    ENTER_RELEASE("cuMemFreeHost");
    const int released = release(reinterpret_cast<uintptr_t>(pointer), false);
    return injected ? injected : released;
}

EXPORT int cuGetErrorName(int code, const char** name) {
    static thread_local std::string text;
    text = "code " + std::to_string(code);
    *name = text.c_str();
    return success;
}

EXPORT int cuGetErrorString(int code, const char** text) { return cuGetErrorName(code, text); }
