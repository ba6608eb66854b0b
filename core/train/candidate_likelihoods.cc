// SPDX-License-Identifier: Apache-2.0
#include "core/train/candidate_likelihoods.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/elementary.h"
#include "core/data/source.h"
#include "core/layers/indices.h"

namespace cafetiere {
namespace {

constexpr int64_t kRowsAtOnce = 64;

int64_t width_of(const Shape& shape) { return shape.axes() > 0 ? shape.count(1) : 1; }

/// The logarithm of the probability that softmax gives a class.
double log_probability(const float* scores, int64_t classes, int64_t label) {
  const float most = *std::max_element(scores, scores + classes);
  double sum = 0;
  for (int64_t c = 0; c < classes; ++c) sum += elementary::exp(double(scores[c] - most));
  return double(scores[label] - most) - elementary::log(sum);
}

}  // namespace

Status check_tops(const Feed& feed, const std::string& index, const std::string& label) {
  const std::vector<Shape> shapes = feed.source->top_shapes();
  for (const std::string& name : {index, label}) {
    const auto top = std::ranges::find(feed.tops, name);
    if (top != feed.tops.end() && width_of(shapes[size_t(top - feed.tops.begin())]) == 1) continue;
    return invalid_argument(
        fmt::format("the posterior of an embedding needs an index and a label in each row of a "
                    "table: '{}' is not a top with one number per row",
                    name));
  }
  return {};
}

Result<std::unique_ptr<CandidateLikelihoods>> CandidateLikelihoods::create(
    Setup setup, const PosteriorEngine& engine) {
  std::unique_ptr<CandidateLikelihoods> made(new CandidateLikelihoods(std::move(setup), engine));
  CFT_TRY(made->build());
  return made;
}

Status CandidateLikelihoods::build() {
  const Feed& feed = *setup_.feed;
  CFT_TRY(check_tops(feed, setup_.blobs.index, setup_.blobs.label));
  index_ = size_t(std::ranges::find(feed.tops, setup_.blobs.index) - feed.tops.begin());
  label_ = size_t(std::ranges::find(feed.tops, setup_.blobs.label) - feed.tops.begin());
  for (const Shape& shape : feed.source->top_shapes()) {
    batch_.emplace_back(size_t(shape.count()));
    width_.push_back(width_of(shape));
  }
  const int64_t evaluations = kRowsAtOnce * setup_.candidates->per_value();
  CFT_ASSIGN(plan_, Plan::compile(*setup_.net, *engine_.device, setup_.params,
                                  {.batch = evaluations, .outputs = {setup_.blobs.scores}}));
  inputs_ = tops_of(*plan_, feed.tops);
  candidate_ = tops_of(*plan_, {setup_.blobs.candidate})[0];
  logs_.resize(size_t(evaluations));
  return {};
}

Status CandidateLikelihoods::sum_shard(int shard, std::span<float> sums) {
  sums_.assign(sums.size(), 0);
  for (int64_t q = 0; q < setup_.feed->source->batches_per_epoch(); ++q) {
    if (engine_.cancelled && *engine_.cancelled) {
      return {ErrorCode::kCancelled, "the run was cancelled"};
    }
    CFT_TRY(add_batch(shard, q));
  }
  CFT_TRY(evaluate());
  std::ranges::copy(sums_, sums.begin());
  return {};
}

Status CandidateLikelihoods::add_batch(int shard, int64_t sub_step) {
  const int64_t rows = setup_.feed->source->rows(shard, sub_step);
  if (rows == 0) return {};
  std::vector<float*> tops;
  for (std::vector<float>& top : batch_) tops.push_back(top.data());
  CFT_TRY(setup_.feed->source->fill(shard, sub_step, tops));
  const int64_t classes = plan_->outputs()[0].shape.count(1);
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t value = index_below(batch_[index_][size_t(row)], setup_.candidates->values);
    const int64_t label = index_below(batch_[label_][size_t(row)], classes);
    if (value < setup_.first || label < 0) continue;
    put(row, value);
    rows_.push_back({value, label});
    if (int64_t(rows_.size()) == kRowsAtOnce) CFT_TRY(evaluate());
  }
  return {};
}

/// Copies a row of the batch to the plan's inputs, once per candidate.
void CandidateLikelihoods::put(int64_t row, int64_t value) {
  const Candidates& c = *setup_.candidates;
  const int64_t width = c.per_value(), first = int64_t(rows_.size()) * width;
  for (size_t t = 0; t < inputs_.size(); ++t) {
    if (!inputs_[t]) continue;
    float* to = inputs_[t] + first * width_[t];
    const float* const from = batch_[t].data() + row * width_[t];
    for (int64_t i = 0; i < width; ++i) to = std::copy_n(from, width_[t], to);
  }
  const int64_t size = int64_t(setup_.given.size()) / (c.values + c.prototypes);
  float* to = candidate_ + first * size;
  for (int64_t i = 0; i < width; ++i) {
    const int64_t prototype = i < c.nearest ? c.near[size_t(value * c.nearest + i)] : -1;
    const int64_t given = prototype < 0 ? value : c.values + prototype;
    to = std::copy_n(setup_.given.data() + given * size, size, to);
  }
}

Status CandidateLikelihoods::evaluate() {
  CFT_TRY(plan_->run(*engine_.pool, {.seed = engine_.seed}));
  const Plan::Blob& scores = plan_->outputs()[0];
  const int64_t width = setup_.candidates->per_value(), classes = scores.shape.count(1);
  engine_.pool->run(int(rows_.size()), [&](int row) {
    for (int64_t i = row * width; i < (row + 1) * width; ++i) {
      logs_[size_t(i)] =
          log_probability(scores.data + i * classes, classes, rows_[size_t(row)].label);
    }
  });
  for (size_t row = 0; row < rows_.size(); ++row) {
    double* const sum = sums_.data() + rows_[row].value * width;
    for (int64_t i = 0; i < width; ++i) sum[i] += logs_[row * size_t(width) + size_t(i)];
  }
  rows_.clear();
  return {};
}

}  // namespace cafetiere
