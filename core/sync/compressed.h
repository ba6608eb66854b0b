// SPDX-License-Identifier: Apache-2.0
// Compressed: all-reduce with lossy compression of the gradients.
#pragma once

#include <memory>
#include <string>

#include "core/comm/compress.h"
#include "core/sync/replicas.h"
#include "core/sync/synchronous_mode.h"

namespace cafetiere {

/// Every step the ranks exchange gradients compressed by PowerSGD or top-k; all ranks make the same
/// update. Layer statistics are sent uncompressed. The same bits for the same number of ranks, also
/// after a resume: the checkpoint holds each rank's error feedback, unless it would be too large
/// for one file. With another number of ranks error feedback starts at zero, with a warning.
class Compressed : public SynchronousMode {
 public:
  Compressed(const SyncContext& context, ArenaUpdate update, const caffe::SyncParameter& sync);

  ShardRange shards() const override { return shards_; }
  ShardRange step_group(int) const override { return {0, context_.shards}; }
  int round_length(int) const override { return 1; }
  void begin_shard(int, std::span<float>) override {}
  void final_from(std::span<float>, size_t) override {}  // a rank's sum is compressed as a whole
  Status gradient(const UpdateStep&, double, std::span<float> gradient, std::span<float>) override;
  Status end_shard(int, std::span<float>) override { return {}; }
  Status end_round(const UpdateStep& step, std::span<float> gradient,
                   std::span<float> weights) override;
  const Clipping& last_clipping() const override { return update_.last_clipping(); }
  Status show_state(const StateUse& use) override;
  std::unique_ptr<ModeState> own_state() override { return nullptr; }
  Status restore(ModeState& state) override;

 private:
  const SyncContext context_;
  const ShardRange shards_;
  Replicas update_;         // clips and steps; its history is the same on all ranks
  std::vector<float> sum_;  // of the rank's shards
  std::unique_ptr<Compressor> compressor_;
  const std::string name_;  // of the compressor, with the settings that its state depends on
};

}  // namespace cafetiere
