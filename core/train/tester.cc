#include "core/train/tester.h"

#include <fmt/format.h>

#include "core/comm/collectives.h"
#include "core/comm/shard_tree.h"
#include "core/solver/clip.h"

namespace cafetiere {

std::string loss_note(float weight, double value) {
  if (weight == 0) return "";
  return fmt::format(" (* {:g} = {:g} loss)", weight, weight * value);
}

Result<std::vector<TestOutput>> Tester::run(Group* group, int shards, const TestFeed& feed,
                                            int64_t index, ThreadPool& pool, uint64_t seed) {
  const ShardRange mine = shards_of_rank(rank_of(group), size_of(group), shards);
  CFT_ASSIGN(Plan * plan, plans_.at(0));
  outputs_.clear();
  for (const Plan::Blob& blob : plan->outputs()) {
    for (int64_t i = 0; i < blob.shape.count(); ++i) {
      outputs_.push_back({blob.name, 0, blob.loss_weight});
    }
  }
  const int k = int(outputs_.size()) + 1;  // the last one counts rows
  std::vector<double> sums;
  const int64_t first = feed.whole ? 0 : index * feed.batches;
  for (int shard = mine.begin; shard < mine.end; ++shard) {
    std::vector<double> of_shard(size_t(k), 0);
    for (int64_t q = first; q < first + feed.batches; ++q) {
      CFT_TRY(add_batch(feed, shard, q, pool, seed, of_shard));
    }
    sums.insert(sums.end(), of_shard.begin(), of_shard.end());
  }
  std::vector<double> all(size_t(shards) * size_t(k));
  CFT_TRY(gather_shard_values(group, shards, sums, k, all));
  const auto total = [&](int which) {
    std::vector<double> terms;
    for (int s = 0; s < shards; ++s) terms.push_back(all[size_t(s) * size_t(k) + size_t(which)]);
    return tree_sum(terms);
  };
  const double rows = total(k - 1);
  for (int i = 0; i + 1 < k; ++i) outputs_[size_t(i)].mean = rows > 0 ? total(i) / rows : 0;
  return outputs_;
}

Status Tester::add_batch(const TestFeed& feed, int shard, int64_t sub_step, ThreadPool& pool,
                         uint64_t seed, std::vector<double>& sums) {
  const int64_t rows = feed.feeds.empty() ? 0 : feed.feeds[0].source->rows(shard, sub_step);
  if (!feed.feeds.empty() && rows == 0) return {};
  CFT_ASSIGN(Plan * plan, plans_.at(rows));
  for (const Feed& f : feed.feeds) {
    std::vector<float*> tops;
    for (const Plan::Blob& input : plan->inputs()) {
      if (input.layer == f.layer) tops.push_back(input.data);
    }
    CFT_TRY(f.source->fill(shard, sub_step, tops));
  }
  plan->run(pool, {.seed = seed, .sub_step = sub_step});
  const double weight = rows > 0 ? double(rows) : 1;
  size_t at = 0;
  for (const Plan::Blob& blob : plan->outputs()) {
    // An output with a row for each input (a batch that got shorter) has fewer elements: only what
    // is there is added.
    for (int64_t i = 0; i < blob.shape.count() && at + 1 < sums.size(); ++i) {
      sums[at++] += weight * double(blob.data[i]);
    }
  }
  sums.back() += weight;
  return {};
}

}  // namespace cafetiere
