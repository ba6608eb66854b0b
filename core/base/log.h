// SPDX-License-Identifier: Apache-2.0
// Logger: where the library's messages go. Passed down by the caller; there is no global logger.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace cafetiere {

/// A notice is an info that also reaches those who read no log: it becomes an event of the run.
enum class LogLevel { kInfo, kNotice, kWarning, kError };

/// As interfaces count them, where a notice is an info: 0 info, 1 warning, 2 error.
constexpr int severity(LogLevel level) {
  return level < LogLevel::kWarning ? 0 : int(level) - int(LogLevel::kWarning) + 1;
}

/// Forwards messages to one sink. Copies share the sink. Safe to call from several threads when
/// the sink is.
class Logger {
 public:
  using Sink = std::function<void(LogLevel, std::string_view)>;

  Logger() = default;  ///< drops every message
  explicit Logger(Sink sink) : sink_(std::move(sink)) {}

  void write(LogLevel level, std::string_view message) const {
    if (sink_) sink_(level, message);
  }
  template <class... Args>
  void info(fmt::format_string<Args...> format, Args&&... args) const {
    write(LogLevel::kInfo, fmt::format(format, std::forward<Args>(args)...));
  }
  template <class... Args>
  void notice(fmt::format_string<Args...> format, Args&&... args) const {
    write(LogLevel::kNotice, fmt::format(format, std::forward<Args>(args)...));
  }
  template <class... Args>
  void warning(fmt::format_string<Args...> format, Args&&... args) const {
    write(LogLevel::kWarning, fmt::format(format, std::forward<Args>(args)...));
  }
  template <class... Args>
  void error(fmt::format_string<Args...> format, Args&&... args) const {
    write(LogLevel::kError, fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  Sink sink_;
};

}  // namespace cafetiere
