// SPDX-License-Identifier: Apache-2.0
#include "report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "core/observe/events.h"
#include "core/observe/grouped.h"
#include "report/rank_tables.h"
#include "report/report_page.h"
#include "report/svg_chart.h"

namespace cafetiere {
namespace {

using Json = nlohmann::ordered_json;

/// The result's keys that become cards, in this order, with their captions.
constexpr std::pair<const char*, const char*> kCards[] = {{"accuracy", "accuracy"},
                                                          {"keys", "keys with a net"},
                                                          {"loss", "training loss"},
                                                          {"steps", "steps"},
                                                          {"epochs", "epochs"},
                                                          {"rows_given", "rows given"},
                                                          {"rows_per_epoch", "rows used an epoch"},
                                                          {"executors", "executors"},
                                                          {"seconds", "seconds"},
                                                          {"rows_per_s", "rows per second"}};

/// Values by step, so that a repeated step keeps its last value.
using Curve = std::map<int64_t, double>;

/// What the events of a run amount to.
struct RunHistory {
  std::map<std::string, Curve> losses;  // by series name
  std::map<std::string, Curve> scores;  // accuracies and whatever else a net gives
  Curve rate;
  Curve lr;
  std::vector<LogMessage> messages;
  std::optional<Account> account;
  RankHistory ranks;
  std::string explained;
  std::vector<KeysTrained> keys;
  TestNames names;

  void add(const Progress& p) {
    losses["training loss"][p.step] = p.loss;
    rate[p.step] = p.rows_per_s;
    lr[p.step] = p.lr;
    if (!p.ranks.step_ms.empty()) ranks[p.step] = p.ranks;
    add_outputs("training ", p.step, p.outputs);
  }
  void add(const TestResult& t) { add_outputs(names.of(t.net) + " ", t.step, t.outputs); }
  void add(const LogMessage& m) { messages.push_back(m); }
  void add(const Account& a) { account = a; }
  void add(const Explained& e) { explained = e.text; }
  void add(const KeysTrained& k) { keys.push_back(k); }

