// SPDX-License-Identifier: Apache-2.0
// RMSProp: a learning rate per weight, divided by a running root mean square of its gradients.
#include <fmt/format.h>

#include <cmath>

#include "core/solver/element_pass.h"
#include "core/solver/rules.h"

namespace cafetiere {
namespace {

struct RmsPropDelta {
  static constexpr int kHistory = 1;
  float rate, keep, epsilon;

  float operator()(float g, float& h) const {
    h = keep * h + (1 - keep) * (g * g);
    return rate * (g / (std::sqrt(h) + epsilon));
  }
};

class RmsProp : public UpdateRule {
 public:
  RmsProp(float keep, float epsilon) : keep_(keep), epsilon_(epsilon) {}
  int history_per_param() const override { return RmsPropDelta::kHistory; }
  void apply(const UpdateArgs& args) const override {
    apply_each(args, RmsPropDelta{args.rate, keep_, epsilon_});
  }

 private:
  float keep_, epsilon_;
};

}  // namespace

RuleResult create_rmsprop(const caffe::SolverParameter& solver) {
  CFT_TRY(refuse_momentum(solver));
  if (!(solver.rms_decay() >= 0 && solver.rms_decay() < 1)) {
    return invalid_argument(
        fmt::format("RMSProp needs 0 <= rms_decay < 1; it is {}", solver.rms_decay()));
  }
  return std::unique_ptr<UpdateRule>(std::make_unique<RmsProp>(solver.rms_decay(), solver.delta()));
}

}  // namespace cafetiere
