// SPDX-License-Identifier: Apache-2.0
#include "core/sync/easgd.h"

namespace cafetiere {

Result<std::unique_ptr<Sync>> make_easgd(const caffe::SyncParameter& sync,
                                         const SyncContext& context, ArenaUpdate update) {
  CFT_TRY(check_workers("easgd", context));
  auto easgd = std::make_unique<Easgd>(sync, context, std::move(update));
  CFT_TRY(easgd->open());
  return std::unique_ptr<Sync>(std::move(easgd));
}

Easgd::Easgd(const caffe::SyncParameter& sync, const SyncContext& context, ArenaUpdate update)
    : CenterMode("easgd", context, std::move(update), sizeof(float)),
      rate_(moving_rate(sync)),
      factor_(server_factor(sync)),
      period_(sync.period()),
      clock_(sync.period(), sync.adaptive_period()),
      told_period_(sync.period()),
      pulled_(size_t(context.floats)) {}

Status Easgd::gradient(const UpdateStep& step, double loss, std::span<float> gradient,
                       std::span<float> weights) {
  if (iterations_ == 0) first_iter_ = step.iter;
  CFT_TRY(CenterMode::gradient(step, loss, gradient, weights));
  iterations_ = step.iter + 1;
  clock_.tick(loss);
  return {};
}

Status Easgd::end_round(const UpdateStep&, std::span<float>, std::span<float> weights) {
  if (!clock_.due()) {
    center().remember(weights);
    return {};
  }
  tell_period();
  return exchange(weights);
}

/// Once for each time that an adaptive period has doubled.
void Easgd::tell_period() {
  if (clock_.since() < 2 * told_period_) return;
  log().notice("easgd: the loss has fallen, and the adaptive period grown from {} to {} iterations",
               told_period_, clock_.since());
  told_period_ = clock_.since();
}

Status Easgd::exchange(std::span<float> weights) {
  CFT_TRY(status());
  CFT_TRY(ask_center(kExchange, std::as_bytes(weights), sizeof(float), pulled_));
  const float pull = rate_.at(iterations_);
  for (size_t i = 0; i < weights.size(); ++i) {
    weights[i] = (1 - pull) * weights[i] + pull * pulled_[i];
  }
  center().remember(weights);
  clock_.exchanged();
  count_made();
  return {};
}

Status Easgd::settle(std::span<float> weights) {
  return clock_.running() ? exchange(weights) : Status();
}

bool Easgd::serve(uint32_t topic, int slice, Messenger::Bytes& data) {
  const auto given = values_in<float>(data);
  if (topic != kExchange || data.size() != center().range(slice).size() * sizeof(float)) {
    return false;
  }
  center().change(slice, [&](std::span<double> values, int64_t count) {
    // The owner of a slice estimates the iterations of a worker from the exchanges.
    const int64_t iterations = first_iter_ + count * period_ / workers();
    const float pull = rate_.at(iterations) * factor_.at(iterations);
    for (size_t i = 0; i < values.size(); ++i) {
      const auto before = float(values[i]);
      values[i] = double((1 - pull) * before + pull * given[i]);
      given[i] = before;
    }
  });
  return true;
}

}  // namespace cafetiere