 private:
  void add_outputs(const std::string& prefix, int64_t step, const NamedValues& outputs) {
    for (const auto& [name, value] : outputs) {
      auto& curves = name.find("loss") != std::string::npos ? losses : scores;
      // The training loss is told once as the solver smooths it; its raw output would draw over it.
      if (&curves == &losses && prefix == "training ") continue;
      curves[prefix + name][step] = value;
    }
  }
};

Result<RunHistory> read_events(std::string_view jsonl) {
  RunHistory history;
  for (int line = 1; !jsonl.empty(); ++line) {
    const size_t end = std::min(jsonl.find('\n'), jsonl.size());
    const std::string_view text = jsonl.substr(0, end);
    const bool complete = end < jsonl.size();
    jsonl.remove_prefix(std::min(end + 1, jsonl.size()));
    if (text.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    Result<Event> event = parse_event(text);
    if (!event.ok() && !complete) break;  // the last line of a killed run
    if (!event.ok()) return event.status().with_context(fmt::format("events, line {}", line));
    std::visit([&](const auto& e) { history.add(e); }, *event);
  }
  return history;
}

ChartSeries series_of(const std::string& name, const Curve& curve, bool markers) {
  ChartSeries series{name, {}, markers};
  for (const auto& [step, value] : curve)
    series.points.push_back({static_cast<double>(step), value});
  return series;
}

Chart chart_of(std::string title, std::string y_label, const std::map<std::string, Curve>& curves) {
  Chart chart{std::move(title), "step", std::move(y_label)};
  for (const auto& [name, curve] : curves) {
    chart.series.push_back(series_of(name, curve, name.rfind("training", 0) != 0));
  }
  // Training first, so that it has the same colour on each chart and test points lie above it.
  std::stable_sort(
      chart.series.begin(), chart.series.end(),
      [](const ChartSeries& a, const ChartSeries& b) { return a.markers < b.markers; });
  return chart;
}

std::string keys_chart(const std::vector<KeysTrained>& told) {
  ChartSeries series{"keys", {{0, 0}}, false};
  for (const KeysTrained& k : told) series.points.push_back({k.seconds, double(k.keys)});
  return render_chart({"Keys", "seconds", "keys", {std::move(series)}});
}

std::string charts(const RunHistory& history) {
  std::string html;
  if (!history.losses.empty()) html += render_chart(chart_of("Loss", "loss", history.losses));
  if (!history.scores.empty()) {
    const bool one_kind = std::all_of(history.scores.begin(), history.scores.end(), [](auto& s) {
      return s.first.find("accuracy") != std::string::npos;
    });
    Chart scores =
        chart_of(one_kind ? "Accuracy" : "Scores", one_kind ? "accuracy" : "value", history.scores);
    scores.log_y = !one_kind;
    html += render_chart(scores);
  }
  if (!history.rate.empty()) {
    html += render_chart(
        {"Throughput", "step", "rows per second", {series_of("rows/s", history.rate, false)}});
    html += render_chart(
        {"Learning rate", "step", "learning rate", {series_of("lr", history.lr, false)}});
  }
  if (!history.keys.empty()) html += keys_chart(history.keys);
  return html + rank_charts(history.ranks);
}

std::string format_number(std::string_view key, double value) {
  if (key.ends_with("accuracy") && value >= 0 && value <= 1)
    return fmt::format("{:.2f} %", value * 100);
  if (key.ends_with("bytes")) return fmt::format("{:.1f} MiB", value / (1 << 20));
  if (std::abs(value) >= 1000 || value == std::floor(value)) {
    return std::abs(value) < 1e15 ? grouped(value) : fmt::format("{:.4g}", value);
  }
  return fmt::format("{:.4g}", value);
}

/// A JSON value as a person would write it.
std::string format_value(std::string_view key, const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_number()) return format_number(key, value.get<double>());
  if (!value.is_structured() || value.empty()) return "–";
  const bool all_equal = value.is_array() && std::all_of(value.begin(), value.end(), [&](auto& v) {
                           return v == value.front();
                         });
  if (all_equal) return format_value(key, value.front());
  const bool object = value.is_object();
  std::string text;
  for (const auto& [name, item] : value.items()) {
    if (!text.empty()) text += object ? " · " : ", ";
    const std::string inner = format_value(object ? std::string_view(name) : key, item);
    if (!object) {
      text += inner;
    } else {
      text += item.is_object() ? fmt::format("{} ({})", name, inner)
                               : fmt::format("{}: {}", name, inner);
    }
  }
  return text;
}

/// Fields that do not apply to a run are 0 or empty, or objects of such and of answers nobody asked for.
bool applies(const Json& value) {
  if (value.is_object()) {
    return std::ranges::any_of(
        value, [](const Json& field) { return !field.is_boolean() && applies(field); });
  }
  if (value.is_number()) return value.get<double>() != 0;
  if (value.is_string()) return !value.get_ref<const std::string&>().empty();
  return !value.empty();  // null is empty, a boolean is not
}

std::string cards(const Json& result) {
  std::string html;
  for (const auto& [key, caption] : kCards) {
    const auto it = result.find(key);
    if (it == result.end() || !applies(*it)) continue;
    html += fmt::format("<div class=\"card\"><b>{}</b><span>{}</span></div>\n",
                        escape_html(format_value(key, *it)), caption);
  }
  return html;
}

/// What the cards do not show.
std::string table(const Json& result) {
  std::string rows;
  for (const auto& [key, value] : result.items()) {
    const bool on_card =
        std::any_of(std::begin(kCards), std::end(kCards),
                    [&, &name = key](const auto& card) { return name == card.first; });
    if (on_card || key == "title" || key == "account" || !applies(value)) continue;
    std::string caption = key;
    std::replace(caption.begin(), caption.end(), '_', ' ');
    rows += fmt::format("<tr><th>{}</th><td>{}</td></tr>\n", escape_html(caption),
                        escape_html(format_value(key, value)));
  }
  return rows.empty() ? rows : "<table>\n" + rows + "</table>\n";
}

/// What the run set out to do, folded up.
std::string explanation(const std::string& text) {
  if (text.empty()) return "";
  return "<details>\n<summary>The net and its steps, as explain tells them</summary>\n<pre>" +
         escape_html(text) + "</pre>\n</details>\n";
}

std::string messages(const std::vector<LogMessage>& log) {
  std::string items;
  for (const LogMessage& message : log) {
    if (severity(message.level) == 0) continue;
    const char* kind = message.level == LogLevel::kError ? "error" : "warning";
    items += fmt::format("<li class=\"{}\">{}</li>\n", kind, escape_html(message.text));
  }
  return items.empty() ? items : "<ul class=\"messages\">\n" + items + "</ul>\n";
}

}  // namespace

Result<std::string> render_report(std::string_view events_jsonl, std::string_view result_json) {
  CFT_ASSIGN(const RunHistory history, read_events(events_jsonl));
  const Json result = Json::parse(result_json, nullptr, /*allow_exceptions=*/false);
  if (!result.is_object()) {
    return invalid_argument("the result of a report must be a JSON object; give {} for none");
  }
  std::string tables = table(result);
  if (history.account) tables += account_table(*history.account);
  tables += explanation(history.explained);
  const auto title = result.find("title");
  return report_page(
      title != result.end() && title->is_string() ? title->get<std::string>() : "Training report",
      cards(result), charts(history), tables, messages(history.messages));
}

}  // namespace cafetiere
