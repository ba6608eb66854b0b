// SPDX-License-Identifier: Apache-2.0
// Trace: what ran when on which thread, as a timeline for chrome://tracing or Perfetto.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/base/status.h"

namespace cafetiere {

/// Spans of time of one process, in Chrome's trace event format. Any thread may add; what is beyond
/// kMaxSpans is counted and left out.
class Trace {
 public:
  static constexpr size_t kMaxSpans = 200'000;

  /// `process`: a number that tells this process from others in a merged timeline (the rank).
  explicit Trace(int process) : process_(process), start_(Clock::now()) {}
  /// Where that is known later; before write().
  void set_process(int process) { process_ = process; }

  /// One span on a row of the timeline, from its making to its end.
  class Span {
   public:
    /// `row` names the row, `format` and `args` the span. `trace` may be null: then nothing is kept
    /// and nothing formatted.
    template <class... Args>
    Span(Trace* trace, const char* row, fmt::format_string<Args...> format, Args&&... args)
        : trace_(trace), row_(row) {
      if (!trace_) return;
      name_ = fmt::format(format, std::forward<Args>(args)...);
      start_ = Clock::now();
    }
    ~Span() {
      if (trace_) trace_->add(row_, std::move(name_), start_, Clock::now());
    }
    Span(const Span&) = delete;
    Span& operator=(const Span&) = delete;

   private:
    Trace* const trace_;
    const char* const row_;
    std::string name_;
    std::chrono::steady_clock::time_point start_;
  };

  /// The timeline as JSON.
  std::string to_json() const;
  /// Writes it to a file.
  Status write(const std::string& path) const;

 private:
  using Clock = std::chrono::steady_clock;
  void add(const char* row, std::string name, Clock::time_point start, Clock::time_point end);

  struct Entry {
    const char* row;
    std::string name;
    double start_us, length_us;
  };
  int process_;
  const Clock::time_point start_;
  mutable std::mutex mutex_;
  std::vector<Entry> entries_;  // guarded by mutex_
  int64_t left_out_ = 0;        // guarded by mutex_
};

}  // namespace cafetiere
