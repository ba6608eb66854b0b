// SPDX-License-Identifier: Apache-2.0
// ConsoleSink: the progress of a run for a person at a terminal or a log file.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

#include "core/observe/events.h"

namespace cafetiere {

/// How to write to a stream.
struct ConsoleStyle {
  bool rewrite = false;  ///< one progress line, rewritten in place, with a bar
  bool colour = false;
  int width = 80;           ///< columns; longer progress lines lose their last parts
  double interval_s = 5.0;  ///< least time between two progress lines (redraws when `rewrite`)
};

/// A rewritten, coloured line when `stream` is a terminal (colour unless NO_COLOR is set), plain
/// lines every few seconds otherwise.
ConsoleStyle console_style(std::FILE* stream);

/// Writes text at once. What the stream does not take, as its disk is full or its terminal gone, is
/// lost: that must not end a training.
void write_text(std::FILE* stream, std::string_view text);

/// The text of one progress line, without colour or line end.
std::string progress_line(const Progress& progress, const ConsoleStyle& style);

/// Prints progress, test results and messages. The stream belongs to the caller.
class ConsoleSink : public EventSink {
 public:
  ConsoleSink(std::FILE* stream, ConsoleStyle style) : stream_(stream), style_(style) {}
  ~ConsoleSink() override;
  ConsoleSink(const ConsoleSink&) = delete;
  ConsoleSink& operator=(const ConsoleSink&) = delete;

  void progress(const Progress& event) override;
  void test(const TestResult& event) override;
  void log(const LogMessage& event) override;

 private:
  void print_line(const std::string& line);

  std::FILE* stream_;
  ConsoleStyle style_;
  double last_ = -1;  // Progress::seconds of the last line written; < 0: none yet
  TestNames names_;
  std::string current_;  // the progress line that stands on the terminal, "" if none
};

}  // namespace cafetiere
