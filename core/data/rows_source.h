// SPDX-License-Identifier: Apache-2.0
// RowsSource: the batches of a table of rows.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/data/row_reader.h"
#include "core/data/sampler.h"
#include "core/data/shard_store.h"
#include "core/data/source.h"
#include "core/data/transformer.h"

namespace cafetiere {

/// Turns rows of a ShardStore into batches: selects rows with the sampler, converts columns to
/// floats and transforms them. Numbers of any type are converted; a string is parsed as a number.
class RowsSource : public Source {
 public:
  /// `batch`: rows per shard and sub-step; `train` decides where transforms crop.
  static Result<std::unique_ptr<RowsSource>> make(std::shared_ptr<const ShardStore> store,
                                                  const std::vector<RowsInput>& inputs,
                                                  int64_t batch, bool train, uint64_t seed);

  std::vector<Shape> top_shapes() const override;
  int64_t rows(int shard, int64_t sub_step) const override {
    return sampler_.rows(shard, sub_step);
  }
  Status fill(int shard, int64_t sub_step, std::span<float* const> tops) override;
  bool parallel() const override { return true; }

  int64_t batches_per_epoch() const override { return sampler_.batches_per_epoch(); }

  /// Epochs, and the rows of all shards.
  const Sampler& sampler() const { return sampler_; }

  /// Checks every row of the owned shards for the number of values, labels, text that is not a
  /// number, NaN and infinity. The error names column, row and value.
  Status validate() const;

 private:
  std::vector<uint32_t> batch(int shard, int64_t sub_step);
  void read_ahead(int shard, std::span<const uint32_t> rows) const;

  RowsSource(std::shared_ptr<const ShardStore> store, Sampler sampler, RowReader reader)
      : store_(std::move(store)), sampler_(std::move(sampler)), reader_(std::move(reader)) {}

  std::shared_ptr<const ShardStore> store_;
  Sampler sampler_;
  std::mutex sampling_;  // the sampler caches an order per shard
  RowReader reader_;
  mutable std::atomic<uint64_t> mapped_{0};  // bytes of files mapped since the last unmapping
};

}  // namespace cafetiere
