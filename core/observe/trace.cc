// SPDX-License-Identifier: Apache-2.0
#include "core/observe/trace.h"

#include <fmt/format.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

namespace cafetiere {

void Trace::add(const char* row, std::string name, Clock::time_point start, Clock::time_point end) {
  using Micros = std::chrono::duration<double, std::micro>;
  const std::lock_guard lock(mutex_);
  if (entries_.size() >= kMaxSpans) {
    ++left_out_;
    return;
  }
  entries_.push_back(
      {row, std::move(name), Micros(start - start_).count(), Micros(end - start).count()});
}

std::string Trace::to_json() const {
  using nlohmann::json;
  const std::lock_guard lock(mutex_);
  std::map<std::string, int> rows;
  json events = json::array();
  for (const Entry& entry : entries_) {
    const int row = rows.try_emplace(entry.row, int(rows.size())).first->second;
    events.push_back({{"name", entry.name},
                      {"ph", "X"},
                      {"pid", process_},
                      {"tid", row},
                      {"ts", entry.start_us},
                      {"dur", entry.length_us}});
  }
  for (const auto& [name, row] : rows) {
    events.push_back({{"name", "thread_name"},
                      {"ph", "M"},
                      {"pid", process_},
                      {"tid", row},
                      {"args", {{"name", name}}}});
  }
  events.push_back({{"name", "process_name"},
                    {"ph", "M"},
                    {"pid", process_},
                    {"args", {{"name", fmt::format("rank {}", process_)}}}});
  return json{{"traceEvents", events}, {"spansLeftOut", left_out_}}.dump(
      -1, ' ', false, json::error_handler_t::replace);
}

Status Trace::write(const std::string& path) const {
  std::ofstream file(path, std::ios::binary);
  file << to_json() << '\n';
  file.close();
  return file ? Status() : io_error(fmt::format("{}: the timeline cannot be written", path));
}

}  // namespace cafetiere
