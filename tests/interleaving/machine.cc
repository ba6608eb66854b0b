// SPDX-License-Identifier: Apache-2.0
#include "tests/interleaving/machine.h"

#include <poll.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <unordered_set>

namespace cafetiere::test {
namespace {

constexpr size_t kStackBytes = 64 << 10;

alignas(64) char stacks[2][kStackBytes];

Machine* machine_running = nullptr;

/// Memory for what is allocated in a run: by each program, and before they start. It is the same in
/// every run that comes to the same state, so pointers in it compare and hash alike.
struct Arena {
  alignas(64) std::byte bytes[32 << 10];
  size_t used;
};
Arena arenas[3];
Arena* arena = nullptr;  // null: the explorer's own memory

void* allocate(size_t bytes) {
  if (!arena) return std::malloc(bytes);
  std::byte* const at = arena->bytes + arena->used;
  arena->used += (bytes + 63) / 64 * 64;
  if (arena->used > sizeof arena->bytes) std::abort();
  return at;
}

void release(void* at) {
  const auto* byte = static_cast<std::byte*>(at);
  const auto* first = reinterpret_cast<std::byte*>(arenas);
  if (byte < first || byte >= first + sizeof arenas) std::free(at);
}

std::unique_ptr<Run> make_in_arena(const std::function<std::unique_ptr<Run>()>& make) {
  for (Arena& a : arenas) {
    std::memset(a.bytes, 0, a.used);
    a.used = 0;
  }
  arena = &arenas[2];
  auto run = make();
  arena = nullptr;
  return run;
}

}  // namespace

uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15;
  return hash ^ (hash >> 29);
}

uint64_t hash_bytes(const void* bytes, size_t count) {
  uint64_t hash = count;
  for (size_t i = 0; i < count; i += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, static_cast<const char*>(bytes) + i, std::min(sizeof word, count - i));
    hash = mix(hash, word);
  }
  return hash;
}

Machine::Machine(std::array<std::function<void()>, 2> programs) {
  for (int i = 0; i < 2; ++i) {
    Side& side = sides_[i];
    side.program = std::move(programs[i]);
    getcontext(&side.start);
    side.start.uc_stack.ss_sp = stacks[i];
    side.start.uc_stack.ss_size = kStackBytes;
    side.start.uc_link = nullptr;
    makecontext(&side.start, &Machine::enter, 0);
  }
}

Machine* Machine::current() {
  return machine_running && machine_running->running_ >= 0 ? machine_running : nullptr;
}

void Machine::enter() {
  Machine& m = *machine_running;
  Side& side = m.sides_[m.running_];
  side.program();
  side.finished = true;
  m.yield();  // for good
}

/// Back to the explorer. A run that is not followed to its end leaves its stacks as they are.
void Machine::yield() {
  if (_setjmp(sides_[running_].at) == 0) _longjmp(explorer_, 1);
}

void Machine::see(uint64_t value) {
  uint64_t& seen = sides_[running_].seen;
  seen = mix(seen, value + 1);
}

uint64_t Machine::load(const void* at, uint64_t (*read)(const void*)) {
  yield();
  const auto& buffer = sides_[running_].buffer;
  const auto own = std::find_if(buffer.rbegin(), buffer.rend(),
                                [&](const Store& store) { return store.at == at; });
  const uint64_t value = own == buffer.rend() ? read(at) : own->value;
  see(value);
  return value;
}

void Machine::store(void* at, uint64_t value, void (*write)(void*, uint64_t)) {
  yield();
  sides_[running_].buffer.push_back({at, value, write});
}

void Machine::drain() {
  yield();
  while (!sides_[running_].buffer.empty()) flush(&sides_[running_]);
}

void Machine::access(const void* bytes, size_t count) {
  yield();
  if (bytes) see(hash_bytes(bytes, count));
}

void Machine::sleep(int fd) {
  ++sleeps_;
  sides_[running_].sleeps_on = fd;
  yield();
  sides_[running_].sleeps_on = -1;
}

void Machine::fail(std::string why) {
  if (failure_.empty()) failure_ = std::move(why);
}

