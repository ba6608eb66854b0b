// SPDX-License-Identifier: Apache-2.0
// JsonlSink: the events of a run as a file of JSON lines.
#pragma once

#include <memory>
#include <string>

#include "core/observe/event_file.h"
#include "core/observe/events.h"

namespace cafetiere {

/// Appends one JSON object a line and flushes it, so that a reader can follow and a killed run
/// leaves whole lines. A resumed run goes on in the same file, from the end of its last whole line.
class JsonlSink : public EventSink {
 public:
  static Result<std::unique_ptr<JsonlSink>> open(const std::string& path, Logger log = {});

  void progress(const Progress& event) override { write(event); }
  void test(const TestResult& event) override { write(event); }
  void log(const LogMessage& event) override { write(event); }
  void account(const Account& event) override { write(event); }
  void explained(const Explained& event) override { write(event); }
  void keys(const KeysTrained& event) override { write(event); }

 private:
  explicit JsonlSink(EventFile file) : file_(std::move(file)) {}
  void write(const Event& event);

  EventFile file_;
};

}  // namespace cafetiere
