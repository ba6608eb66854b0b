// SPDX-License-Identifier: Apache-2.0
// Spinner: how long to look again before sleeping.
#pragma once

#include <chrono>

namespace cafetiere {

/// An answer that is on its way comes sooner than a sleeper wakes, so look for it a little while.
/// Where looking brought nothing lately, as on cores that are busy computing, it is tried once in a
/// while only.
class Spinner {
 public:
  static constexpr auto kLimit = std::chrono::microseconds(20);

  /// Nothing has come: whether to look again rather than sleep.
  bool again() {
    const auto now = std::chrono::steady_clock::now();
    if (!spinning_) {
      spinning_ = true;
      since_ = now;
      ++vain_;
    }
    const bool hopeful = vain_ <= kTrusted || vain_ % kRetry == 0;
    return hopeful && now - since_ < kLimit;
  }

  /// Something has come.
  void hit() {
    if (spinning_) vain_ = 0;
    spinning_ = false;
  }

  /// The caller slept.
  void slept() { spinning_ = false; }

 private:
  static constexpr int kTrusted = 4;  // spins in vain after which most are left out
  static constexpr int kRetry = 16;   // of which one is made

  bool spinning_ = false;
  std::chrono::steady_clock::time_point since_;
  int vain_ = 0;  // spins in a row that brought nothing
};

}  // namespace cafetiere
