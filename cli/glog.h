// SPDX-License-Identifier: Apache-2.0
// Log lines in the form that Caffe's scripts parse, on the standard error stream.
#pragma once

#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "cli/log_file.h"
#include "core/base/log.h"
#include "core/observe/console.h"

namespace cafetiere {

/// "Immdd hh:mm:ss.uuuuuu tid cafetiere:0] message": glog's classic prefix. Its file and line have
/// nothing to say here, but parsers count on the column.
std::string glog_line(LogLevel level, std::string_view message);

/// Writes log lines to a stream; on a terminal a progress line stays below them. As glog does, obeys
/// the environment: GLOG_minloglevel, and GLOG_log_dir for a file beside the stream. Safe to use
/// from several threads.
class Glog {
 public:
  explicit Glog(std::FILE* stream);
  Glog(const Glog&) = delete;
  Glog& operator=(const Glog&) = delete;

  /// A logger that writes here. This object must outlive it.
  Logger logger();
  /// A sink that shows progress on a terminal; null where there is none, as the lines say it all.
  std::unique_ptr<EventSink> progress_sink();

 private:
  class ProgressSink;
  void write(LogLevel level, std::string_view message);

  std::FILE* stream_;
  LogLevel least_;
  LogFile file_;  // where GLOG_log_dir names a folder
  std::mutex mutex_;
  std::unique_ptr<ConsoleSink> console_;  // on a terminal
};

}  // namespace cafetiere
