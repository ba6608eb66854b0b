// SPDX-License-Identifier: Apache-2.0
#include "core/solver/arena_update.h"

#include <algorithm>
#include <cmath>

#include "core/solver/clip.h"

namespace cafetiere {
namespace {

constexpr int64_t kChunk = 1 << 14;  // floats per block of work
constexpr int64_t kBlock = kNormBlock;

bool is_learned(const ParamSpan& p) { return !p.statistic && p.lr_mult != 0; }

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

void ArenaUpdate::apply(const UpdateStep& step, const ArenaSlice& slice, ThreadPool& pool) const {
  const int64_t chunks = (slice.end - slice.begin + kChunk - 1) / kChunk;
  pool.run(int(chunks), [&](int chunk) {
    const int64_t b = slice.begin + chunk * kChunk, e = std::min(slice.end, b + kChunk);
    for (size_t i = 0; i < params_.size(); ++i) {
      const ParamSpan& p = params_[i];
      const int64_t from = std::max(b, p.offset), to = std::min(e, p.offset + p.count);
      if (from < to) apply_piece(step, {i, from, to}, slice);
    }
  });
}

void ArenaUpdate::apply_piece(const UpdateStep& step, const Piece& piece,
                              const ArenaSlice& slice) const {
  const ParamSpan& p = params_[piece.param];
  if (is_learned(p)) rule_->apply(args_of(step, piece, slice));
  if (!p.statistic) return;
  float keep = 1;
  for (int i = 0; i < step.passes; ++i) keep *= p.fraction;
  for (int64_t i = piece.begin; i < piece.end; ++i) {
    float& w = slice.weights[size_t(i)];
    w = keep * w + slice.gradient[size_t(i - slice.begin)];
  }
}

UpdateArgs ArenaUpdate::args_of(const UpdateStep& step, const Piece& piece,
                                const ArenaSlice& slice) const {
  const ParamSpan& p = params_[piece.param];
  const size_t at = size_t(piece.begin - slice.begin), count = size_t(piece.end - piece.begin);
  UpdateArgs args{.weights = slice.weights.subspan(size_t(piece.begin), count),
                  .gradient = slice.gradient.subspan(at, count),
                  .history = {},
                  .rate = step.rate * p.lr_mult,
                  .decay = weight_decay_ * p.decay_mult,
                  .l1 = l1_,
                  .gradient_scale = step.gradient_scale,
                  .iter = step.iter,
                  .trust = step.trust.empty() ? 1 : step.trust[piece.param]};
  for (size_t h = 0; h < slice.history.size(); ++h) {
    args.history[h] = slice.history[h].subspan(at, count);
  }
  return args;
}

/// Learned parameters lie in the arena in order, so the pieces of consecutive slices are
/// consecutive too.
std::vector<ArenaUpdate::Piece> ArenaUpdate::pieces_of(int64_t begin, int64_t end) const {
  std::vector<Piece> pieces;
  for (size_t i = 0; i < params_.size(); ++i) {
    const ParamSpan& p = params_[i];
    if (!is_learned(p)) continue;
    const int64_t last = std::min(end, p.offset + p.count);
    for (int64_t from = std::max(begin, p.offset); from < last;) {
      const int64_t to = std::min(last, (from / kBlock + 1) * kBlock);
      pieces.push_back({i, from, to});
      from = to;
    }
  }
  return pieces;
}

std::vector<SquareNorms> ArenaUpdate::prepare(const UpdateStep& step, const ArenaSlice& slice,
                                              ThreadPool& pool) const {
  const std::vector<Piece> pieces = pieces_of(slice.begin, slice.end);
  std::vector<SquareNorms> norms(pieces.size());
  pool.run(int(pieces.size()), [&](int i) {
    norms[size_t(i)] = rule_->prepare(args_of(step, pieces[size_t(i)], slice));
  });
  return norms;
}

std::vector<float> ArenaUpdate::trust_ratios(std::span<const SquareNorms> pieces) const {
  std::vector<std::vector<double>> weights(params_.size()), steps(params_.size());
  const std::vector<Piece> places = pieces_of(0, learned_);
  for (size_t i = 0; i < places.size(); ++i) {
    weights[places[i].param].push_back(pieces[i].weights);
    steps[places[i].param].push_back(pieces[i].step);
  }
  std::vector<float> ratios;
  for (size_t i = 0; i < params_.size(); ++i) {
    const double w = tree_sum(weights[i]), s = tree_sum(steps[i]);
    ratios.push_back(w > 0 && s > 0 ? static_cast<float>(std::sqrt(w / s)) : 1);
  }
  return ratios;
}

}  // namespace cafetiere
