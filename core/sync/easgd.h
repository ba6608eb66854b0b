// SPDX-License-Identifier: Apache-2.0
// EASGD: workers that train on their own, each coupled to a center variable (Zhang, Choromanska and
// LeCun, "Deep learning with Elastic Averaging SGD", 2015; asynchronous, as in DeepSpark).
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "core/sync/center_mode.h"
#include "core/sync/easgd_schedule.h"

namespace cafetiere {

/// When an exchange is due, a worker sends its weights w to the ranks that store the slices of the
/// center variable and receives the previous W:
///   worker w <- (1 - a) w + a W,   center W <- (1 - a f) W + a f w
class Easgd : public CenterMode {
 public:
  Easgd(const caffe::SyncParameter& sync, const SyncContext& context, ArenaUpdate update);
  ~Easgd() override { close(); }

  int round_length(int) const override { return clock_.remaining(); }
  Status gradient(const UpdateStep& step, double loss, std::span<float> gradient,
                  std::span<float> weights) override;
  Status end_round(const UpdateStep& step, std::span<float> gradient,
                   std::span<float> weights) override;

 private:
  static constexpr uint32_t kExchange = kOwnTopic;

  bool serve(uint32_t topic, int slice, Messenger::Bytes& data) override;
  Status settle(std::span<float> weights) override;
  Status exchange(std::span<float> weights);
  void tell_period();

  const Decay rate_, factor_;
  const int period_;
  ExchangeClock clock_;
  std::atomic<int64_t> first_iter_{0};  // iterations that each worker had done before this run
  int64_t iterations_ = 0;
  int told_period_;            // as the log has it
  std::vector<float> pulled_;  // the center before the last exchange
};

/// EASGD over context.group; an error unless every rank has one shard. Every rank calls it.
Result<std::unique_ptr<Sync>> make_easgd(const caffe::SyncParameter& sync,
                                         const SyncContext& context, ArenaUpdate update);

}  // namespace cafetiere
