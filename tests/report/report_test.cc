// SPDX-License-Identifier: Apache-2.0
#include "report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/observe/events.h"
#include "report/svg_chart.h"

namespace cafetiere {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string progress(int64_t step, double loss) {
  Progress p;
  p.step = step;
  p.max_iter = 100;
  p.loss = loss;
  p.rows_per_s = 5000;
  return to_json(p) + "\n";
}

std::string test(int64_t step, double accuracy) {
  return to_json(TestResult{step, "test", {{"accuracy", accuracy}, {"loss", 0.3}}}) + "\n";
}

TEST(Report, ShowsCurvesAndFigures) {
  std::string events;
  for (int step = 0; step <= 100; step += 10) events += progress(step, 2.3 * std::exp(-step / 20.));
  events += test(50, 0.91) + test(100, 0.969);
  const auto html =
      render_report(events, R"({"title": "LeNet", "accuracy": 0.969, "rows_given": 4000,
                  "rows_per_epoch": [4000, 4000], "sha256": "ab12", "classes": {"0": 5, "1": 6}})");
  ASSERT_TRUE(html.ok()) << html.status().message();
  EXPECT_THAT(*html, HasSubstr("<h1>LeNet</h1>"));
  EXPECT_THAT(*html, HasSubstr("<b>96.90 %</b><span>accuracy</span>"));
  EXPECT_THAT(*html, HasSubstr("<b>4,000</b><span>rows used an epoch</span>"));
  EXPECT_THAT(*html, HasSubstr("<th>sha256</th><td>ab12</td>"));
  EXPECT_THAT(*html, HasSubstr("<td>0: 5 · 1: 6</td>"));
  EXPECT_THAT(*html, HasSubstr("training loss <b>"));
  EXPECT_THAT(*html, HasSubstr("test accuracy <b>0.969</b>"));
  EXPECT_THAT(*html, HasSubstr("test accuracy 0.91 at 50"));
  EXPECT_THAT(*html, HasSubstr("(log scale)"));
}

TEST(Report, LeavesOutWhatDoesNotApply) {
  const auto html = render_report(progress(1, 2), R"({"views": 0, "partitions": {}, "spark": "",
                  "seed": null, "encrypted": false, "attempts": 1,
                  "early_stopping": {"output": "", "best_step": 0, "stopped": false, "curve": []},
                  "stopping": {"output": "loss", "best_step": 0, "stopped": false}})");
  for (const char* left_out : {"views", "partitions", "spark", "seed", "early"}) {
    EXPECT_THAT(*html, Not(HasSubstr(left_out)));
  }
  EXPECT_THAT(*html, HasSubstr("<th>encrypted</th><td>no</td>"));
  EXPECT_THAT(*html, HasSubstr("<th>attempts</th><td>1</td>"));
  EXPECT_THAT(*html, HasSubstr("<th>stopping</th><td>output: loss"));
  EXPECT_THAT(*html, HasSubstr("rows/s <b>5,000</b>"));
}

TEST(Report, ShowsWhereTheCoreHoursWent) {
  Account account{.seconds = 1800, .cores = 4, .core_hours = {}, .cost = 7};
  account.core_hours = {{"computing", 1.5}, {"network", 0.5}, {"data", 0}};
  const auto html = render_report(to_json(account) + "\n", R"({"account": {"cores": 4}})");
  ASSERT_TRUE(html.ok()) << html.status().message();
  EXPECT_THAT(*html, HasSubstr("<th>computing</th><td>1.5</td><td>75.0 %</td>"));
  EXPECT_THAT(*html, HasSubstr("<th>network</th><td>0.5</td><td>25.0 %</td>"));
  EXPECT_THAT(*html, HasSubstr("<th>cost</th><td>7</td>"));
  EXPECT_THAT(*html, Not(HasSubstr("<th>data</th>")));
  EXPECT_THAT(*html, Not(HasSubstr("<th>account</th>")));
}

