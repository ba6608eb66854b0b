// SPDX-License-Identifier: Apache-2.0
#include "core/comm/group.h"

#include <poll.h>

namespace cafetiere {

Status wait_until_ready(const ReadyTest& ready, int wake_fd) {
  for (;;) {
    CFT_ASSIGN(const bool is_ready, ready());
    if (is_ready) return {};
    pollfd wake{wake_fd, POLLIN, 0};
    poll(&wake, 1, -1);
  }
}

Status Group::run(Schedule* schedule) {
  std::vector<Send> sends;
  std::vector<Receive> receives;
  for (int round = 0; round < schedule->rounds(); ++round) {
    sends.clear();
    receives.clear();
    CFT_TRY(wait_until_ready([&] { return schedule->ready(round); }, schedule->wake_fd()));
    schedule->sends(round, &sends);
    schedule->receives(round, &receives);
    if (!sends.empty() || !receives.empty()) CFT_TRY(exchange(sends, receives));
    schedule->received(round);
  }
  return {};
}

}  // namespace cafetiere
