// SPDX-License-Identifier: Apache-2.0
#include "core/sync/easgd_schedule.h"

#include <algorithm>

#include "core/base/elementary.h"

namespace cafetiere {

float Decay::at(int64_t iterations) const {
  if (step <= 0) return start;
  int64_t times = iterations / step;
  if (limit >= 0) times = std::min<int64_t>(times, limit);
  return static_cast<float>(start * elementary::pow(rate, double(times)));
}

Decay moving_rate(const caffe::SyncParameter& sync) {
  return {sync.moving_rate(), sync.decay_rate(), sync.decay_step(), sync.decay_limit()};
}

Decay server_factor(const caffe::SyncParameter& sync) {
  return {sync.server_factor(), sync.factor_decay_rate(), sync.factor_decay_step(),
          sync.factor_decay_limit()};
}

void ExchangeClock::exchanged() {
  if (adaptive_ && !budget_) budget_ = losses_;
  since_ = 0;
  losses_ = 0;
}

}  // namespace cafetiere
