// SPDX-License-Identifier: Apache-2.0
// SGD: momentum on the gradient; the learning rate is part of the momentum.
#include "core/solver/element_pass.h"
#include "core/solver/rules.h"

namespace cafetiere {
namespace {

struct SgdDelta {
  static constexpr int kHistory = 1;
  float rate, momentum;

  float operator()(float g, float& v) const {
    v = momentum * v + rate * g;
    return v;
  }
};

class Sgd : public UpdateRule {
 public:
  explicit Sgd(float momentum) : momentum_(momentum) {}
  int history_per_param() const override { return SgdDelta::kHistory; }
  void apply(const UpdateArgs& args) const override {
    apply_each(args, SgdDelta{args.rate, momentum_});
  }

 private:
  float momentum_;
};

}  // namespace

RuleResult create_sgd(const caffe::SolverParameter& solver) {
  return std::unique_ptr<UpdateRule>(std::make_unique<Sgd>(solver.momentum()));
}

}  // namespace cafetiere
