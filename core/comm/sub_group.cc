// SPDX-License-Identifier: Apache-2.0
#include "core/comm/sub_group.h"

#include <algorithm>
#include <utility>

namespace cafetiere {
namespace {

/// Maps ranks of the sub-group to those of its parent, starting with message `first`.
template <class Message>
void rename_peers(const std::vector<int>& members, std::vector<Message>* messages, size_t first) {
  for (size_t i = first; i < messages->size(); ++i) {
    int& peer = (*messages)[i].peer;
    // A peer outside the sub-group is mapped to an invalid rank, which the parent rejects.
    peer = peer >= 0 && peer < static_cast<int>(members.size()) ? members[size_t(peer)] : -1;
  }
}

/// A schedule of the sub-group, translated for its parent.
class Renamed : public Schedule {
 public:
  Renamed(Schedule* inner, const std::vector<int>& members) : inner_(inner), members_(members) {}
  int rounds() const override { return inner_->rounds(); }
  Result<bool> ready(int round) override { return inner_->ready(round); }
  int wake_fd() const override { return inner_->wake_fd(); }
  void sends(int round, std::vector<Send>* messages) override {
    const size_t first = messages->size();
    inner_->sends(round, messages);
    rename_peers(members_, messages, first);
  }
  void receives(int round, std::vector<Receive>* messages) override {
    const size_t first = messages->size();
    inner_->receives(round, messages);
    rename_peers(members_, messages, first);
  }
  void received(int round) override { inner_->received(round); }

 private:
  Schedule* const inner_;
  const std::vector<int>& members_;
};

}  // namespace

SubGroup::SubGroup(Group* parent, std::vector<int> members)
    : parent_(parent),
      members_(std::move(members)),
      rank_(static_cast<int>(std::ranges::find(members_, parent->rank()) - members_.begin())) {}

Status SubGroup::exchange(std::span<const Send> sends, std::span<const Receive> receives) {
  std::vector<Send> to(sends.begin(), sends.end());
  std::vector<Receive> from(receives.begin(), receives.end());
  rename_peers(members_, &to, 0);
  rename_peers(members_, &from, 0);
  return parent_->exchange(to, from);
}

Status SubGroup::run(Schedule* schedule) {
  Renamed renamed(schedule, members_);
  return parent_->run(&renamed);
}

}  // namespace cafetiere
