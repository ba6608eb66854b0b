// SPDX-License-Identifier: Apache-2.0
#include "core/solver/lr_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <numbers>
#include <string_view>

#include "core/base/elementary.h"
#include "core/model/nearest.h"

namespace cafetiere {

namespace {

float power_of(float x, float y) { return static_cast<float>(elementary::pow(x, y)); }

}  // namespace

// The mixed float and double arithmetic below reproduces Caffe's bit for bit.

float LrPolicy::fixed(const LrPolicy& p, int, int*) { return p.base_; }

float LrPolicy::step(const LrPolicy& p, int iter, int* current_step) {
  *current_step = iter / p.step_size_;
  return static_cast<float>(p.base_ *
                            elementary::pow(static_cast<double>(p.gamma_), *current_step));
}

float LrPolicy::exponential(const LrPolicy& p, int iter, int*) {
  return static_cast<float>(p.base_ * elementary::pow(static_cast<double>(p.gamma_), iter));
}

float LrPolicy::inverse(const LrPolicy& p, int iter, int*) {
  return p.base_ * power_of(1.0F + p.gamma_ * static_cast<float>(iter), -p.power_);
}

float LrPolicy::multistep(const LrPolicy& p, int iter, int* current_step) {
  const auto next = static_cast<size_t>(*current_step);
  if (next < p.step_values_.size() && iter >= p.step_values_[next]) ++*current_step;
  return static_cast<float>(p.base_ *
                            elementary::pow(static_cast<double>(p.gamma_), *current_step));
}

float LrPolicy::polynomial(const LrPolicy& p, int iter, int*) {
  const float left = 1.0F - static_cast<float>(iter) / static_cast<float>(p.max_iter_);
  return p.base_ * power_of(std::max(left, 0.0F), p.power_);
}

float LrPolicy::sigmoid(const LrPolicy& p, int iter, int*) {
  const float distance = static_cast<float>(iter) - static_cast<float>(p.step_size_);
  return p.base_ * (1.0F / (1.0F + static_cast<float>(elementary::exp(-p.gamma_ * distance))));
}

/// Half a cosine wave from base_lr down to min_lr at max_iter (Loshchilov and Hutter, 2017, one
/// period).
float LrPolicy::cosine(const LrPolicy& p, int iter, int*) {
  const double done = std::min(1.0, static_cast<double>(iter) / p.max_iter_);
  const double height = (1 + elementary::cos(std::numbers::pi * done)) / 2;
  return static_cast<float>(p.min_rate_ + (p.base_ - p.min_rate_) * height);
}

/// A policy's name in the prototxt, its function, and the fields it requires.
struct LrPolicy::Policy {
  std::string_view name;
  RateFn rate;
  bool needs_gamma;
  bool needs_step_size;
  bool needs_max_iter;
};

std::span<const LrPolicy::Policy> LrPolicy::policies() {
  static constexpr Policy kPolicies[] = {
      {"fixed", fixed, false, false, false},        {"step", step, true, true, false},
      {"exp", exponential, true, false, false},     {"inv", inverse, true, false, false},
      {"multistep", multistep, true, false, false}, {"poly", polynomial, false, false, true},
      {"sigmoid", sigmoid, false, true, false},     {"cosine", cosine, false, false, true},
  };
  return kPolicies;
}

LrPolicy::LrPolicy(const caffe::SolverParameter& solver, RateFn rate)
    : rate_(rate),
      base_(solver.base_lr()),
      gamma_(solver.gamma()),
      power_(solver.power()),
      step_size_(solver.stepsize()),
      max_iter_(solver.max_iter()),
      min_rate_(solver.min_lr()),
      warmup_iter_(solver.warmup_iter()),
      warmup_start_(solver.warmup_start()),
      step_values_(solver.stepvalue().begin(), solver.stepvalue().end()) {}

Result<LrPolicy> LrPolicy::create(const caffe::SolverParameter& solver) {
  const std::string& name = solver.lr_policy();
  const auto policy = std::ranges::find(policies(), name, &Policy::name);
  if (policy == policies().end()) {
    std::vector<std::string> names;
    for (const Policy& known : policies()) names.emplace_back(known.name);
    return invalid_argument(fmt::format("Unknown learning rate policy: {} (known: {}){}",
                                        name.empty() ? "none is given" : name,
                                        fmt::join(names, ", "), did_you_mean(name, names)));
  }
  if (policy->needs_gamma && !(solver.gamma() >= 0)) {
    return invalid_argument(
        fmt::format("lr_policy {} needs gamma >= 0; it is {}", name, solver.gamma()));
  }
  if (policy->needs_step_size && solver.stepsize() <= 0) {
    return invalid_argument(
        fmt::format("lr_policy {} needs stepsize > 0; it is {}", name, solver.stepsize()));
  }
  if (policy->needs_max_iter && solver.max_iter() <= 0) {
    return invalid_argument(
        fmt::format("lr_policy {} needs max_iter > 0; it is {}", name, solver.max_iter()));
  }
  if (solver.warmup_iter() < 0 || !(solver.warmup_start() >= 0 && solver.warmup_start() <= 1)) {
    return invalid_argument(fmt::format(
        "a warm-up needs warmup_iter >= 0 and warmup_start in [0, 1]; they are {} and {}",
        solver.warmup_iter(), solver.warmup_start()));
  }
  return LrPolicy(solver, policy->rate);
}

float LrPolicy::rate(int iter, int* current_step) const {
  const float rate = rate_(*this, iter, current_step);
  if (iter >= warmup_iter_) return rate;
  const float done = static_cast<float>(iter) / static_cast<float>(warmup_iter_);
  return rate * (warmup_start_ + (1 - warmup_start_) * done);
}

}  // namespace cafetiere
