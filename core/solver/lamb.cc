// SPDX-License-Identifier: Apache-2.0
// LAMB: AdamW's step, scaled per blob to `rate` times the norm of the weights (You et al., 2020,
// with phi(x) = x). For large batches.
#include <array>
#include <cmath>

#include "core/solver/adam_moments.h"
#include "core/solver/clip.h"
#include "core/solver/element_pass.h"

namespace cafetiere {
namespace {

class Lamb : public UpdateRule {
 public:
  explicit Lamb(const AdamMoments& moments) : moments_(moments) {}
  int history_per_param() const override { return AdamMoments::kHistory; }
  bool needs_norms() const override { return true; }

  SquareNorms prepare(const UpdateArgs& args) const override {
    const size_t n = args.weights.size();
    for (size_t i = 0; i < n; ++i) {
      moments_.add(args.gradient[i] * args.gradient_scale, args.history[0][i], args.history[1][i]);
    }
    std::array<float, kNormBlock> steps;
    const AdamDirection direction(moments_, args.iter);
    for (size_t i = 0; i < n; ++i) steps[i] = step(args, direction, i);
    return {square_sum(args.weights), square_sum({steps.data(), n})};
  }

  void apply(const UpdateArgs& args) const override {
    const float rate = args.rate * args.trust;
    const AdamDirection direction(moments_, args.iter);
    for (size_t i = 0; i < args.weights.size(); ++i) {
      args.weights[i] -= rate * step(args, direction, i);
    }
  }

 private:
  static float step(const UpdateArgs& args, const AdamDirection& direction, size_t i) {
    return direction(args.history[0][i], args.history[1][i]) +
           args.decay * decay_term(args.weights[i], args.l1);
  }

  AdamMoments moments_;
};

}  // namespace

RuleResult create_lamb(const caffe::SolverParameter& solver) {
  CFT_ASSIGN(const AdamMoments moments, AdamMoments::create(solver));
  return std::unique_ptr<UpdateRule>(std::make_unique<Lamb>(moments));
}

}  // namespace cafetiere
