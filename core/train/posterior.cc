// SPDX-License-Identifier: Apache-2.0
#include "core/train/posterior.h"

#include <fmt/format.h>

#include "core/comm/collectives.h"
#include "core/comm/shard_tree.h"
#include "core/data/source.h"

namespace cafetiere {
namespace {

/// Sums over the rows of all ranks.
Result<std::vector<float>> sum_shards(const EmbeddingPosterior& posterior, std::span<float> weights,
                                      std::span<const float> shared, const PosteriorRun& run) {
  const ShardRange mine = shards_of_rank(rank_of(run.group), size_of(run.group), run.shards);
  TreeSum sum(mine, run.shards, posterior.sum_floats(), run.engine.pool);
  std::vector<float> sums(posterior.sum_floats());
  for (int shard = mine.begin; shard < mine.end; ++shard) {
    CFT_TRY(posterior.sum_shard(weights, shared, run.feeds->front(), shard, run.engine, sums));
    CFT_TRY(sum.add(sums));
  }
  CFT_TRY(all_reduce(run.group, sum, sums));
  return sums;
}

/// Rank 0 finds the candidates and takes the means: processors of other ranks may round otherwise.
Status take_means(EmbeddingPosterior& posterior, std::span<float> weights,
                  const PosteriorRun& run) {
  const bool leads = rank_of(run.group) == 0;
  std::vector<float> shared(posterior.shared_floats());
  if (leads) {
    CFT_ASSIGN(shared, posterior.find_candidates(weights, run.engine));
  }
  CFT_TRY(broadcast(run.group, 0, std::as_writable_bytes(std::span(shared))));
  CFT_ASSIGN(const std::vector<float> sums, sum_shards(posterior, weights, shared, run));
  if (leads) posterior.take_means(sums, weights);
  return broadcast(run.group, 0, std::as_writable_bytes(posterior.rows(weights)));
}

}  // namespace

Status check_posteriors(const std::vector<EmbeddingPosterior>& posteriors,
                        const std::vector<Feed>& feeds) {
  if (posteriors.empty()) return {};
  if (feeds.size() != 1 || feeds[0].tops.empty() || feeds[0].source->batches_per_epoch() == 0) {
    return invalid_argument(fmt::format(
        "layer '{}': the posterior of an embedding needs the rows of a table to train on",
        posteriors[0].layer()));
  }
  for (const EmbeddingPosterior& posterior : posteriors) CFT_TRY(posterior.check(feeds[0]));
  return {};
}

Status take_posterior_means(std::vector<EmbeddingPosterior>& posteriors, std::span<float> weights,
                            const PosteriorRun& run) {
  for (EmbeddingPosterior& posterior : posteriors) {
    run.log.info("Posterior means of {}: one pass over the rows", posterior.layer());
    CFT_TRY(take_means(posterior, weights, run));
  }
  return {};
}

}  // namespace cafetiere
