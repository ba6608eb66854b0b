// SPDX-License-Identifier: Apache-2.0
#include "core/observe/console.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>
#include <vector>

#include "core/observe/grouped.h"

namespace cafetiere {
namespace {

constexpr const char* kClearLine = "\r\x1b[K";
constexpr double kRedrawInterval = 0.1;
constexpr int kBarWidth = 24;

double share_done(const Progress& p) {
  if (p.max_iter <= 0) return 0;
  return std::clamp(static_cast<double>(p.step) / static_cast<double>(p.max_iter), 0.0, 1.0);
}

/// 3725 -> "1:02:05", 65 -> "1:05".
std::string clock_text(double seconds) {
  const auto s = static_cast<int64_t>(std::ceil(seconds));
  if (s >= 3600) return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
  return fmt::format("{}:{:02}", s / 60, s % 60);
}

/// A bar of ASCII characters, so that its width is its length in any locale.
std::string bar(double share) {
  const int full = static_cast<int>(std::floor(share * kBarWidth));
  std::string text(kBarWidth, ' ');
  std::fill_n(text.begin(), full, '=');
  if (full < kBarWidth) text[full] = '>';
  return "[" + text + "]";
}

std::string outputs_text(const NamedValues& outputs) {
  std::string text;
  for (const auto& [name, value] : outputs) text += fmt::format("  {} {:.4g}", name, value);
  return text;
}

/// The parts of a progress line, the most wanted first.
std::vector<std::string> line_parts(const Progress& p, bool with_bar) {
  const double share = share_done(p);
  std::vector<std::string> parts;
  parts.push_back(with_bar ? fmt::format("{} {:3.0f}%", bar(share), std::floor(share * 100))
                           : fmt::format("{:3.0f}%", std::floor(share * 100)));
  parts.push_back(fmt::format("step {}/{}", p.step, p.max_iter));
  const std::string loss = fmt::format("loss {:.4g}", p.loss);
  parts.push_back(loss);
  for (const auto& [name, value] : p.outputs) {
    std::string output = fmt::format("{} {:.4g}", name, value);
    if (output != loss) parts.push_back(std::move(output));  // most nets call theirs "loss", too
  }
  parts.push_back(grouped(p.rows_per_s) + " rows/s");
  if (p.step >= p.max_iter) {
    parts.push_back("took " + clock_text(p.seconds));
  } else if (p.step > p.first_step) {
    const auto left = static_cast<double>(p.max_iter - p.step);
    const auto done = static_cast<double>(p.step - p.first_step);
    parts.push_back("ETA " + clock_text(p.seconds * left / done));
  }
  parts.push_back(fmt::format("epoch {:.1f}", p.epoch));
  parts.push_back(
      fmt::format("wait data {:.0f}% net {:.0f}%", p.wait_data * 100, p.wait_comm * 100));
  parts.push_back(fmt::format("lr {:.3g}", p.lr));
  return parts;
}

std::string painted(const char* code, const std::string& text, bool colour) {
  return colour ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : text;
}

}  // namespace

ConsoleStyle console_style(std::FILE* stream) {
  ConsoleStyle style;
  const int fd = ::fileno(stream);
  if (!::isatty(fd)) return style;
  const char* terminal = std::getenv("TERM");
  if (terminal && std::string_view(terminal) == "dumb") return style;
  style.rewrite = true;
  style.colour = !std::getenv("NO_COLOR");
  style.interval_s = kRedrawInterval;
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) style.width = size.ws_col;
  return style;
}

void write_text(std::FILE* stream, std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stream);  // fmt::print() would throw
  std::fflush(stream);
}

std::string progress_line(const Progress& progress, const ConsoleStyle& style) {
  std::string line;
  for (const std::string& part : line_parts(progress, style.rewrite)) {
    const size_t needed = line.size() + (line.empty() ? 0 : 2) + part.size();
    // A line that wraps cannot be rewritten; a log file has no width.
    if (style.rewrite && needed >= static_cast<size_t>(style.width)) break;
    if (!line.empty()) line += "  ";
    line += part;
  }
  return line;
}

ConsoleSink::~ConsoleSink() { write_text(stream_, current_.empty() ? "" : "\n"); }

void ConsoleSink::progress(const Progress& event) {
  const bool end = event.step >= event.max_iter;
  if (!end && last_ >= 0 && event.seconds < last_ + style_.interval_s && event.seconds >= last_) {
    return;
  }
  last_ = event.seconds;
  const std::string line = progress_line(event, style_);
  if (!style_.rewrite) return print_line(line);
  current_ = painted("36", line, style_.colour);
  write_text(stream_, kClearLine + current_);
}

void ConsoleSink::test(const TestResult& event) {
  print_line(fmt::format("step {}  {}{}", event.step,
                         painted("1", names_.of(event.net), style_.colour),
                         outputs_text(event.outputs)));
}

void ConsoleSink::log(const LogMessage& event) {
  switch (event.level) {
    case LogLevel::kInfo:
    case LogLevel::kNotice:
      return print_line(event.text);
    case LogLevel::kWarning:
      return print_line(painted("33", "warning: ", style_.colour) + event.text);
    case LogLevel::kError:
      return print_line(painted("31", "error: ", style_.colour) + event.text);
  }
}

void ConsoleSink::print_line(const std::string& line) {
  // The progress line is taken away and put back below what is printed.
  const char* const clear = current_.empty() ? "" : kClearLine;
  write_text(stream_, fmt::format("{}{}\n{}", clear, line, current_));
}

}  // namespace cafetiere
