// SPDX-License-Identifier: Apache-2.0
// Nesterov: SGD with Nesterov momentum, whose step looks ahead along the new momentum.
#include "core/solver/element_pass.h"
#include "core/solver/rules.h"

namespace cafetiere {
namespace {

struct NesterovDelta {
  static constexpr int kHistory = 1;
  float rate, momentum;

  float operator()(float g, float& v) const {
    const float before = v;
    v = momentum * before + rate * g;
    return -momentum * before + (1 + momentum) * v;
  }
};

class Nesterov : public UpdateRule {
 public:
  explicit Nesterov(float momentum) : momentum_(momentum) {}
  int history_per_param() const override { return NesterovDelta::kHistory; }
  void apply(const UpdateArgs& args) const override {
    apply_each(args, NesterovDelta{args.rate, momentum_});
  }

 private:
  float momentum_;
};

}  // namespace

RuleResult create_nesterov(const caffe::SolverParameter& solver) {
  return std::unique_ptr<UpdateRule>(std::make_unique<Nesterov>(solver.momentum()));
}

}  // namespace cafetiere
