// SPDX-License-Identifier: Apache-2.0
// AdaGrad: a learning rate per weight that decreases with the sum of its squared gradients.
#include <cmath>

#include "core/solver/element_pass.h"
#include "core/solver/rules.h"

namespace cafetiere {
namespace {

struct AdaGradDelta {
  static constexpr int kHistory = 1;
  float rate, epsilon;

  float operator()(float g, float& h) const {
    h = h + g * g;
    return rate * (g / (std::sqrt(h) + epsilon));
  }
};

class AdaGrad : public UpdateRule {
 public:
  explicit AdaGrad(float epsilon) : epsilon_(epsilon) {}
  int history_per_param() const override { return AdaGradDelta::kHistory; }
  void apply(const UpdateArgs& args) const override {
    apply_each(args, AdaGradDelta{args.rate, epsilon_});
  }

 private:
  float epsilon_;
};

}  // namespace

RuleResult create_adagrad(const caffe::SolverParameter& solver) {
  CFT_TRY(refuse_momentum(solver));
  return std::unique_ptr<UpdateRule>(std::make_unique<AdaGrad>(solver.delta()));
}

}  // namespace cafetiere
