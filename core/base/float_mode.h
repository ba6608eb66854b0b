// SPDX-License-Identifier: Apache-2.0
// FloatMode: how a thread computes with floats.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace cafetiere {

/// Values below the least normal number.
enum class Denormals { kKept, kZero };

/// During its lifetime the thread rounds to nearest and treats denormals as given, whatever it did before:
/// a thread takes these settings from its creator, and a library in the host's process may have changed
/// them.
class FloatMode {
 public:
  explicit FloatMode(Denormals denormals) : before_(read()) {
    write(denormals == Denormals::kKept ? kDefault : kDefault | kFlush);
  }
  ~FloatMode() { write(before_); }
  FloatMode(const FloatMode&) = delete;
  FloatMode& operator=(const FloatMode&) = delete;

 private:
#if defined(__x86_64__)
  using Bits = unsigned;
  static constexpr Bits kDefault = 0x1f80;  // no exceptions
  static constexpr Bits kFlush = 0x8040;    // results and operands
  static Bits read() { return _mm_getcsr(); }
  static void write(Bits bits) { _mm_setcsr(bits); }
#elif defined(__aarch64__)
  using Bits = uint64_t;
  static constexpr Bits kDefault = 0, kFlush = 1u << 24;
  static Bits read() {
    Bits bits = 0;
    asm volatile("mrs %0, fpcr" : "=r"(bits));
    return bits;
  }
  static void write(Bits bits) { asm volatile("msr fpcr, %0" : : "r"(bits) : "memory"); }
#endif

  const Bits before_;
};

}  // namespace cafetiere
