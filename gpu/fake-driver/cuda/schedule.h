// When queued work runs. Three legal orders:
//   late    work runs when a call waits for it, and no more than that call needs;
//   eager   everything runs at once;
//   random  at random times a runnable item of a random stream runs (by a seed).
// A program that is right is right under all; one that forgot an event shows it under `late`.
#pragma once

#include "state.h"

namespace fake {

enum class Order { late, eager, random };

void set_order(Order order, uint64_t seed);

// Appends work to the queue of the stream.
void enqueue(Stream* stream, std::function<bool()> run, Point after = {});

// Runs the work of the stream up to a tick, and all work that it waits for. False if the device is lost
// meanwhile.
bool drain(Stream* stream, uint64_t tick);
bool drain_context(Context* context);

bool reached(const Point& point);

// Called at the start of every call of the API: here `random` makes progress.
void progress();

double seconds_now();

} // namespace fake
