// SPDX-License-Identifier: Apache-2.0
#include "core/train/early_stopping.h"

#include <fmt/format.h>

#include <cmath>

namespace cafetiere {

Result<std::optional<EarlyStopping>> EarlyStopping::make(const caffe::SolverParameter& solver) {
  if (!solver.has_early_stopping()) return std::optional<EarlyStopping>();
  const double tolerance = solver.early_stopping().tolerance();
  if (!(tolerance >= 0 && std::isfinite(tolerance))) {
    return invalid_argument("early_stopping: tolerance must be a number of 0 or more");
  }
  if (solver.test_interval() <= 0) {
    return invalid_argument(
        "early_stopping watches the tests: set test_interval, and give rows to test on");
  }
  const std::string& mode = solver.sync().mode();
  if (mode == "easgd" || mode == "downpour") {
    return invalid_argument(
        fmt::format("early_stopping needs replicas that end a round together, which those of mode "
                    "\"{}\" do not",
                    mode));
  }
  if (solver.snapshot_format() == caffe::SolverParameter::HDF5) {
    return invalid_argument(
        "early_stopping keeps its tests in states of the form BINARYPROTO: set snapshot_format");
  }
  return std::optional(EarlyStopping(solver));
}

EarlyStopping::EarlyStopping(const caffe::SolverParameter& solver)
    : param_(solver.early_stopping()),
      interval_(solver.test_interval()),
      tests_first_(solver.test_initialization()) {}

bool EarlyStopping::is_better(double value) const {
  if (std::isnan(value)) return false;
  return best_ < 0 || value < tests_.curve[size_t(best_)].second - param_.tolerance();
}

void EarlyStopping::restore(const StoppingTests& tests) {
  tests_ = {};
  best_ = -1;
  for (const auto& [iter, value] : tests.curve) {
    if (is_better(value)) best_ = int(tests_.curve.size());
    tests_.curve.emplace_back(iter, value);
  }
  tests_.best = tests.best;
}

bool EarlyStopping::is_due(int iter) const {
  if (iter == 0) return tests_first_ && tests_.curve.empty();
  const int last = tests_.curve.empty() ? 0 : tests_.curve.back().first;
  return iter / interval_ > last / interval_;
}

bool EarlyStopping::is_tested(int iter) const {
  return !tests_.curve.empty() && tests_.curve.back().first == iter;
}

void EarlyStopping::observe(int iter, double value, std::span<const float> weights) {
  if (is_tested(iter)) return;
  if (is_better(value)) {
    best_ = int(tests_.curve.size());
    tests_.best.assign(weights.begin(), weights.end());
  }
  tests_.curve.emplace_back(iter, value);
}

bool EarlyStopping::has_stopped() const {
  if (param_.patience() == 0) return false;
  return int64_t(tests_.curve.size()) - 1 - best_ >= int64_t(param_.patience());
}

}  // namespace cafetiere
