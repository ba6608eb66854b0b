// SPDX-License-Identifier: Apache-2.0
// Options: a JSON object read with types, defaults and a check for unknown keys.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/model/prototxt.h"
#include "core/train/nets.h"
#include "core/train/rows_feed.h"

namespace cafetiere::capi {

/// Values are taken by key; done() reports the first wrong type, or a key that nobody took.
class Options {
 public:
  static Result<Options> parse(const char* text);

  std::string text(const char* key, const std::string& fallback = "");
  int64_t number(const char* key, int64_t fallback, int64_t min, int64_t max);
  double real(const char* key, double fallback, double min, double max);
  std::vector<std::string> texts(const char* key);
  /// [{"a": .., "b": ..}] as pairs.
  std::vector<std::pair<std::string, std::string>> pairs(const char* key, const char* first,
                                                         const char* second);
  /// {"data": [1, 3, 227, 227]}: sizes above 0 of 1 to 32 axes, by name.
  std::map<std::string, std::vector<int64_t>> shapes(const char* key);
  /// {"mean.binaryproto": "BASE64"}: bytes by name.
  std::map<std::string, std::string> bytes(const char* key);
  /// The value itself as JSON text, "{}" when absent.
  std::string object(const char* key);
  /// The list itself as JSON text, "[]" when absent.
  std::string list(const char* key);

  /// Whether the key is given.
  bool has(const char* key) const { return json_.contains(key); }

  Status done() const;

 private:
  const nlohmann::json* take(const char* key);
  void fail(const char* key, const char* wanted);

  nlohmann::json json_;
  std::vector<std::string> known_;
  Status status_;
};

/// "inputs" and "mean_files".
InputBindings take_inputs(Options& options);

/// What is trained, and how.
struct TrainingText {
  SolverText solver;
  NetText net;
  bool has_solver = false;
  bool has_net = false;  ///< `net` stands in place of what the solver names
};

/// Takes the last options of a training: "solver" and "net" are prototxt, what "deepspark" and then
/// "sync" say is added to the solver's own settings. An option that nobody has taken is an error.
Result<TrainingText> take_training(Options& options);

/// What is trained or, in phase "TEST", what is tested with first, in the state that the trainer gives
/// it.
Result<NetChoice> chosen_net(const TrainingText& training, const std::string& phase);

}  // namespace cafetiere::capi
