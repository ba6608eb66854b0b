// SPDX-License-Identifier: Apache-2.0
#include "core/train/tester.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/comm/collectives.h"
#include "core/comm/shard_tree.h"
#include "core/solver/clip.h"

namespace cafetiere {

std::string loss_note(float weight, double value) {
  if (weight == 0) return "";
  return fmt::format(" (* {:g} = {:g} loss)", weight, weight * value);
}

Result<TestScores> Tester::run(const TestRun& run, const TestFeed& feed, int64_t index,
                               ThreadPool& pool) {
  const ShardRange mine = shards_of_rank(rank_of(run.group), size_of(run.group), run.shards);
  CFT_ASSIGN(const Plan* plan, plans_.at(0));
  const OutputValues values(*plan, run.detections.has_value());
  detections_.assign(values.outputs().size(), {});
  TestScores scores;
  for (const OutputValues::Output& out : values.outputs()) {
    scores.outputs.insert(scores.outputs.end(), out.count, {out.name, 0, out.loss_weight});
  }
  const int outputs = int(scores.outputs.size()), k = outputs + 2;  // plus the loss and the rows
  std::vector<double> sums;
  const int64_t first = feed.whole ? 0 : index * feed.batches;
  for (int shard = mine.begin; shard < mine.end; ++shard) {
    std::vector<double> of_shard(size_t(k), 0);
    for (int64_t q = first; q < first + feed.batches; ++q) {
      if (run.go_on) {
        CFT_ASSIGN(const bool go_on, run.go_on());
        scores.interrupted = !go_on;
        if (!go_on) return scores;
      }
      CFT_TRY(add_batch(run, feed, shard, q, pool, values, of_shard));
    }
    sums.insert(sums.end(), of_shard.begin(), of_shard.end());
  }
  std::vector<double> all(size_t(run.shards) * size_t(k));
  CFT_TRY(gather_shard_values(run.group, run.shards, sums, k, all));
  const auto total = [&](int which) { return shard_sum(all, run.shards, which); };
  const double rows = total(k - 1);
  if (rows == 0) return scores;
  for (int i = 0; i < outputs; ++i) scores.outputs[size_t(i)].mean = total(i) / rows;
  scores.loss = total(outputs) / rows;
  CFT_TRY(reduce_detections(run, values, &scores));
  return scores;
}

void Tester::keep_detections(const Plan& plan, const OutputValues& values) {
  for (size_t o = 0; o < detections_.size(); ++o) {
    if (!values.outputs()[o].detections) continue;
    const Plan::Blob& blob = plan.outputs()[o];
    detections_[o].insert(detections_[o].end(), blob.data, blob.data + blob.shape.count());
  }
}

/// Sets the mean average precision of each output that lists detections: over the rows of all
/// shards, in shard order, so that it is equal on every rank.
Status Tester::reduce_detections(const TestRun& run, const OutputValues& values,
                                 TestScores* scores) {
  const ShardRange mine = shards_of_rank(rank_of(run.group), size_of(run.group), run.shards);
  for (size_t o = 0; o < detections_.size(); ++o) {
    const OutputValues::Output& output = values.outputs()[o];
    if (!output.detections) continue;
    const auto k = detections_[o].size() / size_t(std::max(1, mine.end - mine.begin));
    std::vector<double> all(size_t(run.shards) * k);
    CFT_TRY(gather_shard_values(run.group, run.shards, detections_[o], int(k), all));
    scores->precisions = average_precisions(all, *run.detections);
    double sum = 0;
    for (const auto& [label, precision] : scores->precisions) sum += precision;
    const double classes = double(std::max<size_t>(1, scores->precisions.size()));
    scores->outputs[output.first].mean = sum / classes;
  }
  return {};
}

/// `sums`: the values of the outputs, the loss, and the number of rows.
Status Tester::add_batch(const TestRun& run, const TestFeed& feed, int shard, int64_t sub_step,
                         ThreadPool& pool, const OutputValues& values, std::span<double> sums) {
  const int64_t rows = feed.feeds.empty() ? 0 : feed.feeds[0].source->rows(shard, sub_step);
  if (!feed.feeds.empty() && rows == 0) return {};
  CFT_ASSIGN(Plan * plan, plans_.at(rows));
  for (const Feed& f : feed.feeds) CFT_TRY(fill_plan(*plan, f, shard, sub_step));
  CFT_TRY(plan->run(pool, {.seed = run.seed, .shard = shard, .sub_step = sub_step}));
  const double weight = rows > 0 ? double(rows) : 1;
  values.add(*plan, weight, sums);
  keep_detections(*plan, values);
  sums[values.count()] += weight * double(plan->loss());
  sums[values.count() + 1] += weight;
  return {};
}

}  // namespace cafetiere
