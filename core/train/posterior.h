// SPDX-License-Identifier: Apache-2.0
// Posterior means at the end of a run whose ranks have equal weights.
#pragma once

#include <vector>

#include "core/base/log.h"
#include "core/comm/group.h"
#include "core/train/embedding_posterior.h"

namespace cafetiere {

/// The ranks of a run and their rows.
struct PosteriorRun {
  Group* group = nullptr;  ///< may be null
  int shards = 1;          ///< of all ranks
  const std::vector<Feed>* feeds = nullptr;
  PosteriorEngine engine;
  Logger log;
};

/// An error unless the feeds provide the rows of one table with what each posterior needs.
Status check_posteriors(const std::vector<EmbeddingPosterior>& posteriors,
                        const std::vector<Feed>& feeds);

/// Replaces the rows of each embedding in `weights`; reads all rows of the table once for each.
/// Every rank calls it and gets the same rows, which depend neither on the number of ranks nor on
/// who has which shard.
Status take_posterior_means(std::vector<EmbeddingPosterior>& posteriors, std::span<float> weights,
                            const PosteriorRun& run);

}  // namespace cafetiere
