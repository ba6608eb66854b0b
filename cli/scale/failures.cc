// SPDX-License-Identifier: Apache-2.0
#include "cli/scale/failures.h"

#include <algorithm>
#include <cmath>

namespace cafetiere {

double best_interval(double mtbf_s, double checkpoint_s) {
  if (checkpoint_s >= 2 * mtbf_s) return mtbf_s;
  const double ratio = checkpoint_s / (2 * mtbf_s);
  return std::sqrt(2 * checkpoint_s * mtbf_s) * (1 + std::sqrt(ratio) / 3 + ratio / 9) -
         checkpoint_s;
}

FailureCost failure_cost(int hosts, const Reliability& reliability) {
  constexpr double kDay = 86400;
  const double mtbf = reliability.host_mtbf_s / hosts;
  FailureCost cost;
  cost.failures_per_day = kDay / mtbf;
  cost.interval_s = best_interval(mtbf, reliability.checkpoint_s);
  cost.lost_s_per_day =
      std::min(kDay, cost.failures_per_day * (cost.interval_s / 2 + reliability.restart_s));
  const double useful = cost.interval_s / (cost.interval_s + reliability.checkpoint_s);
  cost.share = 1 - useful * (1 - cost.lost_s_per_day / kDay);
  return cost;
}

}  // namespace cafetiere
