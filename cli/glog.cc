// SPDX-License-Identifier: Apache-2.0
#include "cli/glog.h"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>

namespace cafetiere {
namespace {

LogLevel least_level() {
  const char* least = std::getenv("GLOG_minloglevel");
  const int level = least ? std::atoi(least) : 0;
  return level <= 0 ? LogLevel::kInfo : level == 1 ? LogLevel::kWarning : LogLevel::kError;
}

}  // namespace

std::string glog_line(LogLevel level, std::string_view message) {
  timeval now{};
  ::gettimeofday(&now, nullptr);
  tm local{};
  ::localtime_r(&now.tv_sec, &local);
  return fmt::format("{}{:02}{:02} {:02}:{:02}:{:02}.{:06} {:5} cafetiere:0] {}",
                     "IWE"[severity(level)], local.tm_mon + 1, local.tm_mday, local.tm_hour,
                     local.tm_min, local.tm_sec, now.tv_usec, syscall(SYS_gettid), message);
}

/// Shows progress only: test results are told by log lines already.
class Glog::ProgressSink : public EventSink {
 public:
  explicit ProgressSink(Glog* log) : log_(log) {}
  void progress(const Progress& event) override {
    const std::lock_guard lock(log_->mutex_);
    log_->console_->progress(event);
  }

 private:
  Glog* log_;
};

Glog::Glog(std::FILE* stream) : stream_(stream), least_(least_level()) {
  const char* folder = std::getenv("GLOG_log_dir");
  if (folder && *folder) {
    file_ = open_log_file(folder);
    if (!file_) write(LogLevel::kWarning, fmt::format("cannot write a log file to {}", folder));
  }
  const ConsoleStyle style = console_style(stream);
  if (style.rewrite) console_ = std::make_unique<ConsoleSink>(stream, style);
}

Logger Glog::logger() {
  return Logger([this](LogLevel level, std::string_view message) { write(level, message); });
}

std::unique_ptr<EventSink> Glog::progress_sink() {
  return console_ ? std::make_unique<ProgressSink>(this) : nullptr;
}

void Glog::write(LogLevel level, std::string_view message) {
  if (level < least_) return;
  const std::string line = glog_line(level, message);
  const std::lock_guard lock(mutex_);
  if (file_) write_text(file_.get(), line + '\n');
  if (console_) {
    console_->log({LogLevel::kInfo, line});
  } else {
    write_text(stream_, line + '\n');
  }
}

}  // namespace cafetiere
