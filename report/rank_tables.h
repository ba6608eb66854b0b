// SPDX-License-Identifier: Apache-2.0
// What a report shows of each rank: its times as the run went on, and its part of the account.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "core/observe/events.h"

namespace cafetiere {

/// Ranks' times by step.
using RankHistory = std::map<int64_t, RankTimes>;

/// Charts of the time of a step and of the waits for rows and for other ranks: a line for each rank
/// or, where there are more than six, the least, the median and the greatest. "" without times. Waits
/// that never reach 1 % are left out.
std::string rank_charts(const RankHistory& history);

/// The core-hours of a run, or core-seconds below 0.1 hours, the largest part first; below them each
/// rank's as a bar.
std::string account_table(const Account& account);

}  // namespace cafetiere
