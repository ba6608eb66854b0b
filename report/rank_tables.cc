// SPDX-License-Identifier: Apache-2.0
#include "report/rank_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/observe/account.h"
#include "report/svg_chart.h"

namespace cafetiere {
namespace {

constexpr size_t kMostLines = 6;  // as many as the page has colours
constexpr double kLeastWait = 0.01;
constexpr double kLeastHours = 0.1;  // less is told in seconds

/// One kind of times: which, and what a chart of it says.
struct Kind {
  std::vector<double> RankTimes::*values;
  const char* title;
  const char* unit;
  double scale;
};
constexpr Kind kStepTime{&RankTimes::step_ms, "Time of a step by rank", "ms", 1};
constexpr Kind kWaits[] = {
    {&RankTimes::wait_data, "Waiting for rows by rank", "% of the time", 100},
    {&RankTimes::wait_comm, "Waiting for other ranks by rank", "% of the time", 100}};

/// The least, the median and the greatest.
std::vector<double> range_of(std::vector<double> values) {
  std::ranges::sort(values);
  return {values.front(), values[values.size() / 2], values.back()};
}

size_t most_ranks(const RankHistory& history) {
  size_t most = 0;
  for (const auto& [step, times] : history) most = std::max(most, times.step_ms.size());
  return most;
}

std::string chart_of(const RankHistory& history, const Kind& kind) {
  const size_t ranks = most_ranks(history);
  const bool each = ranks <= kMostLines;
  Chart chart{kind.title, "step", kind.unit};
  chart.log_y = false;
  for (size_t i = 0; i < (each ? ranks : 3); ++i) {
    constexpr const char* kRange[] = {"least", "median", "greatest"};
    chart.series.push_back({each ? fmt::format("rank {}", i) : kRange[i], {}});
  }
  for (const auto& [step, times] : history) {
    const std::vector<double>& values = times.*kind.values;
    if (values.empty()) continue;
    const std::vector<double> shown = each ? values : range_of(values);
    for (size_t i = 0; i < shown.size(); ++i) {
      chart.series[i].points.push_back({double(step), shown[i] * kind.scale});
    }
  }
  return render_chart(chart);
}

double sum_of(const NamedValues& parts) {
  return std::accumulate(parts.begin(), parts.end(), 0.,
                         [](double sum, const auto& part) { return sum + part.second; });
}

/// The page's variable for the colour of an activity. There are seven beside idle, lost among them.
std::string colour_of(const NamedValues& parts, size_t i) {
  const auto is_idle = [](const auto& part) { return part.first == "idle"; };
  if (is_idle(parts[i])) return "--grid";
  const size_t number =
      i + 1 - size_t(std::any_of(parts.begin(), parts.begin() + ptrdiff_t(i), is_idle));
  return number <= kMostLines ? fmt::format("--series-{}", number) : "--text";
}

/// A rank's parts as lengths of a bar, in the order and the colours of `names`.
std::string bar_of(const RankAccount& rank, const NamedValues& names) {
  const double total = sum_of(rank.core_hours);
  std::string pieces;
  for (size_t i = 0; i < names.size() && total > 0; ++i) {
    for (const auto& [name, hours] : rank.core_hours) {
      if (name != names[i].first || !(hours > 0)) continue;
      pieces += fmt::format(
          "<i style=\"width:{:.2f}%;background:var({})\" title=\"{} {:.1f} %\"></i>",
          hours / total * 100, colour_of(names, i), escape_html(name), hours / total * 100);
    }
  }
  return fmt::format("<tr><th>{}</th><td colspan=\"2\"><div class=\"bar\">{}</div></td></tr>\n",
                     escape_html(rank.name), pieces);
}

}  // namespace

std::string rank_charts(const RankHistory& history) {
  if (most_ranks(history) == 0) return "";
  std::string html = chart_of(history, kStepTime);
  for (const Kind& kind : kWaits) {
    const bool waits = std::ranges::any_of(history, [&](const auto& at) {
      const std::vector<double>& values = at.second.*kind.values;
      return std::ranges::any_of(values, [](double share) { return share >= kLeastWait; });
    });
    if (waits) html += chart_of(history, kind);
  }
  return html;
}

std::string account_table(const Account& account) {
  const double total = total_core_hours(account);
  const bool is_short = total < kLeastHours;
  const double scale = is_short ? kSecondsPerHour : 1;
  NamedValues parts = account.core_hours;
  std::ranges::stable_sort(parts, [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string rows;
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto& [name, hours] = parts[i];
    if (!(hours > 0) || !(total > 0)) continue;
    const std::string key = account.ranks.empty()
                                ? std::string()
                                : fmt::format("<i class=\"key\" style=\"background:var({})\"></i>",
                                              colour_of(parts, i));
    rows += fmt::format("<tr><th>{}{}</th><td>{:.4g}</td><td>{:.1f} %</td></tr>\n", key,
                        escape_html(name), hours * scale, hours / total * 100);
  }
  rows += fmt::format("<tr><th>all</th><td>{:.4g}</td><td>{} cores x {:.4g} s</td></tr>\n",
                      total * scale, account.cores, account.seconds);
  if (account.cost > 0)
    rows += fmt::format("<tr><th>cost</th><td>{:.4g}</td></tr>\n", account.cost);
  for (const RankAccount& rank : account.ranks) rows += bar_of(rank, parts);
  return fmt::format("<h2>Core-{}</h2>\n<table>\n{}</table>\n", is_short ? "seconds" : "hours",
                     rows);
}

}  // namespace cafetiere
