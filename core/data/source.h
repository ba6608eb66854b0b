// SPDX-License-Identifier: Apache-2.0
// Source: provides the batches of a net's data layers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/log.h"
#include "core/base/status.h"
#include "core/tensor/shape.h"

namespace cafetiere {

/// Fills the tops of one data layer, or of several. A sub-step is one forward/backward pass,
/// numbered step * iter_size + i. The batch of (shard, sub_step) is a pure function of the source's
/// rows and seed, so that ranks, retries and resumed runs see the same batches.
class Source {
 public:
  virtual ~Source() = default;

  /// Shapes of the tops for a full batch; axis 0 is the batch.
  virtual std::vector<Shape> top_shapes() const = 0;

  /// Rows of this shard's batch at this sub-step: the batch size, or fewer at the end of an epoch.
  virtual int64_t rows(int shard, int64_t sub_step) const = 0;

  /// Sub-steps per epoch of a table; 0 for sources without epochs.
  virtual int64_t batches_per_epoch() const { return 0; }

  /// Writes rows(shard, sub_step) rows to each top, row-major float32, transforms applied.
  /// Called by one thread at a time for a given shard, unless it is parallel().
  virtual Status fill(int shard, int64_t sub_step, std::span<float* const> tops) = 0;

  /// Whether several threads may call fill() concurrently, even for the same shard.
  virtual bool parallel() const { return false; }
};

/// How to read the files that a data layer names.
struct SourceOptions {
  bool train = false;  ///< the net's phase
  int shards = 1;
  uint64_t seed = 0;
  Logger log = {};
};

}  // namespace cafetiere
