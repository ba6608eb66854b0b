// SPDX-License-Identifier: Apache-2.0
// EmbeddingPosterior: the rows that an embedding gets when training ends (PosteriorParameter).
//
// Training finds the most probable row for each value of a column. The few rows of a table with one
// value leave much open, and predictions are better from the mean over what they leave open. The
// prior is taken from all values (empirical Bayes; Robbins, 1956): prototypes, which are means of
// similar rows of the embedding, and how many values resemble each.
#pragma once

#include "core/train/candidate_likelihoods.h"
#include "core/train/nets.h"

namespace cafetiere {

/// The posterior means of one embedding, in three steps of which only the second reads the table:
/// find_candidates(), sum_shard() for every shard, take_means() with the sum over all shards.
class EmbeddingPosterior {
 public:
  /// Those of all embeddings of the net that ask for one and are trained, in the net's order.
  /// `trained`: the training net of `choice`, which must outlive them.
  static Result<std::vector<EmbeddingPosterior>> all(const NetChoice& choice, const Graph& trained);

  /// The name of the embedding's layer.
  const std::string& layer() const { return layer_; }
  /// An error unless the feed provides what sum_shard() needs.
  Status check(const Feed& feed) const { return check_tops(feed, blobs_.index, blobs_.label); }

  /// Floats of what find_candidates() returns, and of a shard's sums.
  size_t shared_floats() const;
  size_t sum_floats() const { return size_t(candidates_.count()); }

  /// Finds prototypes and which of them are candidates for which value. `weights`, here and below:
  /// the arena of the training net. Returns what the other steps need to know of it: the blobs
  /// computed from the values' rows and from the prototypes, and the candidates.
  Result<std::vector<float>> find_candidates(std::span<float> weights,
                                             const PosteriorEngine& engine);
  /// Sums of logarithms of likelihoods over a shard's rows.
  Status sum_shard(std::span<float> weights, std::span<const float> shared, const Feed& feed,
                   int shard, const PosteriorEngine& engine, std::span<float> sums) const;
  /// Replaces the embedding's rows in `weights` with their means. Only where find_candidates() was
  /// called.
  void take_means(std::span<const float> sums, std::span<float> weights) const;
  /// The rows in `weights`.
  std::span<float> rows(std::span<float> weights) const;

 private:
  EmbeddingPosterior() = default;
  static Result<EmbeddingPosterior> make(const NetChoice& choice, const Graph& trained,
                                         const Node& node);
  Result<std::vector<float>> outputs_of(std::span<const float> rows, std::span<float> weights,
                                        const PosteriorEngine& engine) const;
  std::vector<float> means_of(std::span<const float> rows, std::span<const int32_t> group) const;

  std::string layer_;
  CandidateLikelihoods::Blobs blobs_;
  std::string embedded_;  // the embedding's top
  const Graph* trained_ = nullptr;
  Graph before_, after_;  // from a row to the candidate's blob; from it to the scores
  int64_t offset_ = 0, size_ = 0, output_size_ = 0, first_ = 0;
  Candidates candidates_;
  std::vector<float> prototypes_;
};

}  // namespace cafetiere
