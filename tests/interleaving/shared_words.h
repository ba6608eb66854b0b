// SPDX-License-Identifier: Apache-2.0
// The words of core/comm/shm_protocol.h for the interleaving test: each access is a step of the
// machine, and a ring or a message is so small that few steps fill it.
#pragma once

#include <atomic>
#include <cstdint>

#include "tests/interleaving/machine.h"

namespace cafetiere {

template <class T>
class SharedWord {
 public:
  T load(std::memory_order) const {
    test::Machine* m = test::Machine::current();
    return m ? static_cast<T>(m->load(&value_, &read)) : value_;
  }
  void store(T value, std::memory_order order) {
    test::Machine* m = test::Machine::current();
    if (!m) {
      value_ = value;
      return;
    }
    m->store(&value_, value, &write);
    if (order == std::memory_order_seq_cst) m->drain();
  }
  T exchange(T value) {
    if (test::Machine* m = test::Machine::current()) m->drain();
    const T before = value_;
    value_ = value;
    if (test::Machine* m = test::Machine::current()) m->see(before);
    return before;
  }

 private:
  static uint64_t read(const void* at) { return *static_cast<const T*>(at); }
  static void write(void* at, uint64_t value) { *static_cast<T*>(at) = static_cast<T>(value); }

  T value_{};
};

inline void shared_fence(std::memory_order order) {
  test::Machine* m = test::Machine::current();
  if (m && order == std::memory_order_seq_cst) m->drain();
}

inline void shared_access(const void* bytes = nullptr, size_t count = 0) {
  if (test::Machine* m = test::Machine::current()) m->access(bytes, count);
}

inline constexpr size_t kRingBytes = 16;
inline constexpr size_t kRingChunk = 16;
inline constexpr size_t kLoanSlots = 1;
inline constexpr size_t kShortestLoan = 32;
inline constexpr size_t kLoanChunk = 32;

}  // namespace cafetiere
