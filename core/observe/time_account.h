// SPDX-License-Identifier: Apache-2.0
// TimeAccount: what the time of a rank went to.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <string_view>

namespace cafetiere {

/// What a rank is doing.
enum class Activity {
  kComputing,  ///< forward, backward, sums and updates
  kData,       ///< waiting for batches
  kNetwork,    ///< waiting for other ranks
  kTesting,    ///< the test nets, with their waits
  kStoring,    ///< checkpoints and the model
  kStarting,   ///< all before the first step
};
constexpr size_t kActivities = 6;

/// As the account calls it: "computing", "data", "network", "testing", "storing", "starting".
std::string_view name_of(Activity activity);

/// Time by activity. There is always exactly one activity, so the seconds add up to those since the
/// account was made. For one thread at a time. A change costs a reading of the clock.
class TimeAccount {
 public:
  using Clock = std::chrono::steady_clock;
  using Seconds = std::array<double, kActivities>;  ///< by Activity

  /// Begins now.
  TimeAccount() : since_(Clock::now()) {}

  /// From now on this is what is being done.
  void change(Activity activity) {
    const Clock::time_point now = Clock::now();
    spent_[size_t(activity_)] += now - since_;
    since_ = now;
    std::atomic_ref(activity_).store(activity, std::memory_order_relaxed);
  }
  /// What is being done. Any thread.
  Activity activity() const { return std::atomic_ref(activity_).load(std::memory_order_relaxed); }

  /// An activity until the end of the scope, then the one before it again.
  class Span {
   public:
    /// `account` may be null.
    Span(TimeAccount* account, Activity activity)
        : account_(account), before_(account ? account->activity_ : activity) {
      if (account_) account_->change(activity);
    }
    ~Span() {
      if (account_) account_->change(before_);
    }
    Span(const Span&) = delete;
    Span& operator=(const Span&) = delete;

   private:
    TimeAccount* const account_;
    const Activity before_;
  };

  /// Up to now.
  Seconds seconds() const;

 private:
  mutable Activity activity_ = Activity::kStarting;  // atomic_ref wants it mutable
  Clock::time_point since_;
  std::array<Clock::duration, kActivities> spent_{};
};

}  // namespace cafetiere