TEST(Report, TellsAShortRunInCoreSeconds) {
  Account account{.seconds = 9, .cores = 4, .core_hours = {}};
  account.core_hours = {{"computing", 0.0075}, {"network", 0.0025}};
  const auto html = render_report(to_json(account) + "\n", "{}");
  ASSERT_TRUE(html.ok()) << html.status().message();
  EXPECT_THAT(*html, HasSubstr("<h2>Core-seconds</h2>"));
  EXPECT_THAT(*html, HasSubstr("<th>computing</th><td>27</td><td>75.0 %</td>"));
  EXPECT_THAT(*html, HasSubstr("<th>all</th><td>36</td><td>4 cores x 9 s</td>"));
}

TEST(Report, HasAColourForEachPartOfTheAccount) {
  Account account{.seconds = 3600, .cores = 9, .core_hours = {}};
  account.core_hours = {{"computing", 2.3}, {"data", 1.6}, {"network", 1.5},  {"testing", 1.4},
                        {"storing", 1.3},   {"idle", 0.4}, {"starting", 0.3}, {"lost", 0.2}};
  account.ranks = {{"rank 0", account.core_hours}};
  const auto html = render_report(to_json(account) + "\n", "{}");
  ASSERT_TRUE(html.ok()) << html.status().message();
  EXPECT_THAT(*html, HasSubstr("var(--series-1)\"></i>computing"));
  EXPECT_THAT(*html, HasSubstr("var(--grid)\"></i>idle"));
  EXPECT_THAT(*html, HasSubstr("var(--series-6)\"></i>starting"));
  EXPECT_THAT(*html, HasSubstr("var(--text)\"></i>lost"));
}

TEST(Report, ShowsEachRanksTimes) {
  Progress event{.step = 10, .loss = 1, .outputs = {}};
  event.ranks = {{4, 12}, {0.001, 0.002}, {0.6, 0.1}};
  const auto html = render_report(to_json(event) + "\n", "{}");
  ASSERT_TRUE(html.ok()) << html.status().message();
  EXPECT_THAT(*html, HasSubstr("Time of a step by rank"));
  EXPECT_THAT(*html, HasSubstr("rank 0 <b>4</b>"));
  EXPECT_THAT(*html, HasSubstr("rank 1 <b>12</b>"));
  EXPECT_THAT(*html, HasSubstr("Waiting for other ranks by rank"));
  EXPECT_THAT(*html, Not(HasSubstr("Waiting for rows by rank"))) << "which is below 1 %";
}

TEST(Report, ShowsTheRangeOfManyRanks) {
  Progress event{.step = 10, .loss = 1, .outputs = {}};
  for (int rank = 0; rank < 9; ++rank) event.ranks.step_ms.push_back(rank == 7 ? 100 : 10 + rank);
  event.ranks.wait_data = event.ranks.wait_comm = std::vector<double>(9, 0.);
  const auto html = render_report(to_json(event) + "\n", "{}");
  EXPECT_THAT(*html, HasSubstr("least <b>10</b>"));
  EXPECT_THAT(*html, HasSubstr("median <b>14</b>"));
  EXPECT_THAT(*html, HasSubstr("greatest <b>100</b>"));
  EXPECT_THAT(*html, Not(HasSubstr("rank 7")));
}

TEST(Report, ShowsEachRanksPartOfTheAccount) {
  Account account{.seconds = 3600, .cores = 2, .core_hours = {}};
  account.core_hours = {{"computing", 1.5}, {"idle", 0.5}};
  account.ranks = {{"rank 0", {{"computing", 1}, {"idle", 0}}},
                   {"rank 1, executor <2>", {{"computing", 0.5}, {"idle", 0.5}}}};
  const auto html = render_report(to_json(account) + "\n", "{}");
  ASSERT_TRUE(html.ok()) << html.status().message();
  EXPECT_THAT(*html, HasSubstr("<th>rank 0</th>"));
  EXPECT_THAT(*html, HasSubstr("title=\"computing 100.0 %\""));
  EXPECT_THAT(*html, HasSubstr("rank 1, executor &lt;2&gt;"));
  EXPECT_THAT(*html, HasSubstr("title=\"idle 50.0 %\""));
}

