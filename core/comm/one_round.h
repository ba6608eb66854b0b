// SPDX-License-Identifier: Apache-2.0
// OneRound: the messages of Group::exchange() as a schedule of one round.
#pragma once

#include "core/comm/group.h"

namespace cafetiere {

class OneRound : public Schedule {
 public:
  OneRound(std::span<const Send> sends, std::span<const Receive> receives)
      : sends_(sends), receives_(receives) {}
  int rounds() const override { return 1; }
  void sends(int, std::vector<Send>* messages) override {
    messages->assign(sends_.begin(), sends_.end());
  }
  void receives(int, std::vector<Receive>* messages) override {
    messages->assign(receives_.begin(), receives_.end());
    for (Receive& r : *messages) r.in_place = nullptr;  // valid after received() only
  }
  void received(int) override {}

 private:
  const std::span<const Send> sends_;
  const std::span<const Receive> receives_;
};

}  // namespace cafetiere
