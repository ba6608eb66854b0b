// SPDX-License-Identifier: Apache-2.0
#include "core/capi/options.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/base64.h"
#include "core/model/nearest.h"
#include "core/sync/sync.h"

namespace cafetiere::capi {
namespace {

constexpr int kMaxDepth = 32;  // of JSON in JSON: writing it out again takes stack for each level

}  // namespace

Result<Options> Options::parse(const char* text) {
  Options options;
  bool deep = false;
  const auto keep = [&](int depth, nlohmann::json::parse_event_t, const nlohmann::json&) {
    deep |= depth > kMaxDepth;
    return !deep;
  };
  options.json_ = nlohmann::json::parse(text ? text : "", keep, false);
  if (deep) {
    return invalid_argument(fmt::format("options are nested more than {} levels deep", kMaxDepth));
  }
  if (!options.json_.is_object()) return invalid_argument("options are not a JSON object");
  return options;
}

const nlohmann::json* Options::take(const char* key) {
  known_.emplace_back(key);
  const auto it = json_.find(key);
  return it == json_.end() || it->is_null() ? nullptr : &*it;
}

void Options::fail(const char* key, const char* wanted) {
  if (status_.ok())
    status_ = invalid_argument(fmt::format("option \"{}\" must be {}", key, wanted));
}

std::string Options::text(const char* key, const std::string& fallback) {
  const nlohmann::json* value = take(key);
  if (!value) return fallback;
  if (value->is_string()) return value->get<std::string>();
  fail(key, "a text");
  return fallback;
}

int64_t Options::number(const char* key, int64_t fallback, int64_t min, int64_t max) {
  const nlohmann::json* value = take(key);
  if (!value) return fallback;
  // Beyond an int64_t a number would come out as a negative one.
  const bool fits = !value->is_number_unsigned() || value->get<uint64_t>() <= uint64_t(INT64_MAX);
  if (value->is_number_integer() && fits) {
    const int64_t n = value->get<int64_t>();
    if (n >= min && n <= max) return n;
  }
  fail(key, fmt::format("a whole number from {} to {}", min, max).c_str());
  return fallback;
}

double Options::real(const char* key, double fallback, double min, double max) {
  const nlohmann::json* value = take(key);
  if (!value) return fallback;
  if (value->is_number()) {
    const double x = value->get<double>();
    if (x >= min && x <= max) return x;
  }
  fail(key, fmt::format("a number from {} to {}", min, max).c_str());
  return fallback;
}

std::vector<std::string> Options::texts(const char* key) {
  std::vector<std::string> list;
  const nlohmann::json* value = take(key);
  if (!value) return list;
  if (!value->is_array()) fail(key, "an array of texts");
  for (const auto& item : *value) {
    if (item.is_string())
      list.push_back(item.get<std::string>());
    else
      fail(key, "an array of texts");
  }
  return list;
}

std::vector<std::pair<std::string, std::string>> Options::pairs(const char* key, const char* first,
                                                                const char* second) {
  std::vector<std::pair<std::string, std::string>> list;
  const nlohmann::json* value = take(key);
  if (!value) return list;
  for (const auto& item : *value) {
    const bool good = item.is_object() && item.contains(first) && item.contains(second) &&
                      item[first].is_string() && item[second].is_string();
    if (good)
      list.emplace_back(item[first].get<std::string>(), item[second].get<std::string>());
    else
      fail(key, fmt::format("an array of objects with \"{}\" and \"{}\"", first, second).c_str());
  }
  return list;
}

std::map<std::string, std::vector<int64_t>> Options::shapes(const char* key) {
  constexpr const char* kWanted =
      "an object of names with arrays of 1 to 32 sizes, from 1 to 2147483647";
  std::map<std::string, std::vector<int64_t>> named;
  const nlohmann::json* value = take(key);
  if (!value) return named;
  if (!value->is_object()) {
    fail(key, kWanted);
    return named;
  }
  const auto is_size = [](const nlohmann::json& n) {
    return n.is_number_unsigned() && n.get<uint64_t>() >= 1 && n.get<uint64_t>() <= INT32_MAX;
  };
  for (const auto& [name, sizes] : value->items()) {
    const bool good = sizes.is_array() && !sizes.empty() && sizes.size() <= 32 &&
                      std::all_of(sizes.begin(), sizes.end(), is_size);
    if (good) {
      named[name] = sizes.get<std::vector<int64_t>>();
    } else {
      fail(key, kWanted);
    }
  }
  return named;
}

std::map<std::string, std::string> Options::bytes(const char* key) {
  std::map<std::string, std::string> named;
  const nlohmann::json* value = take(key);
  if (!value) return named;
  if (!value->is_object()) fail(key, "an object of names with texts in base64");
  for (const auto& [name, text] : value->items()) {
    auto decoded = text.is_string() ? from_base64(text.get_ref<const std::string&>())
                                    : Result<std::string>(invalid_argument("no text"));
    if (decoded.ok()) {
      named[name] = *std::move(decoded);
    } else {
      fail(key, "an object of names with texts in base64");
    }
  }
  return named;
}

std::string Options::object(const char* key) {
  const nlohmann::json* value = take(key);
  if (!value) return "{}";
  if (value->is_object()) return value->dump();
  fail(key, "an object");
  return "{}";
}

std::string Options::list(const char* key) {
  const nlohmann::json* value = take(key);
  if (!value) return "[]";
  if (value->is_array()) return value->dump();
  fail(key, "a list");
  return "[]";
}

Status Options::done() const {
  if (!status_.ok()) return status_;
  for (const auto& item : json_.items()) {
    if (std::find(known_.begin(), known_.end(), item.key()) == known_.end()) {
      return invalid_argument(
          fmt::format("unknown option \"{}\"{}", item.key(), did_you_mean(item.key(), known_)));
    }
  }
  return {};
}

InputBindings take_inputs(Options& options) {
  return {options.pairs("inputs", "top", "column"), options.bytes("mean_files")};
}

Result<TrainingText> take_training(Options& options) {
  const std::string solver = options.text("solver"), net = options.text("net");
  const std::string deepspark = options.text("deepspark"), sync = options.text("sync");
  const std::string fields = options.text("solver_fields");
  CFT_TRY(options.done());
  TrainingText text;
  CFT_ASSIGN(text.solver, parse_solver(solver, "solver"));
  caffe::SolverParameter& p = text.solver.param;
  if (!fields.empty()) {
    CFT_ASSIGN(const SolverText given, parse_solver(fields, "solver_fields"));
    p.MergeFrom(given.param);
  }
  if (!deepspark.empty()) {
    CFT_TRY(merge_deepspark(deepspark, "DeepSpark's parameters", p.mutable_sync()));
  }
  if (!sync.empty()) {
    CFT_TRY(merge_sync(sync, "sync", p.mutable_sync()));
  }
  text.has_solver = !solver.empty();
  text.has_net = !net.empty();
  if (text.has_net) {
    CFT_ASSIGN(text.net, parse_net(net, "net"));
  }
  return text;
}

Result<NetChoice> chosen_net(const TrainingText& training, const std::string& phase) {
  const SolverText& solver = training.solver;
  const NetText* given = training.has_net ? &training.net : nullptr;
  NetChoice trained;
  if (phase == "TRAIN" || (!given && !has_test_nets(solver.param))) {
    CFT_ASSIGN(trained, training_net(solver, given));
    if (phase == "TRAIN") return trained;
    given = &trained.net;
  }
  CFT_ASSIGN(std::vector<NetChoice> tests, test_nets(solver, given));
  return std::move(tests.front());
}

}  // namespace cafetiere::capi
