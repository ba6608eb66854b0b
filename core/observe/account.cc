// SPDX-License-Identifier: Apache-2.0
#include "core/observe/account.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>

namespace cafetiere {

namespace {
/// Seconds by activity, the last of them idle, in core-hours.
NamedValues by_activity(std::span<const double> seconds, double hours) {
  NamedValues named;
  for (size_t i = 0; i < seconds.size(); ++i) {
    named.emplace_back(i < kActivities ? name_of(Activity(i)) : "idle", seconds[i] * hours);
  }
  return named;
}
}  // namespace

Account account_of(std::span<const TimeAccount::Seconds> ranks, int threads, double seconds,
                   double price) {
  Account account{.seconds = seconds, .cores = int64_t(ranks.size()) * threads, .core_hours = {}};
  const double hours = threads / kSecondsPerHour;  // of a rank in a second
  std::array<double, kActivities + 1> all{};
  for (const TimeAccount::Seconds& rank : ranks) {
    std::array<double, kActivities + 1> parts{};
    std::ranges::copy(rank, parts.begin());
    parts.back() = std::max(0., seconds - std::accumulate(rank.begin(), rank.end(), 0.));
    std::ranges::transform(all, parts, all.begin(), std::plus());
    if (ranks.size() > 1) {
      account.ranks.push_back(
          {fmt::format("rank {}", account.ranks.size()), by_activity(parts, hours)});
    }
  }
  account.core_hours = by_activity(all, hours);
  account.cost = price * total_core_hours(account);
  return account;
}

double total_core_hours(const Account& account) {
  return double(account.cores) * account.seconds / kSecondsPerHour;
}

std::string to_text(const Account& account) {
  const double all = total_core_hours(account);
  std::string text = fmt::format("{:.4g} s x {} {} = {:.4g} core-hours", account.seconds,
                                 account.cores, account.cores == 1 ? "core" : "cores", all);
  const char* separator = ": ";
  for (const auto& [name, hours] : account.core_hours) {
    if (hours <= 0 || all <= 0) continue;
    text += fmt::format("{}{} {:.1f} %", separator, name, hours / all * 100);
    separator = ", ";
  }
  if (account.cost > 0) text += fmt::format("; cost {:.4g}", account.cost);
  return text;
}

}  // namespace cafetiere