void Machine::flush(Side* side) {
  const Store store = side->buffer.front();
  side->buffer.pop_front();
  store.write(store.at, store.value);
}

std::vector<Machine::Action> Machine::enabled() const {
  std::vector<Action> actions;
  for (int i = 0; i < 2; ++i) {
    const Side& side = sides_[i];
    pollfd p{side.sleeps_on, POLLIN, 0};
    const bool awake = side.sleeps_on < 0 || poll(&p, 1, 0) == 1;
    if (!side.finished && awake) actions.push_back(i == 0 ? Action::kRun0 : Action::kRun1);
    if (!side.buffer.empty()) actions.push_back(i == 0 ? Action::kFlush0 : Action::kFlush1);
  }
  return actions;
}

void Machine::perform(Action action) {
  if (action == Action::kFlush0 || action == Action::kFlush1) {
    flush(&sides_[action == Action::kFlush1]);
    return;
  }
  running_ = action == Action::kRun1;
  see(0);  // that it got further
  machine_running = this;
  Side& side = sides_[running_];
  arena = &arenas[running_];
  if (_setjmp(explorer_) == 0) {
    if (side.started) _longjmp(side.at, 1);
    side.started = true;
    setcontext(&side.start);
  }
  running_ = -1;
  arena = nullptr;
}

uint64_t Machine::state() const {
  uint64_t hash = 0;
  for (const Side& side : sides_) {
    hash = mix(hash, side.seen);
    hash = mix(hash, uint64_t(side.finished) + 2 * uint64_t(side.sleeps_on >= 0));
    for (const Store& store : side.buffer) {
      hash = mix(mix(hash, store.value), reinterpret_cast<uintptr_t>(store.at) % 4096);
    }
    hash = mix(hash, side.buffer.size());
  }
  return hash;
}

namespace {

/// The steps of a run, the last ones in full: "0 runs, 0 flushes, 1 runs, ...".
std::string describe(const std::vector<Machine::Action>& actions) {
  std::string text;
  for (const Machine::Action action : actions) {
    const int i = static_cast<int>(action);
    text += (text.empty() ? "" : " ") + std::string(i < 2 ? "r" : "f") + (i % 2 ? "1" : "0");
  }
  return text;
}

struct Choice {
  size_t taken, of;
};

/// One run along `path`, and on by first choices; empty or why it is wrong.
std::string follow(Run* run, std::vector<Choice>* path, std::unordered_set<uint64_t>* known,
                   Explored* explored) {
  Machine& machine = run->machine();
  std::vector<Machine::Action> done;
  for (size_t depth = 0;; ++depth) {
    const auto actions = machine.enabled();
    if (actions.empty()) {
      explored->longest = std::max(explored->longest, depth);
      if (machine.finished()) return {};
      return "both sides sleep, or one does and the other has finished: " + describe(done);
    }
    if (depth == path->size()) {
      if (!known->insert(mix(machine.state(), run->memory())).second) return {};
      path->push_back({0, actions.size()});
    }
    done.push_back(actions[(*path)[depth].taken]);
    machine.perform(done.back());
    explored->most_sleeps = std::max(explored->most_sleeps, machine.sleeps());
    if (!machine.failure().empty()) return machine.failure() + ": " + describe(done);
  }
}

}  // namespace

Explored explore(const std::function<std::unique_ptr<Run>()>& make) {
  Explored explored;
  std::unordered_set<uint64_t> known;
  std::vector<Choice> path;
  do {
    ++explored.runs;
    const std::unique_ptr<Run> run = make_in_arena(make);
    explored.failure = follow(run.get(), &path, &known, &explored);
    while (!path.empty() && path.back().taken + 1 == path.back().of) path.pop_back();
    if (!path.empty()) ++path.back().taken;
  } while (!path.empty() && explored.failure.empty());
  explored.states = known.size();
  return explored;
}

}  // namespace cafetiere::test

void* operator new(size_t bytes) { return cafetiere::test::allocate(bytes); }
void operator delete(void* at) noexcept { cafetiere::test::release(at); }
void operator delete(void* at, size_t) noexcept { cafetiere::test::release(at); }
