// SPDX-License-Identifier: Apache-2.0
// Machine: two processors with store buffers that take turns at every access to shared memory, in
// whatever order the explorer says.
#pragma once

#include <setjmp.h>
#include <ucontext.h>

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace cafetiere::test {

/// Runs two programs step by step. A step goes from one shared access to the next, and each access
/// happens when its program is resumed. A store waits in its processor's buffer, in order, until it
/// is flushed, as on x86 (TSO): its own processor sees it at once, the other one not before.
class Machine {
 public:
  enum class Action { kRun0, kRun1, kFlush0, kFlush1 };

  explicit Machine(std::array<std::function<void()>, 2> programs);
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  /// The machine whose program is running now; null outside of programs.
  static Machine* current();

  // For the programs.
  uint64_t load(const void* at, uint64_t (*read)(const void*));
  void store(void* at, uint64_t value, void (*write)(void*, uint64_t));
  /// All stores of this processor before it are visible, and the caller goes on alone.
  void drain();
  /// Plain bytes are about to be accessed; those that are read count as seen.
  void access(const void* bytes, size_t count);
  /// What the running program does from now on may depend on `value`.
  void see(uint64_t value);
  /// All that the running program has seen shows in `digest`, a hash of its own memory.
  void forget(uint64_t digest) { sides_[running_].seen = digest; }
  /// Blocks until `fd` is readable.
  void sleep(int fd);
  /// Ends the exploration: the protocol is wrong.
  void fail(std::string why);

  // For the explorer.
  std::vector<Action> enabled() const;
  void perform(Action action);
  bool finished() const { return sides_[0].finished && sides_[1].finished; }
  const std::string& failure() const { return failure_; }
  /// What the programs have seen and what their buffers hold: with the memory, all that their future
  /// depends on.
  uint64_t state() const;
  int sleeps() const { return sleeps_; }

 private:
  struct Store {
    void* at;
    uint64_t value;
    void (*write)(void*, uint64_t);
  };
  struct Side {
    ucontext_t start;
    jmp_buf at;
    bool started = false;
    std::function<void()> program;
    std::deque<Store> buffer;
    uint64_t seen = 0;
    int sleeps_on = -1;
    bool finished = false;
  };

  static void enter();
  void yield();
  static void flush(Side* side);

  std::array<Side, 2> sides_;
  jmp_buf explorer_;
  int running_ = -1;
  int sleeps_ = 0;
  std::string failure_;
};

/// One run of a scenario, at its beginning.
class Run {
 public:
  virtual ~Run() = default;
  virtual Machine& machine() = 0;
  /// A hash of the memory that the two programs share.
  virtual uint64_t memory() const = 0;
};

struct Explored {
  size_t states = 0, runs = 0, longest = 0;  ///< `longest`: steps of a run
  int most_sleeps = 0;                       ///< in one run
  std::string failure;  ///< of the first wrong run, with its steps; empty if there is none
};

/// Takes every step that is possible in every state that can be reached. Programs see nothing but
/// what they tell the machine of, so two runs that agree in that and in the memory go on alike and
/// only one of them is followed.
Explored explore(const std::function<std::unique_ptr<Run>()>& make);

uint64_t mix(uint64_t hash, uint64_t value);
uint64_t hash_bytes(const void* bytes, size_t count);

}  // namespace cafetiere::test
