// Adam: momentum divided by a running root mean square, both corrected for their start at zero.
#include <cmath>

#include "core/solver/element_pass.h"
#include "core/solver/rules.h"

namespace cafetiere {
namespace {

struct AdamDelta {
  static constexpr int kHistory = 2;
  float rate, beta1, beta2, epsilon;

  float operator()(float g, float& mean, float& square) const {
    mean = beta1 * mean + (1 - beta1) * g;
    square = beta2 * square + (1 - beta2) * (g * g);
    return rate * (mean / (std::sqrt(square) + epsilon));
  }
};

class Adam : public UpdateRule {
 public:
  Adam(float beta1, float beta2, float epsilon) : beta1_(beta1), beta2_(beta2), epsilon_(epsilon) {}
  int history_per_param() const override { return AdamDelta::kHistory; }
  void apply(const UpdateArgs& args) const override {
    const int step = args.iter + 1;
    const double bias1 = 1 - std::pow(static_cast<double>(beta1_), step);
    const double bias2 = 1 - std::pow(static_cast<double>(beta2_), step);
    const auto correction = static_cast<float>(std::sqrt(bias2) / bias1);
    apply_each(args, AdamDelta{args.rate * correction, beta1_, beta2_, epsilon_});
  }

 private:
  float beta1_, beta2_, epsilon_;
};

}  // namespace

RuleResult create_adam(const caffe::SolverParameter& solver) {
  return std::unique_ptr<UpdateRule>(
      std::make_unique<Adam>(solver.momentum(), solver.momentum2(), solver.delta()));
}

}  // namespace cafetiere
