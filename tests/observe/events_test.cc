// SPDX-License-Identifier: Apache-2.0
#include "core/observe/events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/observe/event_files.h"
#include "core/observe/jsonl.h"
#include "tests/support/temp_dir.h"

namespace cafetiere {
namespace {

using testing::HasSubstr;

TEST(Events, RanksTimesComeBack) {
  Progress progress{.step = 3, .outputs = {}};
  progress.ranks = {{1.5, 2}, {0, 0.25}, {0.5, 0}};
  const RankTimes back = std::get<Progress>(parse_event(to_json(progress)).value()).ranks;
  EXPECT_EQ(back.step_ms, progress.ranks.step_ms);
  EXPECT_EQ(back.wait_data, progress.ranks.wait_data);
  EXPECT_EQ(back.wait_comm, progress.ranks.wait_comm);
}

TEST(Events, RanksTimesOfDifferentNumbersAreNone) {
  const char* json = R"({"event": "progress", "ranks": {"step_ms": [1, 2], "wait_data": [0]}})";
  EXPECT_TRUE(std::get<Progress>(parse_event(json).value()).ranks.step_ms.empty());
}

TEST(Events, RanksPartsOfAnAccountComeBack) {
  Account account{.seconds = 1, .cores = 2, .core_hours = {}};
  account.ranks = {{"rank 0", {{"computing", 0.5}}}, {"rank 1", {{"idle", 0.25}}}};
  const auto back = std::get<Account>(parse_event(to_json(account)).value()).ranks;
  ASSERT_EQ(back.size(), 2u);
  EXPECT_EQ(back[1].name, "rank 1");
  EXPECT_EQ(back[1].core_hours, account.ranks[1].core_hours);
}

TEST(Events, AnExplanationComesBack) {
  const Event back = parse_event(to_json(Explained{"a\nb"})).value();
  EXPECT_EQ(std::get<Explained>(back).text, "a\nb");
}

TEST(Events, KeysComeBack) {
  const KeysTrained told{.keys = 12, .tasks = 3, .of = 16, .seconds = 1.5, .keys_per_s = 8};
  const auto back = std::get<KeysTrained>(parse_event(to_json(told)).value());
  EXPECT_EQ(back.keys, 12);
  EXPECT_EQ(back.tasks, 3);
  EXPECT_EQ(back.of, 16);
  EXPECT_EQ(back.seconds, 1.5);
  EXPECT_EQ(back.keys_per_s, 8);
}

TEST(Events, ProgressHasTheDocumentedForm) {
  Progress p;
  p.step = 3;
  p.max_iter = 10;
  p.epoch = 0.5;
  p.loss = 2.25;
  p.lr = 0.5;
  p.rows_per_s = 100;
  p.wait_data = 0.25;
  p.seconds = 1.5;
  EXPECT_EQ(to_json(p),
            R"({"event":"progress","step":3,"max_iter":10,"epoch":0.5,"loss":2.25,"lr":0.5,)"
            R"("rows_per_s":100.0,"wait_data":0.25,"wait_comm":0.0,"seconds":1.5,"first_step":0})");
}

TEST(Events, RoundTripKeepsOrderOfOutputs) {
  const TestResult test{7, "test", {{"loss", 0.5}, {"accuracy", 0.75}}};
  const Event back = parse_event(to_json(test)).value();
  EXPECT_EQ(std::get<TestResult>(back).outputs, test.outputs);
  EXPECT_EQ(to_json(back), R"({"event":"test","step":7,"net":"test",)"
                           R"("outputs":{"loss":0.5,"accuracy":0.75}})");
}

TEST(Events, LevelsSurvive) {
  for (const LogLevel level : {LogLevel::kInfo, LogLevel::kWarning, LogLevel::kError}) {
    const Event back = parse_event(to_json(LogMessage{level, "x"})).value();
    EXPECT_EQ(std::get<LogMessage>(back).level, level);
  }
}

TEST(Events, OnlyFurtherTestNetsAreToldByName) {
  TestNames names;
  EXPECT_EQ(names.of("LeNet"), "test");
  EXPECT_EQ(names.of("other"), "test other");
  EXPECT_EQ(names.of("LeNet"), "test");
}

TEST(Events, NotANumberBecomesNullAndBack) {
  Progress p;
  p.loss = std::numeric_limits<double>::infinity();
  const std::string json = to_json(p);
  EXPECT_THAT(json, HasSubstr(R"("loss":null)"));
  EXPECT_TRUE(std::isnan(std::get<Progress>(parse_event(json).value()).loss));
}

TEST(Events, BrokenTextBytesAreReplaced) {
  EXPECT_THAT(to_json(LogMessage{LogLevel::kInfo, "\xff!"}), HasSubstr("\xEF\xBF\xBD!"));
}

TEST(Events, WhatIsNotAnEventIsRefusedByName) {
  EXPECT_THAT(parse_event("nonsense").status().message(), HasSubstr("nonsense"));
  EXPECT_THAT(parse_event("[1]").status().message(), HasSubstr("JSON object"));
  EXPECT_THAT(parse_event(R"({"event": "tset"})").status().message(), HasSubstr("'tset'"));
}

TEST(Jsonl, AppendsOneLineAnEvent) {
  const TempDir folder;
  const std::string path = folder.path("run.jsonl");
  for (int attempt = 0; attempt < 2; ++attempt) {
    auto sink = JsonlSink::open(path);
    ASSERT_TRUE(sink.ok()) << sink.status().message();
    (*sink)->send(LogMessage{LogLevel::kInfo, "two\nlines"});
  }
  const std::string line = R"({"event":"log","level":"info","text":"two\nlines"})"
                           "\n";
  EXPECT_EQ(text_of_file(path), line + line);
}

TEST(Jsonl, GoesOnAfterTheLastWholeLine) {
  const TempDir folder;
  const std::string path = folder.path("run.jsonl");
  const std::string line = to_json(LogMessage{LogLevel::kInfo, "x"}) + "\n";
  const std::string half = R"({"event":"log","text":")" + std::string(10000, 'y');
  for (const std::string& whole : {line + line, line, std::string()}) {
    std::ofstream(path) << whole + half;
    auto sink = JsonlSink::open(path);
    ASSERT_TRUE(sink.ok()) << sink.status().message();
    (*sink)->send(LogMessage{LogLevel::kInfo, "x"});
    EXPECT_EQ(text_of_file(path), whole + line);
  }
}

TEST(Jsonl, EndsALineThatLacksItsEnd) {
  const TempDir folder;
  const std::string path = folder.path("run.jsonl");
  for (const std::string before : {R"({"event":"log"})", "somebody's notes"}) {
    std::ofstream(path) << before;
    ASSERT_TRUE(JsonlSink::open(path).ok());
    EXPECT_EQ(text_of_file(path), before + "\n");
  }
}

TEST(Jsonl, NamesTheFileItCannotOpen) {
  const auto sink = JsonlSink::open("/nonexistent/run.jsonl");
  EXPECT_EQ(sink.status().code(), ErrorCode::kIo);
  EXPECT_THAT(sink.status().message(), HasSubstr("/nonexistent/run.jsonl"));
}

TEST(EventFiles, MakesTheFolderAndBothFiles) {
  const TempDir folder;
  auto sink = open_event_files(folder.path("new/run"));
  ASSERT_TRUE(sink.ok()) << sink.status().message();
  (*sink)->send(Progress{});
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path("new"))) {
    files += entry.file_size() > 0;
  }
  EXPECT_EQ(files, 2);
}

TEST(EventFiles, SayOnceThatTheyCannotBeWritten) {
  std::vector<std::string> told;
  const Logger log([&](LogLevel, std::string_view text) { told.emplace_back(text); });
  auto sink = JsonlSink::open("/dev/full", log);
  ASSERT_TRUE(sink.ok());
  for (int i = 0; i < 3; ++i) (*sink)->send(LogMessage{LogLevel::kInfo, "x"});
  ASSERT_EQ(told.size(), 1);
  EXPECT_THAT(told[0], HasSubstr("cannot write the event log '/dev/full': No space left"));
}

}  // namespace
}  // namespace cafetiere
