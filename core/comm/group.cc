#include "core/comm/group.h"

namespace cafetiere {

Status Group::run(Schedule* schedule) {
  std::vector<Send> sends;
  std::vector<Receive> receives;
  for (int round = 0; round < schedule->rounds(); ++round) {
    sends.clear();
    receives.clear();
    schedule->sends(round, &sends);
    schedule->receives(round, &receives);
    if (!sends.empty() || !receives.empty()) CFT_TRY(exchange(sends, receives));
    schedule->received(round);
  }
  return {};
}

}  // namespace cafetiere
