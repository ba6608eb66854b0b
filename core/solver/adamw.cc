// SPDX-License-Identifier: Apache-2.0
// AdamW: Adam with decoupled weight decay, which is not part of the moments (Loshchilov and Hutter,
// 2019): w -= rate * (direction + decay * w).
#include "core/solver/adam_moments.h"
#include "core/solver/element_pass.h"

namespace cafetiere {
namespace {

struct AdamWDelta {
  static constexpr int kHistory = AdamMoments::kHistory;
  AdamDirection direction;
  float rate;

  float operator()(float g, float& mean, float& square) const {
    direction.moments.add(g, mean, square);
    return rate * direction(mean, square);
  }
};

class AdamW : public UpdateRule {
 public:
  explicit AdamW(const AdamMoments& moments) : moments_(moments) {}
  int history_per_param() const override { return AdamWDelta::kHistory; }
  void apply(const UpdateArgs& args) const override {
    if (args.decay != 0) {
      const float shrink = args.rate * args.decay;
      for (float& w : args.weights) w -= shrink * decay_term(w, args.l1);
    }
    UpdateArgs decayed = args;
    decayed.decay = 0;
    apply_each(decayed, AdamWDelta{{moments_, args.iter}, args.rate});
  }

 private:
  AdamMoments moments_;
};

}  // namespace

RuleResult create_adamw(const caffe::SolverParameter& solver) {
  CFT_ASSIGN(const AdamMoments moments, AdamMoments::create(solver));
  return std::unique_ptr<UpdateRule>(std::make_unique<AdamW>(moments));
}

}  // namespace cafetiere
