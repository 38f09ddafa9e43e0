// Regions: allocation, release, and the check whether a range lies in one.
#include "state.h"

#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

namespace fake {
namespace {

// The alignment of the real driver's allocations, and the unit in which device memory is counted.
constexpr size_t alignment_bytes = 256;
// Fills the bytes behind an allocation, up to the guard page; the release finds any write to them.
constexpr unsigned char canary = 0xC5;
// Fills memory that is not written yet.
constexpr unsigned char garbage = 0xA5;
// Freed maps that stay inaccessible.
constexpr size_t quarantined_max = 4096;

size_t round_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

} // namespace

int allocate(Device* device, size_t bytes, unsigned flags, Region*& out) {
    if (bytes == 0) return invalid_value;
    if (bytes > (size_t{1} << 46)) return out_of_memory;
    const size_t counted_bytes = round_up(bytes, alignment_bytes);
    if (device && device->used_bytes + counted_bytes > device->memory_bytes) return out_of_memory;
    const size_t page_bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t body_bytes = round_up(counted_bytes, page_bytes);
    void* map = mmap(nullptr, body_bytes + page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) return out_of_memory;
    auto* base = static_cast<unsigned char*>(map);
    mprotect(base + body_bytes, page_bytes, PROT_NONE);
    unsigned char* start = base + body_bytes - counted_bytes;
    if (!device) start = base; // host memory is aligned to pages
    memset(start, garbage, bytes);
    memset(start + bytes, canary, counted_bytes - bytes);
    if (device) {
        device->used_bytes += counted_bytes;
        if (device->used_bytes > device->peak_bytes) device->peak_bytes = device->used_bytes;
    }
    const auto key = reinterpret_cast<uintptr_t>(start);
    out = &(state().regions[key] = Region{start, bytes, base, body_bytes + page_bytes, device, flags, 0, 0});
    return success;
}

int release(uintptr_t start, bool on_device) {
    State& s = state();
    const auto found = s.regions.find(start);
    if (found == s.regions.end() || (found->second.device != nullptr) != on_device) {
        violation("freed memory that is not allocated, or is of another kind");
        return invalid_value;
    }
    const Region region = found->second;
    if (region.read_by_device + region.written_by_device > 0) violation("freed page-locked memory under a queued copy");
    if (!region.device) mprotect(region.map, round_up(region.bytes, alignment_bytes), PROT_READ | PROT_WRITE);
    const size_t counted_bytes = round_up(region.bytes, alignment_bytes);
    for (size_t at = region.bytes; at < counted_bytes; at++) {
        if (region.start[at] != canary) {
            violation("a write behind the end of an allocation of " + std::to_string(region.bytes) + " bytes");
            break;
        }
    }
    if (region.device) region.device->used_bytes -= counted_bytes;
    s.regions.erase(found);
    // The pages are freed, and the addresses stay reserved: a later access faults.
    mmap(region.map, region.map_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
    s.quarantine.push_back(region);
    if (s.quarantine.size() > quarantined_max) free_all_quarantined();
    return success;
}

void free_all_quarantined() {
    for (const Region& region : state().quarantine) munmap(region.map, region.map_bytes);
    state().quarantine.clear();
}

void guard(uintptr_t at, bool device_writes, bool begins) {
    if (!state().guarding) return;
    auto after = state().regions.upper_bound(at);
    if (after == state().regions.begin()) return;
    Region& region = std::prev(after)->second;
    if (region.device || at >= reinterpret_cast<uintptr_t>(region.start) + region.bytes) return;
    unsigned& copies = device_writes ? region.written_by_device : region.read_by_device;
    if (!begins && copies == 0) return;
    copies = begins ? copies + 1 : copies - 1;
    const int allowed = region.written_by_device ? PROT_NONE : region.read_by_device ? PROT_READ : PROT_READ | PROT_WRITE;
    mprotect(region.map, round_up(region.bytes, alignment_bytes), allowed);
}

const Region* region_of(uintptr_t at, size_t bytes) {
    auto after = state().regions.upper_bound(at);
    if (after == state().regions.begin()) return nullptr;
    const Region& region = std::prev(after)->second;
    const size_t offset = at - reinterpret_cast<uintptr_t>(region.start);
    return offset <= region.bytes && bytes <= region.bytes - offset ? &region : nullptr;
}

bool live(uintptr_t at, size_t bytes, const char* what) {
    if (region_of(at, bytes)) return true;
    violation(std::string(what) + ": " + std::to_string(bytes) + " bytes that are freed or past the end by the time it runs");
    return false;
}

} // namespace fake
