// SPDX-License-Identifier: Apache-2.0
// SubGroup: some ranks of a group as a separate group.
#pragma once

#include <vector>

#include "core/comm/group.h"

namespace cafetiere {

/// Ranks `members` of `parent`, in this order; they must include the caller. Uses the connections
/// of the parent, which must outlive it; within a process, only one of the two may be used at a
/// time. open_links() is not available, since all ranks of the parent would have to take part.
class SubGroup : public Group {
 public:
  SubGroup(Group* parent, std::vector<int> members);

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(members_.size()); }
  Status exchange(std::span<const Send> sends, std::span<const Receive> receives) override;
  Status run(Schedule* schedule) override;
  void lend(const std::shared_ptr<const SharedMemory>& memory) override { parent_->lend(memory); }
  void cancel() override { parent_->cancel(); }
  Counters counters() const override { return parent_->counters(); }

 private:
  Group* const parent_;
  const std::vector<int> members_;
  const int rank_;
};

}  // namespace cafetiere
