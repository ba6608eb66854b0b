// SPDX-License-Identifier: Apache-2.0
// CandidateLikelihoods: how probable a table's labels are with each candidate for an embedding's rows.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/thread_pool.h"
#include "core/train/plan_set.h"
#include "core/train/posterior_weights.h"

namespace cafetiere {

/// What evaluates nets for a posterior. All must outlive the calls.
struct PosteriorEngine {
  Device* device = nullptr;
  ThreadPool* pool = nullptr;
  uint64_t seed = 1;
  const std::atomic<bool>* cancelled = nullptr;  ///< may be null
};

/// Evaluates each row of a table once per candidate for the row of its value. A candidate is given
/// as the blob that the net computes from it, so that only what follows that blob is repeated.
class CandidateLikelihoods {
 public:
  /// Blobs by their names. Index and label are tops of the table.
  struct Blobs {
    std::string index, label, candidate, scores;
  };
  /// All must outlive this object.
  struct Setup {
    const Graph* net;  ///< begins with the table's tops and with `candidate`
    ParamPointers params;
    Blobs blobs;
    const Feed* feed;
    const Candidates* candidates;
    std::span<const float> given;  ///< a blob for each value, then one for each prototype
    int64_t first;                 ///< rows of values before it do not count
  };
  static Result<std::unique_ptr<CandidateLikelihoods>> create(Setup setup,
                                                              const PosteriorEngine& engine);

  /// Overwrites `sums`, one number per candidate of each value: the logarithms of the probabilities
  /// of the labels, summed over the shard's rows.
  Status sum_shard(int shard, std::span<float> sums);

 private:
  struct Row {
    int64_t value, label;
  };
  CandidateLikelihoods(Setup setup, const PosteriorEngine& engine)
      : setup_(std::move(setup)), engine_(engine) {}
  Status build();
  Status add_batch(int shard, int64_t sub_step);
  void put(int64_t row, int64_t value);
  Status evaluate();

  const Setup setup_;
  const PosteriorEngine engine_;
  std::unique_ptr<Plan> plan_;
  std::vector<float*> inputs_;             // of the feed's tops; null if the plan does not use one
  float* candidate_ = nullptr;             // the input
  std::vector<std::vector<float>> batch_;  // of each top
  std::vector<int64_t> width_;
  size_t index_ = 0, label_ = 0;     // among the tops
  std::vector<Row> rows_;            // in the plan's inputs, to be evaluated
  std::vector<double> sums_, logs_;  // of the shard; of the rows in the plan
};

/// An error unless `index` and `label` are tops of the feed with one number per row.
Status check_tops(const Feed& feed, const std::string& index, const std::string& label);

}  // namespace cafetiere
