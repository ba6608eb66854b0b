// SPDX-License-Identifier: Apache-2.0
// OwnShard: the rows of one shard, whichever shard is requested.
#pragma once

#include "core/data/source.h"

namespace cafetiere {

/// Presents one shard of a source as every shard. For ranks that keep their rows while others leave
/// and join: a rank reads only its own shard, and assumes that the others have the same number of
/// rows.
class OwnShard : public Source {
 public:
  /// `source` must outlive this object.
  explicit OwnShard(Source* source, int shard = 0) : source_(source), shard_(shard) {}

  std::vector<Shape> top_shapes() const override { return source_->top_shapes(); }
  int64_t rows(int, int64_t sub_step) const override { return source_->rows(shard_, sub_step); }
  int64_t batches_per_epoch() const override { return source_->batches_per_epoch(); }
  Status fill(int, int64_t sub_step, std::span<float* const> tops) override {
    return source_->fill(shard_, sub_step, tops);
  }

 private:
  Source* const source_;
  const int shard_;
};

}  // namespace cafetiere
