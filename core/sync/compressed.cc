#include "core/sync/compressed.h"

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

}  // namespace

Compressed::Compressed(const SyncContext& context, ArenaUpdate update,
                       const caffe::SyncParameter& sync)
    : context_(context),
      shards_(shards_of_rank(rank_of(context.group), size_of(context.group), context.shards)),
      update_(context, std::move(update)),
      sum_(size_t(context.floats), 0.f),
      compressor_(make_compressor(context, update_.learned(), sync)) {}

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

}  // namespace cafetiere
