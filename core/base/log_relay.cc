// SPDX-License-Identifier: Apache-2.0
#include "core/base/log_relay.h"

namespace cafetiere {

Logger LogRelay::logger() {
  return Logger([this](LogLevel level, std::string_view message) { take(level, message); });
}

void LogRelay::listen(Logger::Sink sink) {
  const std::lock_guard lock(mutex_);
  sink_ = std::move(sink);
  if (!sink_) return;
  for (const auto& [level, message] : kept_) sink_(level, message);
  kept_.clear();
}

bool LogRelay::is_heard() const {
  const std::lock_guard lock(mutex_);
  return bool(sink_);
}

void LogRelay::take(LogLevel level, std::string_view message) {
  const std::lock_guard lock(mutex_);
  if (sink_) return sink_(level, message);
  if (kept_.size() == kKept) kept_.pop_front();
  kept_.emplace_back(level, message);
}

}  // namespace cafetiere
