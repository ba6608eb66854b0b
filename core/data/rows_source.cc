// SPDX-License-Identifier: Apache-2.0
#include "core/data/rows_source.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace cafetiere {
namespace {

/// The rows of a batch are scattered in memory: their first cache lines are prefetched this many
/// rows ahead.
constexpr size_t kAhead = 4;
void touch_ahead(std::span<const std::byte> row) {
  constexpr size_t kLine = 64, kLines = 6;
  for (size_t at = 0; at < std::min(row.size(), kLines * kLine); at += kLine) {
    __builtin_prefetch(row.data() + at);
  }
}

/// The limit on memory that rows in files may add to the process.
constexpr uint64_t kMostMapped = uint64_t{64} << 20;

}  // namespace

Result<std::unique_ptr<RowsSource>> RowsSource::make(std::shared_ptr<const ShardStore> store,
                                                     const std::vector<RowsInput>& inputs,
                                                     int64_t batch, bool train, uint64_t seed) {
  CFT_ASSIGN(Sampler sampler, Sampler::make(store->counts(), batch, seed));
  CFT_ASSIGN(RowReader reader, RowReader::make(store->schema(), inputs, train, seed));
  return std::unique_ptr<RowsSource>(
      new RowsSource(std::move(store), std::move(sampler), std::move(reader)));
}

std::vector<Shape> RowsSource::top_shapes() const {
  std::vector<Shape> shapes;
  for (const Shape& row : reader_.top_shapes()) {
    std::vector<int64_t> dims = row.dims();
    dims.insert(dims.begin(), sampler_.batch_size());
    shapes.emplace_back(std::move(dims));
  }
  return shapes;
}

Status RowsSource::fill(int shard, int64_t sub_step, std::span<float* const> tops) {
  const std::vector<uint32_t> batch = this->batch(shard, sub_step);
  read_ahead(shard, batch);
  std::vector<float> scratch;
  for (size_t i = 0; i < batch.size(); ++i) {
    if (i + kAhead < batch.size()) touch_ahead(store_->row(shard, batch[i + kAhead]));
    const RowPosition position{sub_step, shard, static_cast<int64_t>(i)};
    CFT_TRY(reader_.read(store_->row(shard, batch[i]), position, tops, static_cast<int64_t>(i),
                         static_cast<int64_t>(batch.size()), scratch));
  }
  return {};
}

/// Returns a copy, because other threads request other batches.
std::vector<uint32_t> RowsSource::batch(int shard, int64_t sub_step) {
  const std::lock_guard lock(sampling_);
  const std::span<const uint32_t> rows = sampler_.batch(shard, sub_step);
  return {rows.begin(), rows.end()};
}

Status RowsSource::validate() const {
  constexpr size_t kAtOnce = 256;
  std::vector<float> scratch;
  for (int shard = store_->owned().begin; shard < store_->owned().end; ++shard) {
    std::vector<uint32_t> rows(static_cast<size_t>(store_->counts()[static_cast<size_t>(shard)]));
    std::iota(rows.begin(), rows.end(), 0);
    for (size_t i = 0; i < rows.size(); ++i) {
      if (i % kAtOnce == 0) {
        read_ahead(shard, {&rows[i], std::min(kAtOnce, rows.size() - i)});
      }
      CFT_TRY(reader_.validate(store_->row(shard, rows[i]), scratch));
    }
  }
  return {};
}

void RowsSource::read_ahead(int shard, std::span<const uint32_t> rows) const {
  if (!store_->spilled()) return;
  if (mapped_ > kMostMapped) {
    mapped_ = 0;
    store_->unmap_pages();
  }
  mapped_ += store_->read_ahead(shard, rows);
}

}  // namespace cafetiere
