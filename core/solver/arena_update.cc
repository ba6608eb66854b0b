#include "core/solver/arena_update.h"

#include <algorithm>

namespace cafetiere {
namespace {

constexpr int64_t kPiece = 1 << 14;  // floats a block

}  // namespace

Result<ArenaUpdate> ArenaUpdate::make(const caffe::SolverParameter& solver,
                                      std::vector<ParamSpan> params, int64_t learned) {
  ArenaUpdate update;
  CFT_ASSIGN(update.rule_, make_update_rule(solver));
  CFT_ASSIGN(update.l1_, uses_l1(solver));
  update.weight_decay_ = solver.weight_decay();
  update.params_ = std::move(params);
  update.learned_ = learned;
  return update;
}

void ArenaUpdate::apply(const UpdateStep& step, int64_t begin, int64_t end,
                        std::span<float> weights, std::span<const float> gradient,
                        std::span<const std::span<float>> history, ThreadPool& pool) const {
  const int64_t blocks = (end - begin + kPiece - 1) / kPiece;
  pool.run(int(blocks), [&](int block) {
    const int64_t b = begin + block * kPiece, e = std::min(end, b + kPiece);
    for (const ParamSpan& p : params_) {
      const int64_t from = std::max(b, p.offset), to = std::min(e, p.offset + p.count);
      if (from < to) apply_piece(step, p, from, to, begin, weights, gradient, history);
    }
  });
}

void ArenaUpdate::apply_piece(const UpdateStep& step, const ParamSpan& p, int64_t begin,
                              int64_t end, int64_t slice, std::span<float> weights,
                              std::span<const float> gradient,
                              std::span<const std::span<float>> history) const {
  const size_t at = size_t(begin - slice), count = size_t(end - begin);
  const std::span<float> w = weights.subspan(size_t(begin), count);
  const std::span<const float> g = gradient.subspan(at, count);
  if (p.statistic) {
    float keep = 1;
    for (int i = 0; i < step.passes; ++i) keep *= p.fraction;
    for (size_t i = 0; i < count; ++i) w[i] = keep * w[i] + g[i];
    return;
  }
  if (p.lr_mult == 0) return;
  UpdateArgs args{.weights = w,
                  .gradient = g,
                  .history = {},
                  .rate = step.rate * p.lr_mult,
                  .decay = weight_decay_ * p.decay_mult,
                  .l1 = l1_,
                  .gradient_scale = step.gradient_scale,
                  .iter = step.iter};
  for (size_t h = 0; h < history.size(); ++h) args.history[h] = history[h].subspan(at, count);
  rule_->apply(args);
}

}  // namespace cafetiere
