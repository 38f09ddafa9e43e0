// The head of every entry point: the lock, the count of calls, the injected failure, a lost device.
#pragma once

#include "schedule.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

// For calls that do nothing if they fail, or if they are to lie about it.
#define ENTER(name)                                                  \
    std::lock_guard<std::recursive_mutex> guard(fake::state().lock); \
    if (const int injected = fake::enter(name)) return injected == fake::lie ? 0 : injected

// For calls that release something: what they release is gone, whatever they answer.
#define ENTER_RELEASE(name)                                          \
    std::lock_guard<std::recursive_mutex> guard(fake::state().lock); \
    const int injected = fake::enter(name)

namespace fake {

// In place of a failure's code: the call does nothing, and answers that all is well.
constexpr int lie = -1;

int enter(const char* name);
Context* current_context();
Stream* stream_of(void* handle);

} // namespace fake
