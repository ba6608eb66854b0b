// SPDX-License-Identifier: Apache-2.0
#include "cli/signals.h"

#include <fmt/format.h>
#include <pthread.h>

#include <utility>

namespace cafetiere {

Result<SignalEffect> parse_signal_effect(const std::string& word) {
  if (word == "none") return SignalEffect::kNone;
  if (word == "snapshot") return SignalEffect::kSnapshot;
  if (word == "stop") return SignalEffect::kStop;
  return invalid_argument(
      fmt::format("Invalid signal effect \"{}\" was specified; use stop, snapshot or none", word));
}

SignalEffect stop_unless_ignored(int signal) {
  struct sigaction now {};
  const bool ignored = ::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
  return ignored ? SignalEffect::kNone : SignalEffect::kStop;
}

SignalWatcher::SignalWatcher(SignalEffect on_int, SignalEffect on_hup)
    : on_int_(on_int), on_hup_(on_hup) {
  ::sigemptyset(&signals_);
  ::sigaddset(&signals_, SIGINT);
  ::sigaddset(&signals_, SIGHUP);
  ::pthread_sigmask(SIG_BLOCK, &signals_, &before_);
}

SignalWatcher::~SignalWatcher() {
  if (thread_.joinable()) {
    done_ = true;
    ::pthread_kill(thread_.native_handle(), SIGHUP);  // ends its wait
    thread_.join();
  }
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void SignalWatcher::start(std::function<void(SignalEffect)> act) {
  act_ = std::move(act);
  thread_ = std::thread([this] {
    int signal = 0;
    while (::sigwait(&signals_, &signal) == 0 && !done_) act_(signal == SIGINT ? on_int_ : on_hup_);
  });
}

}  // namespace cafetiere
