// SPDX-License-Identifier: Apache-2.0
#include "core/observe/events.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace cafetiere {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kLevels[] = {"info", "warning", "error"};

Json to_object(const NamedValues& values) {
  Json object = Json::object();
  for (const auto& [name, value] : values) object[name] = value;
  return object;
}

Json encode(const Progress& e) {
  Json json = {{"event", "progress"},
               {"step", e.step},
               {"max_iter", e.max_iter},
               {"epoch", e.epoch},
               {"loss", e.loss},
               {"lr", e.lr},
               {"rows_per_s", e.rows_per_s},
               {"wait_data", e.wait_data},
               {"wait_comm", e.wait_comm},
               {"seconds", e.seconds},
               {"first_step", e.first_step}};
  if (!e.outputs.empty()) json["outputs"] = to_object(e.outputs);
  if (!e.ranks.step_ms.empty()) {
    json["ranks"] = {{"step_ms", e.ranks.step_ms},
                     {"wait_data", e.ranks.wait_data},
                     {"wait_comm", e.ranks.wait_comm}};
  }
  return json;
}

Json encode(const TestResult& e) {
  return {{"event", "test"}, {"step", e.step}, {"net", e.net}, {"outputs", to_object(e.outputs)}};
}

Json encode(const LogMessage& e) {
  return {{"event", "log"}, {"level", kLevels[severity(e.level)]}, {"text", e.text}};
}

Json encode(const Account& e) {
  Json json = {{"event", "account"},
               {"seconds", e.seconds},
               {"cores", e.cores},
               {"core_hours", to_object(e.core_hours)},
               {"rows_used", e.rows_used}};
  if (e.cost > 0) json["cost"] = e.cost;
  for (const RankAccount& rank : e.ranks) {
    json["ranks"].push_back({{"name", rank.name}, {"core_hours", to_object(rank.core_hours)}});
  }
  return json;
}

Json encode(const Explained& e) { return {{"event", "explained"}, {"text", e.text}}; }

Json encode(const KeysTrained& k) {
  return {{"event", "keys"}, {"keys", k.keys},       {"tasks", k.tasks},
          {"of", k.of},      {"seconds", k.seconds}, {"keys_per_s", k.keys_per_s}};
}

double as_number(const Json& value) {
  return value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
}

double number(const Json& json, const char* key) {
  const auto it = json.find(key);
  return it == json.end() ? 0 : as_number(*it);
}

int64_t integer(const Json& json, const char* key) {
  const double value = number(json, key);
  return std::isfinite(value) ? std::llround(value) : 0;
}

std::string text(const Json& json, const char* key) {
  const auto it = json.find(key);
  return it != json.end() && it->is_string() ? it->get<std::string>() : std::string();
}

NamedValues values_of(const Json& json, const char* key) {
  NamedValues values;
  const auto it = json.find(key);
  if (it == json.end() || !it->is_object()) return values;
  for (const auto& [name, value] : it->items()) values.emplace_back(name, as_number(value));
  return values;
}

std::vector<double> numbers_of(const Json& json, const char* key) {
  std::vector<double> numbers;
  const auto it = json.find(key);
  if (it == json.end() || !it->is_array()) return numbers;
  for (const Json& value : *it) numbers.push_back(as_number(value));
  return numbers;
}

/// Of ranks that do not all tell all, nothing.
RankTimes decode_times(const Json& json) {
  const auto it = json.find("ranks");
  if (it == json.end() || !it->is_object()) return {};
  RankTimes times{numbers_of(*it, "step_ms"), numbers_of(*it, "wait_data"),
                  numbers_of(*it, "wait_comm")};
  const size_t ranks = times.step_ms.size();
  return times.wait_data.size() == ranks && times.wait_comm.size() == ranks ? times : RankTimes();
}

std::vector<RankAccount> decode_ranks(const Json& json) {
  std::vector<RankAccount> ranks;
  const auto it = json.find("ranks");
  if (it == json.end() || !it->is_array()) return ranks;
  for (const Json& rank : *it) {
    if (rank.is_object()) ranks.push_back({text(rank, "name"), values_of(rank, "core_hours")});
  }
  return ranks;
}

Progress decode_progress(const Json& json) {
  return {integer(json, "step"),       integer(json, "max_iter"),  number(json, "epoch"),
          number(json, "loss"),        number(json, "lr"),         number(json, "rows_per_s"),
          number(json, "wait_data"),   number(json, "wait_comm"),  number(json, "seconds"),
          integer(json, "first_step"), values_of(json, "outputs"), decode_times(json)};
}

Account decode_account(const Json& json) {
  return {number(json, "seconds"),    integer(json, "cores"), values_of(json, "core_hours"),
          integer(json, "rows_used"), number(json, "cost"),   decode_ranks(json)};
}

LogMessage decode_log(const Json& json) {
  const std::string level = text(json, "level");
  for (const LogLevel known : {LogLevel::kError, LogLevel::kWarning}) {
    if (level == kLevels[severity(known)]) return {known, text(json, "text")};
  }
  return {LogLevel::kInfo, text(json, "text")};
}

}  // namespace

std::string to_json(const Event& event) {
  // Names and texts may come from files in any encoding: replace rather than fail.
  return std::visit([](const auto& e) { return encode(e); }, event)
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<Event> parse_event(std::string_view json_text) {
  const Json json = Json::parse(json_text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    return invalid_argument(
        fmt::format("not an event: expected a JSON object, found '{}'", json_text.substr(0, 80)));
  }
  const std::string kind = text(json, "event");
  if (kind == "progress") return Event(decode_progress(json));
  if (kind == "test")
    return Event(TestResult{integer(json, "step"), text(json, "net"), values_of(json, "outputs")});
  if (kind == "log") return Event(decode_log(json));
  if (kind == "account") return Event(decode_account(json));
  if (kind == "explained") return Event(Explained{text(json, "text")});
  if (kind == "keys") {
    return Event(KeysTrained{integer(json, "keys"), integer(json, "tasks"), integer(json, "of"),
                             number(json, "seconds"), number(json, "keys_per_s")});
  }
  return invalid_argument(fmt::format(
      "unknown event '{}': expected progress, test, log, account, explained or keys", kind));
}

std::string TestNames::of(const std::string& net) {
  if (!first_) first_ = net;
  return net == *first_ ? "test" : "test " + net;
}

void EventSink::send(const Event& event) {
  if (const auto* p = std::get_if<Progress>(&event)) return progress(*p);
  if (const auto* t = std::get_if<TestResult>(&event)) return test(*t);
  if (const auto* a = std::get_if<Account>(&event)) return account(*a);
  if (const auto* e = std::get_if<Explained>(&event)) return explained(*e);
  if (const auto* k = std::get_if<KeysTrained>(&event)) return keys(*k);
  log(std::get<LogMessage>(event));
}

}  // namespace cafetiere
