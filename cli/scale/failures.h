// SPDX-License-Identifier: Apache-2.0
// What failures of hosts cost a training that goes on from its newest checkpoint.
#pragma once

namespace cafetiere {

struct Reliability {
  double host_mtbf_s = 365 * 86400.0;  ///< mean time between failures of one host
  double checkpoint_s = 1;             ///< to write a checkpoint, while no step is made
  double restart_s = 10;               ///< from a failure to the next step
};

struct FailureCost {
  double failures_per_day = 0;
  double interval_s = 0;  ///< the best time from one checkpoint to the next
  double lost_s_per_day =
      0;             ///< work done twice and restarts: half an interval and one restart each
  double share = 0;  ///< of all time, with the checkpoints; below 1
};

/// The best interval between checkpoints when all hosts together fail every `mtbf_s` on average: Daly,
/// "A higher order estimate of the optimum checkpoint interval for restart dumps", 2006, eq. 37, whose
/// first term is Young's sqrt(2 C M), 1974.
double best_interval(double mtbf_s, double checkpoint_s);

/// Of `hosts` hosts that fail independently of each other.
FailureCost failure_cost(int hosts, const Reliability& reliability);

}  // namespace cafetiere
