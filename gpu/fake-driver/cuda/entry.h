// The head of every entry point: the lock, the count of calls, the injected failure, a lost device.
#pragma once

#include "schedule.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

// For calls that do nothing if an injected failure hits them.
#define ENTER(name)                                                  \
    std::lock_guard<std::recursive_mutex> guard(fake::state().lock); \
    if (const int injected = fake::enter(name)) return injected == fake::lie ? 0 : injected

// For calls that release an object: it is released even if the call reports a failure.
#define ENTER_RELEASE(name)                                          \
    std::lock_guard<std::recursive_mutex> guard(fake::state().lock); \
    const int injected = fake::enter(name)

namespace fake {

// In place of an error code: the call does nothing and reports success.
constexpr int lie = -1;

int enter(const char* name);
// Before a launch of this kernel.
int enter_kernel(const std::string& name);
Context* current_context();
Stream* stream_of(void* handle);

} // namespace fake
