// SPDX-License-Identifier: Apache-2.0
// What SIGINT and SIGHUP do to a training.
#pragma once

#include <signal.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "core/base/status.h"

namespace cafetiere {

enum class SignalEffect { kNone, kSnapshot, kStop };

/// That a signal stops the program, unless whoever started it had the signal ignored, as nohup and
/// shells in the background do.
SignalEffect stop_unless_ignored(int signal);

/// "none", "snapshot" or "stop".
Result<SignalEffect> parse_signal_effect(const std::string& word);

/// Blocks both signals for this thread and those it starts later, and hands them to a thread of its
/// own, which may do more than a signal handler may. Create it before any other thread.
class SignalWatcher {
 public:
  SignalWatcher(SignalEffect on_int, SignalEffect on_hup);
  /// Both signals act as before again.
  ~SignalWatcher();
  SignalWatcher(const SignalWatcher&) = delete;
  SignalWatcher& operator=(const SignalWatcher&) = delete;

  /// Calls `act` with the effect of each signal, also of one that came earlier. Call once.
  void start(std::function<void(SignalEffect)> act);

 private:
  SignalEffect on_int_, on_hup_;
  sigset_t signals_, before_;
  std::function<void(SignalEffect)> act_;
  std::atomic<bool> done_{false};
  std::thread thread_;
};

}  // namespace cafetiere
