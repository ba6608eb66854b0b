// SPDX-License-Identifier: Apache-2.0
// BufferUses: which steps read and write each buffer.
#pragma once

#include <cstddef>
#include <vector>

#include "core/device/program.h"

namespace cafetiere {

/// The numbers of steps that read and write a buffer, and the last of each.
struct BufferUse {
  int reads = 0, writes = 0;
  size_t reader = 0, writer = 0;
};

class BufferUses {
 public:
  /// `program` must outlive this; steps [begin, end) are those that may be changed.
  BufferUses(const Program& program, size_t begin, size_t end)
      : program_(program), begin_(begin), end_(end), uses_(program.buffers().size()) {
    const std::vector<Step>& steps = program.steps();
    for (size_t i = 0; i < steps.size(); ++i) {
      for (BufferId id : steps[i].reads) ++uses_[size_t(id)].reads, uses_[size_t(id)].reader = i;
      for (BufferId id : steps[i].writes) ++uses_[size_t(id)].writes, uses_[size_t(id)].writer = i;
    }
  }

  BufferUse& operator[](BufferId id) { return uses_[size_t(id)]; }
  const BufferUse& operator[](BufferId id) const { return uses_[size_t(id)]; }

  /// Whether a buffer has one writer, within the range, and one reader.
  bool is_between(BufferId id) const {
    const BufferUse& use = uses_[size_t(id)];
    const Buffer& buffer = program_.buffers()[size_t(id)];
    return !buffer.external && !buffer.keep && !buffer.fixed && use.reads == 1 && use.writes == 1 &&
           use.writer >= begin_ && use.writer < end_;
  }

 private:
  const Program& program_;
  const size_t begin_, end_;
  std::vector<BufferUse> uses_;
};

/// Removes the marked steps. Returns their number.
inline size_t remove_steps(std::vector<Step>& steps, const std::vector<bool>& marked) {
  size_t i = 0;
  return std::erase_if(steps, [&](const Step&) { return bool(marked[i++]); });
}

}  // namespace cafetiere
