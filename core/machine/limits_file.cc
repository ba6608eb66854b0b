// SPDX-License-Identifier: Apache-2.0
#include "core/machine/limits_file.h"

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/model/file.h"

namespace cafetiere {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Bandwidth, read, copy)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(MemoryLevel, name, bytes, rate)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(MachineLimits, instruction_set, threads, float32, float32_thread,
                                   bf16, bf16_thread, amx, levels, training, measured, load)

namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr int64_t kMostBytes = 1 << 20;  // of a file of ours; a larger one is somebody else's

json read_json(const std::string& file) {
  const Result<std::string> text = read_file(file, kMostBytes);
  json all = text.ok() ? json::parse(*text, nullptr, false) : json();
  return all.is_object() ? all : json::object();
}

/// None where the file has none, or another version's.
std::optional<MachineLimits> kept(const json& all, const std::string& key) {
  const auto entry = all.find(key);
  if (entry == all.end()) return {};
  try {
    return entry->get<MachineLimits>();
  } catch (const json::exception&) {
    return {};
  }
}

}  // namespace

std::string limits_file() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  if (cache && *cache == '/') return fs::path(cache) / "cafetiere" / "machine.json";
  if (home && *home == '/') return fs::path(home) / ".cache" / "cafetiere" / "machine.json";
  return {};
}

Result<MachineLimits> cached_limits(const std::string& file, const std::string& key, bool anew,
                                    const std::function<Result<MachineLimits>()>& measure) {
  if (!anew && !file.empty()) {
    if (auto limits = kept(read_json(file), key)) return *std::move(limits);
  }
  CFT_ASSIGN(MachineLimits limits, measure());
  if (file.empty()) return limits;
  json all = read_json(file);
  all[key] = limits;
  std::error_code ignored;
  fs::create_directories(fs::path(file).parent_path(), ignored);
  (void)write_file(file, all.dump(1) + "\n");
  return limits;
}

json json_of(const MachineLimits& limits) { return limits; }

}  // namespace cafetiere
