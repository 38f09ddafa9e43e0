#include "schedule.h"

#include <chrono>

namespace fake {
namespace {

Order order = Order::late;
uint64_t random_state = 1;

uint64_t draw() { // xorshift64*
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return random_state * 0x2545F4914F6CDD1DULL;
}

// All streams that may have work.
std::vector<Stream*> all_streams() {
    std::vector<Stream*> streams;
    for (auto& entry : state().default_streams) streams.push_back(entry.second.get());
    for (auto& entry : state().streams) streams.push_back(entry.second.get());
    for (auto& stream : state().ended) streams.push_back(stream.get());
    return streams;
}

bool run_head(Stream* stream) {
    Work work = std::move(stream->queue.front());
    stream->queue.pop_front();
    stream->done++;
    if (work.run && !work.run()) {
        lose(illegal_address);
        return false;
    }
    return true;
}

} // namespace

void set_order(Order new_order, uint64_t seed) {
    order = new_order;
    random_state = seed * 2 + 1;
}

bool reached(const Point& point) { return !point.stream || point.stream->done >= point.tick; }

void enqueue(Stream* stream, std::function<bool()> run, Point after) {
    stream->queue.push_back(Work{std::move(run), after});
    stream->issued++;
    if (order == Order::eager) drain(stream, stream->issued);
}

bool drain(Stream* stream, uint64_t tick) {
    // Events point backwards in the order of calls, so streams cannot wait for each other in a circle.
    while (stream->done < tick) {
        if (state().lost || stream->queue.empty()) return false;
        const Point after = stream->queue.front().after;
        if (!reached(after) && !drain(after.stream, after.tick)) return false;
        if (!run_head(stream)) return false;
    }
    return state().lost == 0;
}

bool drain_context(Context* context) {
    for (Stream* stream : all_streams()) {
        if (stream->context == context && !drain(stream, stream->issued)) return false;
    }
    return state().lost == 0;
}

void progress() {
    if (order != Order::random || state().lost) return;
    const std::vector<Stream*> streams = all_streams();
    if (streams.empty()) return;
    for (uint64_t steps = draw() % 4; steps > 0 && !state().lost; steps--) {
        Stream* stream = streams[draw() % streams.size()];
        if (!stream->queue.empty() && reached(stream->queue.front().after)) run_head(stream);
    }
}

double seconds_now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

} // namespace fake
