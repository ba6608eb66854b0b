// SPDX-License-Identifier: Apache-2.0
// AdaDelta: steps in units of the weights, from running averages of squared gradients and squared
// steps.
#include <cmath>

#include "core/solver/element_pass.h"
#include "core/solver/rules.h"

namespace cafetiere {
namespace {

struct AdaDeltaDelta {
  static constexpr int kHistory = 2;
  float rate, keep, epsilon;

  float operator()(float g, float& gradients, float& steps) const {
    gradients = keep * gradients + (1 - keep) * (g * g);
    const float step = g * std::sqrt((steps + epsilon) / (gradients + epsilon));
    steps = keep * steps + (1 - keep) * (step * step);
    return rate * step;
  }
};

class AdaDelta : public UpdateRule {
 public:
  AdaDelta(float keep, float epsilon) : keep_(keep), epsilon_(epsilon) {}
  int history_per_param() const override { return AdaDeltaDelta::kHistory; }
  void apply(const UpdateArgs& args) const override {
    apply_each(args, AdaDeltaDelta{args.rate, keep_, epsilon_});
  }

 private:
  float keep_, epsilon_;
};

}  // namespace

RuleResult create_adadelta(const caffe::SolverParameter& solver) {
  return std::unique_ptr<UpdateRule>(std::make_unique<AdaDelta>(solver.momentum(), solver.delta()));
}

}  // namespace cafetiere
