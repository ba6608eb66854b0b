// SPDX-License-Identifier: Apache-2.0
#include "core/sync/compressed.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/comm/collectives.h"

namespace cafetiere {
namespace {

std::unique_ptr<Compressor> make_compressor(const SyncContext& context, size_t learned,
                                            const caffe::SyncParameter& sync) {
  if (sync.compression() == "topk") {
    return std::make_unique<TopK>(context.group, learned, double(sync.compression_density()));
  }
  return std::make_unique<PowerSgd>(context.group, learned, context.matrices,
                                    sync.compression_rank(), context.seed);
}

constexpr std::string_view kCompressedMark = "compression ";

std::string compressor_name(const caffe::SyncParameter& sync) {
  if (sync.compression() == "topk") return std::string(kCompressedMark) + "topk";
  return fmt::format("{}powersgd, rank {}", kCompressedMark, sync.compression_rank());
}

}  // namespace

Compressed::Compressed(const SyncContext& context, ArenaUpdate update,
                       const caffe::SyncParameter& sync)
    : SynchronousMode(context.group),
      context_(context),
      shards_(shards_of_rank(rank_of(context.group), size_of(context.group), context.shards)),
      update_(context, ShardRange{0, 1}, std::move(update)),
      sum_(size_t(context.floats), 0.f),
      compressor_(make_compressor(context, update_.learned(), sync)),
      name_(compressor_name(sync)) {}

Status Compressed::gradient(const UpdateStep&, double, std::span<float> gradient,
                            std::span<float>) {
  for (size_t i = 0; i < sum_.size(); ++i) sum_[i] += gradient[i];
  return {};
}

Status Compressed::end_round(const UpdateStep& step, std::span<float>, std::span<float> weights) {
  const int rank = rank_of(context_.group), ranks = size_of(context_.group);
  const std::span<float> learned = std::span(sum_).first(update_.learned());
  const std::span<float> statistics = std::span(sum_).subspan(update_.learned());
  CFT_TRY(compressor_->mean(learned));
  for (float& value : learned) value *= float(ranks);
  if (!statistics.empty()) {
    TreeSum sum({rank, rank + 1}, ranks, statistics.size(), context_.pool);
    CFT_TRY(sum.add(statistics));
    CFT_TRY(all_reduce(context_.group, sum, statistics));
  }
  update_.step(step, sum_, weights);
  std::ranges::fill(sum_, 0.f);
  return {};
}

/// Beside the history: each rank's error feedback in rank order, then the factors.
Status Compressed::show_state(const StateUse& use) {
  const auto here = [&](int rank, std::span<const float> values) {
    const float* const data = rank == rank_of(context_.group) ? values.data() : nullptr;
    return StateParts{{rank, 0, values.size(), data}};
  };
  PlacedState placed;
  for (const std::vector<float>& kind : update_.history(0)) {
    placed.history.push_back(here(0, kind));  // the same on all ranks
  }
  placed.mode = name_;
  for (int rank = 0; rank < size_of(context_.group); ++rank) {
    placed.outer.push_back(here(rank, compressor_->error()));
  }
  const std::span<const float> factors = compressor_->factors();
  if (!factors.empty()) placed.outer.push_back(here(0, factors));
  return show_placed(context_.group, placed, use);
}

Status Compressed::restore(ModeState& state) {
  CFT_TRY(update_.restore(state));
  if (!state.mode.starts_with(kCompressedMark)) return {};  // the state has no error feedback
  const std::span<float> error = compressor_->error(), factors = compressor_->factors();
  const size_t ranks = size_t(size_of(context_.group)), others = factors.empty() ? 0 : 1;
  if (state.mode != name_ || state.outer != ranks + others) {
    context_.log.warning(
        "the state is of {}, this run uses {} with {} ranks: error feedback starts at zero, and "
        "the weights will not have the bits of an uninterrupted run",
        state.mode, name_, ranks);
    return {};
  }
  CFT_TRY(state.read({StateArray::kOuter, size_t(rank_of(context_.group))}, 0, error));
  return others == 0 ? Status() : state.read({StateArray::kOuter, ranks}, 0, factors);
}

}  // namespace cafetiere
