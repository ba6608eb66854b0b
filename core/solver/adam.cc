// SPDX-License-Identifier: Apache-2.0
// Adam: momentum divided by a running root mean square, both bias-corrected.
#include <cmath>

#include "core/solver/adam_moments.h"
#include "core/solver/element_pass.h"

namespace cafetiere {
namespace {

struct AdamDelta {
  static constexpr int kHistory = AdamMoments::kHistory;
  AdamMoments moments;
  float rate;

  float operator()(float g, float& mean, float& square) const {
    moments.add(g, mean, square);
    return rate * (mean / (std::sqrt(square) + moments.epsilon));
  }
};

class Adam : public UpdateRule {
 public:
  explicit Adam(const AdamMoments& moments) : moments_(moments) {}
  int history_per_param() const override { return AdamDelta::kHistory; }
  void apply(const UpdateArgs& args) const override {
    const int step = args.iter + 1;
    const double bias1 = 1 - elementary::pow(static_cast<double>(moments_.beta1), step);
    const double bias2 = 1 - elementary::pow(static_cast<double>(moments_.beta2), step);
    const auto correction = static_cast<float>(std::sqrt(bias2) / bias1);
    apply_each(args, AdamDelta{moments_, args.rate * correction});
  }

 private:
  AdamMoments moments_;
};

}  // namespace

RuleResult create_adam(const caffe::SolverParameter& solver) {
  CFT_ASSIGN(const AdamMoments moments, AdamMoments::create(solver));
  return std::unique_ptr<UpdateRule>(std::make_unique<Adam>(moments));
}

}  // namespace cafetiere
