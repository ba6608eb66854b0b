// Options: a JSON object read with types, defaults and a check for unknown keys.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/model/proto/caffe.pb.h"

namespace cafetiere::capi {

/// Values are taken by key; done() reports the first wrong type, or a key that nobody took.
class Options {
 public:
  static Result<Options> parse(const char* text);

  std::string text(const char* key, const std::string& fallback = "");
  int64_t number(const char* key, int64_t fallback, int64_t min, int64_t max);
  std::vector<std::string> texts(const char* key);
  /// [{"a": .., "b": ..}] as pairs.
  std::vector<std::pair<std::string, std::string>> pairs(const char* key, const char* first,
                                                         const char* second);
  /// The value itself as JSON text, "{}" when absent.
  std::string object(const char* key);

  Status done() const;

 private:
  const nlohmann::json* take(const char* key);
  void fail(const char* key, const char* wanted);

  nlohmann::json json_;
  std::vector<std::string> known_;
  Status status_;
};

/// Adds what the options "deepspark" and then "sync" say to a solver's own settings.
Status merge_sync_options(const std::string& deepspark, const std::string& sync,
                          caffe::SolverParameter* solver);

}  // namespace cafetiere::capi
