// SPDX-License-Identifier: Apache-2.0
// EventFile: a file that grows while a run goes on.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/log.h"
#include "core/base/status.h"

namespace cafetiere {

/// Written through at each append, so that a reader can follow. An event is not worth the end of a
/// run: what cannot be written is told to the log, once, and the run goes on without it.
class EventFile {
 public:
  /// `mode` is fopen()'s; `what` names the file in messages.
  static Result<EventFile> open(std::string path, const char* mode, const char* what, Logger log);

  void append(std::string_view bytes);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  EventFile(std::FILE* file, std::string path, const char* what, Logger log)
      : file_(file), path_(std::move(path)), what_(what), log_(std::move(log)) {}

  std::unique_ptr<std::FILE, Close> file_;
  std::string path_;
  const char* what_;
  Logger log_;
  bool failed_ = false;
};

}  // namespace cafetiere
