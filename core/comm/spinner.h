// SPDX-License-Identifier: Apache-2.0
// Spinner: how long to spin before sleeping.
#pragma once

#include <chrono>

namespace cafetiere {

/// A reply in transit arrives sooner than a sleeping thread wakes, so spin briefly. If spinning did
/// not pay recently, as on cores that are busy computing, it is tried only occasionally.
class Spinner {
 public:
  static constexpr auto kLimit = std::chrono::microseconds(20);

  /// Nothing has arrived: whether to continue spinning rather than sleep.
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

  /// Something has arrived.
  void hit() {
    if (spinning_) vain_ = 0;
    spinning_ = false;
  }

  /// The caller slept.
  void slept() { spinning_ = false; }

 private:
  static constexpr int kTrusted = 4;  // failed spins after which most are skipped
  static constexpr int kRetry = 16;   // one of this many is still tried

  bool spinning_ = false;
  std::chrono::steady_clock::time_point since_;
  int vain_ = 0;  // consecutive failed spins
};

}  // namespace cafetiere
