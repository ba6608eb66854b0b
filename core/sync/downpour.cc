// SPDX-License-Identifier: Apache-2.0
#include "core/sync/downpour.h"

#include <algorithm>

namespace cafetiere {

Result<std::unique_ptr<Sync>> make_downpour(const caffe::SyncParameter& sync,
                                            const SyncContext& context, ArenaUpdate update) {
  CFT_TRY(check_workers("downpour", context));
  auto downpour = std::make_unique<Downpour>(sync, context, std::move(update));
  CFT_TRY(downpour->open());
  return std::unique_ptr<Sync>(std::move(downpour));
}

Downpour::Downpour(const caffe::SyncParameter& sync, const SyncContext& context, ArenaUpdate update)
    : CenterMode("downpour", context, std::move(update), sizeof(double)),
      push_every_(sync.n_push() > 0 ? sync.n_push() : sync.period()),
      fetch_every_(sync.n_fetch() > 0 ? sync.n_fetch() : sync.period()),
      updates_(size_t(context.floats)) {}

int Downpour::round_length(int) const {
  return std::max(1, std::min(push_every_ - since_push_, fetch_every_ - since_fetch_));
}

Status Downpour::gradient(const UpdateStep& step, double loss, std::span<float> gradient,
                          std::span<float> weights) {
  before_.assign(weights.begin(), weights.end());
  CFT_TRY(CenterMode::gradient(step, loss, gradient, weights));
  for (size_t i = 0; i < weights.size(); ++i) {
    updates_[i] += double(weights[i]) - double(before_[i]);
  }
  ++since_push_;
  ++since_fetch_;
  return {};
}

Status Downpour::end_round(const UpdateStep&, std::span<float>, std::span<float> weights) {
  CFT_TRY(status());
  const bool fetches = since_fetch_ >= fetch_every_;
  if (since_push_ >= push_every_) {
    CFT_TRY(push(fetches ? kPushAndFetch : kPush, fetches ? weights : weights.first(0)));
  } else if (fetches) {
    CFT_TRY(read_center(weights));
  }
  if (fetches) since_fetch_ = 0;
  center().remember(weights);
  return {};
}

Status Downpour::push(Topic topic, std::span<float> fetched) {
  CFT_TRY(ask_center(topic, std::as_bytes(std::span(updates_)), sizeof(double), fetched));
  std::ranges::fill(updates_, 0.);
  since_push_ = 0;
  count_made();
  return {};
}

Status Downpour::settle(std::span<float>) { return since_push_ > 0 ? push(kPush, {}) : Status(); }

bool Downpour::serve(uint32_t topic, int slice, Messenger::Bytes& data) {
  const size_t size = center().range(slice).size();
  if (topic > kPushAndFetch || data.size() != size * sizeof(double)) return false;
  const auto updates = values_in<double>(data);
  center().change(slice, [&](std::span<double> values, int64_t) {
    for (size_t i = 0; i < size; ++i) values[i] += updates[i];
  });
  data.resize(topic == kPush ? 0 : size * sizeof(float));
  if (topic == kPushAndFetch) center().read(slice, values_in<float>(data));
  return true;
}

}  // namespace cafetiere
