// SPDX-License-Identifier: Apache-2.0
#include "core/observe/time_account.h"

namespace cafetiere {

std::string_view name_of(Activity activity) {
  constexpr std::array<std::string_view, kActivities> kNames = {"computing", "data",    "network",
                                                                "testing",   "storing", "starting"};
  return kNames[size_t(activity)];
}

TimeAccount::Seconds TimeAccount::seconds() const {
  Seconds seconds{};
  for (size_t i = 0; i < kActivities; ++i) {
    seconds[i] = std::chrono::duration<double>(spent_[i]).count();
  }
  seconds[size_t(activity_)] += std::chrono::duration<double>(Clock::now() - since_).count();
  return seconds;
}

}  // namespace cafetiere
