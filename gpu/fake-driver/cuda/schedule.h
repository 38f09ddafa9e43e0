// When queued work runs. Three legal orders:
//   late    nothing runs before somebody waits for it, and then only what is needed for that;
//   eager   everything runs at once;
//   random  now and then a runnable item of some stream runs (a seed decides).
// A program that is right is right under all; one that forgot an event shows it under `late`.
#pragma once

#include "state.h"

namespace fake {

enum class Order { late, eager, random };

void set_order(Order order, uint64_t seed);

// Queues work behind what the stream has.
void enqueue(Stream* stream, std::function<bool()> run, Point after = {});

// Runs the stream's work up to a tick, and what that waits for. False if the device was lost on the way.
bool drain(Stream* stream, uint64_t tick);
bool drain_context(Context* context);

bool reached(const Point& point);

// Called at the start of every call of the API: where `random` makes its steps.
void progress();

double seconds_now();

} // namespace fake
