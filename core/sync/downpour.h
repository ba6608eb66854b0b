// SPDX-License-Identifier: Apache-2.0
// Downpour: workers that add their updates to a center variable and take it from time to time (Dean
// et al., "Large scale distributed deep networks", 2012; also DeepSpark's first way).
#pragma once

#include <memory>
#include <vector>

#include "core/sync/center_mode.h"

namespace cafetiere {

/// Every n_push iterations a worker adds the sum of its updates since the last time to the center
/// variable; every n_fetch iterations it takes the center as its weights. Updates that a fetch comes
/// before are still added later. Each slice of the center has a push whole or not at all, also when
/// the worker dies meanwhile.
///
/// Sums are doubles, also on the wire. So a single worker that pushes and fetches every time follows
/// its solver to the bit: a double holds the difference of two floats closely enough for their sum to
/// be rounded to the second one again.
class Downpour : public CenterMode {
 public:
  Downpour(const caffe::SyncParameter& sync, const SyncContext& context, ArenaUpdate update);
  ~Downpour() override { close(); }

  int round_length(int) const override;
  Status gradient(const UpdateStep& step, double loss, std::span<float> gradient,
                  std::span<float> weights) override;
  Status end_round(const UpdateStep& step, std::span<float> gradient,
                   std::span<float> weights) override;

 private:
  enum Topic : uint32_t { kPush = kOwnTopic, kPushAndFetch };

  bool serve(uint32_t topic, int slice, Messenger::Bytes& data) override;
  Status settle(std::span<float> weights) override;
  Status push(Topic topic, std::span<float> fetched);

  const int push_every_, fetch_every_;
  int since_push_ = 0, since_fetch_ = 0;  // iterations
  std::vector<float> before_;             // the weights before an iteration
  std::vector<double> updates_;           // the sum since the last push
};

/// Downpour over context.group; an error unless every rank has one shard. Every rank calls it.
Result<std::unique_ptr<Sync>> make_downpour(const caffe::SyncParameter& sync,
                                            const SyncContext& context, ArenaUpdate update);

}  // namespace cafetiere
