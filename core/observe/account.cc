// SPDX-License-Identifier: Apache-2.0
#include "core/observe/account.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace cafetiere {

namespace {
constexpr double kSecondsPerHour = 3600;
}  // namespace

Account account_of(std::span<const TimeAccount::Seconds> ranks, int threads, double seconds,
                   double price) {
  Account account{.seconds = seconds, .cores = int64_t(ranks.size()) * threads};
  const double hours = threads / kSecondsPerHour;  // of a rank in a second
  double idle = 0;
  for (const TimeAccount::Seconds& rank : ranks) {
    idle += std::max(0., seconds - std::accumulate(rank.begin(), rank.end(), 0.));
  }
  for (size_t i = 0; i < kActivities; ++i) {
    double spent = 0;
    for (const TimeAccount::Seconds& rank : ranks) spent += rank[i];
    account.core_hours.emplace_back(name_of(Activity(i)), spent * hours);
  }
  account.core_hours.emplace_back("idle", idle * hours);
  account.cost = price * double(account.cores) * seconds / kSecondsPerHour;
  return account;
}

std::string to_text(const Account& account) {
  const double all = double(account.cores) * account.seconds / kSecondsPerHour;
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
