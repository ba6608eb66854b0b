// SPDX-License-Identifier: Apache-2.0
#include "core/plan/memory.h"

#include <algorithm>

namespace cafetiere {
namespace {

/// The first and the last step that uses a buffer, and the last one of the pass that this step is in:
/// until then other blocks of rows may need the buffer.
struct Life {
  int first = -1, last = -1, end = -1;
};

std::vector<Life> lives_of(const Program& program) {
  std::vector<Life> lives(program.buffers().size());
  const int end = int(program.steps().size());
  for (int i = 0; i < end; ++i) {
    const Step& step = program.steps()[size_t(i)];
    for (const auto& ids : {step.reads, step.writes}) {
      for (BufferId id : ids) {
        Life& life = lives[size_t(id)];
        if (life.first < 0) life.first = i;
        life.last = i;
      }
    }
  }
  std::vector<int> pass_end(size_t(end) + 1, end);
  for (int i = end - 1; i >= 0; --i) {
    const bool goes_on = i + 1 < end && program.steps()[size_t(i) + 1].joined;
    pass_end[size_t(i)] = goes_on ? pass_end[size_t(i) + 1] : i;
  }
  for (size_t i = 0; i < lives.size(); ++i) {
    if (program.buffers()[i].keep || program.buffers()[i].fixed) lives[i].last = end;
    if (lives[i].last >= 0) lives[i].end = pass_end[size_t(lives[i].last)];
  }
  return lives;
}

/// Free regions of the arena, first fit; grows at the end.
class FreeList {
 public:
  int64_t take(int64_t size) {
    for (auto& region : regions_) {
      if (region.size < size) continue;
      const int64_t at = region.begin;
      region.begin += size;
      region.size -= size;
      return at;
    }
    int64_t at = end_;
    if (!regions_.empty() && regions_.back().begin + regions_.back().size == end_) {
      at = regions_.back().begin;
      regions_.pop_back();
    }
    end_ = at + size;
    return at;
  }
  void give(int64_t begin, int64_t size) {
    const auto next = std::lower_bound(regions_.begin(), regions_.end(), begin,
                                       [](const Region& r, int64_t b) { return r.begin < b; });
    const auto it = regions_.insert(next, {begin, size});
    merge(it - regions_.begin());
    if (it != regions_.begin()) merge(it - regions_.begin() - 1);
  }
  int64_t end() const { return end_; }

 private:
  struct Region {
    int64_t begin, size;
  };
  void merge(ptrdiff_t i) {
    if (size_t(i) + 1 >= regions_.size()) return;
    Region &a = regions_[size_t(i)], &b = regions_[size_t(i) + 1];
    if (a.begin + a.size != b.begin) return;
    a.size += b.size;
    regions_.erase(regions_.begin() + i + 1);
  }
  std::vector<Region> regions_;
  int64_t end_ = 0;
};

}  // namespace

int64_t placed_size(int64_t bytes) {
  return std::max<int64_t>(1, (bytes + kBufferAlign - 1) / kBufferAlign) * kBufferAlign;
}

MemoryPlan place(const Program& program) {
  const auto& buffers = program.buffers();
  const auto& steps = program.steps();
  std::vector<Life> lives = lives_of(program);
  MemoryPlan plan;
  plan.offsets.assign(buffers.size(), -1);
  FreeList host, device, fixed;
  const auto arena_of = [&](const Buffer& buffer) -> FreeList& {
    if (buffer.fixed) return fixed;
    return buffer.space == Space::kHost ? host : device;
  };
  std::vector<std::vector<BufferId>> ends(steps.size() + 1);
  for (size_t i = 0; i < lives.size(); ++i) {
    if (!buffers[i].external && lives[i].last >= 0) ends[size_t(lives[i].end)].push_back(int(i));
  }
  std::vector<bool> handed_over(buffers.size(), false);
  for (int s = 0; s < int(steps.size()); ++s) {
    const Step& step = steps[size_t(s)];
    for (BufferId id : step.writes) {
      const Buffer& buffer = buffers[size_t(id)];
      if (buffer.external || plan.offsets[size_t(id)] >= 0) continue;
      if (step.in_place >= 0 && id == step.writes[0]) {
        const BufferId from = step.reads[size_t(step.in_place)];
        const Buffer& old = buffers[size_t(from)];
        const bool dies = lives[size_t(from)].last == s && !handed_over[size_t(from)];
        // Elements of another size would overwrite those that are still to be read.
        const bool alike = old.space == buffer.space && old.fixed == buffer.fixed;
        if (dies && !old.external && alike && old.bytes == buffer.bytes) {
          plan.offsets[size_t(id)] = plan.offsets[size_t(from)];
          handed_over[size_t(from)] = true;
          continue;
        }
      }
      plan.offsets[size_t(id)] = arena_of(buffer).take(placed_size(buffer.bytes));
    }
    for (BufferId id : ends[size_t(s)]) {
      if (handed_over[size_t(id)] || plan.offsets[size_t(id)] < 0) continue;
      arena_of(buffers[size_t(id)])
          .give(plan.offsets[size_t(id)], placed_size(buffers[size_t(id)].bytes));
    }
  }
  plan.bytes = host.end();
  plan.device_bytes = device.end();
  plan.fixed_bytes = fixed.end();
  return plan;
}

}  // namespace cafetiere
