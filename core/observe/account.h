// SPDX-License-Identifier: Apache-2.0
// The account of a run: what its cores were used for.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/observe/events.h"
#include "core/observe/time_account.h"

namespace cafetiere {

constexpr double kSecondsPerHour = 3600;

/// The account of ranks of `threads` cores each, which a run of `seconds` had to itself. What a rank
/// did not spend otherwise is "idle". Of several ranks the account
/// also has each one's part. `price` is that of a core-hour, 0 where it is not known.
Account account_of(std::span<const TimeAccount::Seconds> ranks, int threads, double seconds,
                   double price);

/// What the run had: its cores, busy or not, for as long as it took.
double total_core_hours(const Account& account);

/// "4.2 s x 2 cores = 0.0023 core-hours: computing 81.2 %, network 10.1 %, .."
std::string to_text(const Account& account);

}  // namespace cafetiere
