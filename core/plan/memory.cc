// SPDX-License-Identifier: Apache-2.0
#include "core/plan/memory.h"

#include <algorithm>
#include <functional>
#include <span>
#include <utility>

namespace cafetiere {
namespace {

/// The first and the last step that use a buffer, and the last step of the latter's row pass: until
/// then other blocks of rows may need the buffer.
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

/// One place in memory: a buffer, or several, each of which overwrites the one before.
struct Region {
  Space space = Space::kHost;
  bool fixed = false;
  int64_t size = 0;
  int first = -1, end = -1;  ///< steps
  int64_t offset = -1;

  bool meets(const Region& other) const { return first <= other.end && other.first <= end; }
};

/// The regions, and the region of each buffer.
struct Regions {
  std::vector<Region> all;
  std::vector<int> of;  ///< per buffer; -1: none
};

/// The input that step `s` overwrites with its result: one that it may and that nothing reads later.
/// Of several the newest, which is more likely to be in the caches. kNoBuffer: none.
BufferId overwritten(const Program& program, const std::vector<Life>& lives, int s,
                     const Regions& regions) {
  const Step& step = program.steps()[size_t(s)];
  const Buffer& to = program.buffers()[size_t(step.writes[0])];
  const auto inputs = std::span(step.reads).first(step.in_place);
  const auto others = std::span(step.reads).subspan(step.in_place);
  BufferId newest = kNoBuffer;
  for (BufferId from : inputs) {
    const Buffer& old = program.buffers()[size_t(from)];
    // Elements of another size would overwrite input that is still to be read.
    const bool alike = old.space == to.space && old.fixed == to.fixed && old.bytes == to.bytes;
    const Life& life = lives[size_t(from)];
    // The step may read it in another way, too.
    const bool once = std::ranges::find(others, from) == others.end();
    if (regions.of[size_t(from)] < 0 || life.last != s || !alike || !once) continue;
    if (newest == kNoBuffer || life.first > lives[size_t(newest)].first) newest = from;
  }
  return newest;
}

Regions regions_of(const Program& program) {
  const auto& buffers = program.buffers();
  const std::vector<Life> lives = lives_of(program);
  Regions regions{{}, std::vector<int>(buffers.size(), -1)};
  for (int s = 0; s < int(program.steps().size()); ++s) {
    const Step& step = program.steps()[size_t(s)];
    for (size_t i = 0; i < step.writes.size(); ++i) {
      const BufferId id = step.writes[i];
      const Buffer& buffer = buffers[size_t(id)];
      int& region = regions.of[size_t(id)];
      if (buffer.external || region >= 0) continue;
      const Life& life = lives[size_t(id)];
      if (i + step.optional >= step.writes.size() && life.first == life.last) continue;
      const BufferId from =
          id == step.writes[0] ? overwritten(program, lives, s, regions) : kNoBuffer;
      if (from != kNoBuffer) {
        region = regions.of[size_t(from)];
        regions.all[size_t(region)].end = life.end;
        continue;
      }
      region = int(regions.all.size());
      regions.all.push_back(
          {buffer.space, buffer.fixed, placed_size(buffer.bytes), life.first, life.end});
    }
  }
  return regions;
}

/// Places the regions, largest first, each at the lowest offset that is free during its life, so
/// that small ones fill the gaps. Returns the total bytes.
int64_t arrange(std::vector<Region*> regions) {
  std::ranges::stable_sort(regions, std::greater<>(), &Region::size);
  std::vector<const Region*> placed;  // sorted by offset
  int64_t bytes = 0;
  for (Region* region : regions) {
    int64_t at = 0;
    for (const Region* other : placed) {
      if (!other->meets(*region)) continue;
      if (other->offset >= at + region->size) break;
      at = std::max(at, other->offset + other->size);
    }
    region->offset = at;
    bytes = std::max(bytes, at + region->size);
    placed.insert(std::ranges::upper_bound(placed, at, {}, &Region::offset), region);
  }
  return bytes;
}

}  // namespace

int64_t placed_size(int64_t bytes) {
  return std::max<int64_t>(1, (bytes + kBufferAlign - 1) / kBufferAlign) * kBufferAlign;
}

MemoryPlan place(const Program& program) {
  Regions regions = regions_of(program);
  std::vector<Region*> host, device, fixed;
  for (Region& region : regions.all) {
    auto& arena = region.fixed ? fixed : region.space == Space::kHost ? host : device;
    arena.push_back(&region);
  }
  MemoryPlan plan;
  plan.bytes = arrange(std::move(host));
  plan.device_bytes = arrange(std::move(device));
  plan.fixed_bytes = arrange(std::move(fixed));
  for (int region : regions.of) {
    plan.offsets.push_back(region < 0 ? -1 : regions.all[size_t(region)].offset);
  }
  return plan;
}

}  // namespace cafetiere
