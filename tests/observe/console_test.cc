// SPDX-License-Identifier: Apache-2.0
#include "core/observe/console.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cafetiere {
namespace {

using testing::HasSubstr;
using testing::Not;

/// Collects what a sink prints.
class Capture {
 public:
  Capture() : stream_(::open_memstream(&text_, &size_)) {}
  ~Capture() {
    std::fclose(stream_);
    std::free(text_);
  }
  std::FILE* stream() { return stream_; }
  std::string text() {
    std::fflush(stream_);
    return {text_, size_};
  }

 private:
  char* text_ = nullptr;
  size_t size_ = 0;
  std::FILE* stream_;
};

Progress at(int64_t step, double seconds) {
  Progress p;
  p.step = step;
  p.max_iter = 1000;
  p.loss = 0.125;
  p.rows_per_s = 12345.6;
  p.seconds = seconds;
  p.wait_data = 0.02;
  p.wait_comm = 0.11;
  return p;
}

TEST(Console, LineTellsRateLossWaitsAndTimeLeft) {
  EXPECT_EQ(progress_line(at(250, 20), {}),
            " 25%  step 250/1000  loss 0.125  12,346 rows/s  ETA 1:00  epoch 0.0  "
            "wait data 2% net 11%  lr 0");
}

TEST(Console, TheTimeLeftIsThatOfTheStepsOfThisRun) {
  Progress p = at(750, 10);
  p.first_step = 500;
  EXPECT_THAT(progress_line(p, {}), HasSubstr("  ETA 0:10  "));
  p.first_step = p.step;
  EXPECT_THAT(progress_line(p, {}), Not(HasSubstr("ETA")));
}

TEST(Console, AnOutputThatIsTheLossIsToldOnce) {
  Progress p = at(250, 20);
  p.outputs = {{"loss", 0.125}, {"accuracy", 0.5}};
  EXPECT_THAT(progress_line(p, {}), HasSubstr("  loss 0.125  accuracy 0.5  12,346"));
  p.outputs = {{"loss", 0.25}};  // of one step; the other is a mean of several
  EXPECT_THAT(progress_line(p, {}), HasSubstr("  loss 0.125  loss 0.25  12,346"));
}

TEST(Console, LineOnATerminalFitsItsWidth) {
  ConsoleStyle style;
  style.rewrite = true;
  for (const int width : {40, 60, 80, 120}) {
    style.width = width;
    const std::string line = progress_line(at(500, 20), style);
    EXPECT_LT(line.size(), static_cast<size_t>(width));
    EXPECT_THAT(line, HasSubstr("[============>           ]  50%"));
  }
}

TEST(Console, LogGetsALineEveryFewSecondsAndTheLast) {
  Capture capture;
  {
    ConsoleSink sink(capture.stream(), {});
    for (int step = 0; step <= 1000; ++step) sink.progress(at(step, step * 0.012));
  }
  const std::string text = capture.text();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4) << text;  // 0, 5, 10 and 12 s
  EXPECT_THAT(text, HasSubstr("100%  step 1000/1000"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST(Console, TerminalRewritesItsLineAroundOtherOutput) {
  Capture capture;
  {
    ConsoleStyle style;
    style.rewrite = true;
    style.width = 60;
    ConsoleSink sink(capture.stream(), style);
    sink.progress(at(100, 1));
    sink.test({100, "test", {{"accuracy", 0.5}}});
    sink.log({LogLevel::kWarning, "look"});
  }
  const std::string line = progress_line(at(100, 1), {true, false, 60, 0});
  EXPECT_EQ(capture.text(), "\r\x1b[K" + line + "\r\x1b[Kstep 100  test  accuracy 0.5\n" + line +
                                "\r\x1b[Kwarning: look\n" + line + "\n");
}

TEST(Console, StreamThatIsNoTerminalIsPlain) {
  Capture capture;
  const ConsoleStyle style = console_style(capture.stream());
  EXPECT_FALSE(style.rewrite);
  EXPECT_FALSE(style.colour);
}

}  // namespace
}  // namespace cafetiere
