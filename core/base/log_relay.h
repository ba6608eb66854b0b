// SPDX-License-Identifier: Apache-2.0
// LogRelay: the messages of an object that is made before anybody can listen to it.
#pragma once

#include <cstddef>
#include <deque>
#include <mutex>
#include <string>
#include <utility>

#include "core/base/log.h"

namespace cafetiere {

/// Keeps the newest messages until somebody listens, who gets them first. One message at a time,
/// from any thread; the listener must not call back into this object. It outlives its loggers.
class LogRelay {
 public:
  static constexpr size_t kKept = 1000;

  Logger logger();
  /// Without a sink messages are kept again.
  void listen(Logger::Sink sink);
  bool is_heard() const;

 private:
  void take(LogLevel level, std::string_view message);

  mutable std::mutex mutex_;
  Logger::Sink sink_;
  std::deque<std::pair<LogLevel, std::string>> kept_;
};

}  // namespace cafetiere