TEST(Report, TellsWhatTheRunSetOutToDo) {
  const auto html = render_report(to_json(Explained{"conv1 <1 x 1>"}) + "\n", "{}");
  ASSERT_TRUE(html.ok()) << html.status().message();
  EXPECT_THAT(*html, HasSubstr("<pre>conv1 &lt;1 x 1&gt;</pre>"));
}

TEST(Report, ShowsHowKeysWereTrained) {
  const std::string events = to_json(KeysTrained{.keys = 10, .tasks = 1, .of = 2, .seconds = 1}) +
                             "\n" +
                             to_json(KeysTrained{.keys = 25, .tasks = 2, .of = 2, .seconds = 2});
  const auto html = render_report(events + "\n", R"({"keys": 24, "failed_keys": 1, "loss": 0})");
  ASSERT_TRUE(html.ok()) << html.status().message();
  EXPECT_THAT(*html, HasSubstr("<b>24</b><span>keys with a net</span>"));
  EXPECT_THAT(*html, HasSubstr("<th>failed keys</th><td>1</td>"));
  EXPECT_THAT(*html, HasSubstr(">Keys<"));
  EXPECT_THAT(*html, Not(HasSubstr("training loss")));
}

TEST(Report, NeedsNoScriptAndNoNetwork) {
  const auto html = render_report(progress(1, 2), "{}");
  EXPECT_THAT(*html, Not(HasSubstr("<script")));
  EXPECT_THAT(*html, Not(HasSubstr("http")));
}

TEST(Report, EscapesEveryText) {
  const std::string bad = "<b>&\"'";
  const std::string events =
      to_json(TestResult{1, bad, {{bad, 1}}}) + "\n" + to_json(LogMessage{LogLevel::kError, bad});
  const auto html =
      render_report(events, R"({"title": "<b>&\"'", "<b>&\"'": "<b>&\"'", "o": {"<b>": 1}})");
  ASSERT_TRUE(html.ok()) << html.status().message();
  EXPECT_THAT(*html, HasSubstr("<h1>&lt;b&gt;&amp;&quot;&#39;</h1>"));
  EXPECT_THAT(*html, Not(HasSubstr("<b>&\"")));
  EXPECT_THAT(*html, Not(HasSubstr("<b>: 1")));
}

TEST(Report, LaterAttemptReplacesARepeatedStep) {
  const auto html = render_report(test(10, 0.1) + test(10, 0.7), "{}");
  EXPECT_THAT(*html, HasSubstr("test accuracy <b>0.7</b>"));
  EXPECT_THAT(*html, Not(HasSubstr("test accuracy 0.1 at 10")));
}

TEST(Report, ForgivesATornLastLineOnly) {
  EXPECT_TRUE(render_report(progress(1, 2) + R"({"event": "prog)", "{}").ok());
  const auto torn = render_report("{\"event\n" + progress(1, 2), "{}");
  EXPECT_THAT(torn.status().message(), HasSubstr("line 1"));
  EXPECT_FALSE(render_report("", "[]").ok());
}

TEST(Report, StandsEmptyAndNotFiniteValues) {
  EXPECT_TRUE(render_report("", "{}").ok());
  const auto html = render_report(progress(1, NAN) + progress(2, INFINITY), "{}");
  ASSERT_TRUE(html.ok());
  EXPECT_THAT(*html, HasSubstr("No values to draw"));
  EXPECT_THAT(*html, Not(HasSubstr("inf,")));
}

TEST(Chart, OneValueGetsAnAxisWithTicks) {
  const std::string svg = render_chart({"t", "x", "y", {{"s", {{5, 2}}, false}}});
  EXPECT_THAT(svg, HasSubstr("class=\"tick\""));
  EXPECT_THAT(svg, HasSubstr("<circle"));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
}

TEST(Chart, ManyPointsStaySmall) {
  ChartSeries series{"s", {}, false};
  for (int i = 0; i < 1000000; ++i) series.points.push_back({double(i), std::sin(i * 1e-4)});
  EXPECT_LT(render_chart({"t", "x", "y", {series}}).size(), 60000u);
}

}  // namespace
}  // namespace cafetiere
