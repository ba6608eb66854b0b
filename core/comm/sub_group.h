// SubGroup: some ranks of a group as a group of their own.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "core/comm/group.h"

namespace cafetiere {

/// Ranks `members` of `parent`, in this order; the caller is one of them. Uses the parent's
/// connections: the parent outlives it, and within one process only one of them is used at a time.
class SubGroup : public Group {
 public:
  SubGroup(Group* parent, std::vector<int> members)
      : parent_(parent),
        members_(std::move(members)),
        rank_(int(std::ranges::find(members_, parent->rank()) - members_.begin())) {}

  int rank() const override { return rank_; }
  int size() const override { return int(members_.size()); }
  Status exchange(std::span<const Send> sends, std::span<const Receive> receives) override {
    std::vector<Send> to(sends.begin(), sends.end());
    std::vector<Receive> from(receives.begin(), receives.end());
    for (Send& send : to) send.peer = members_[size_t(send.peer)];
    for (Receive& receive : from) receive.peer = members_[size_t(receive.peer)];
    return parent_->exchange(to, from);
  }
  void cancel() override { parent_->cancel(); }
  Counters counters() const override { return parent_->counters(); }

 private:
  Group* const parent_;
  const std::vector<int> members_;
  const int rank_;
};

}  // namespace cafetiere
