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

  void other(const Event& event) override { file_.append(to_json(event) + "\n"); }

 private:
  explicit JsonlSink(EventFile file) : file_(std::move(file)) {}

  EventFile file_;
};

}  // namespace cafetiere
