// SPDX-License-Identifier: Apache-2.0
#include "core/comm/ring.h"

#include <algorithm>
#include <functional>

#include "core/comm/collectives.h"

namespace cafetiere {
namespace {

constexpr size_t kRingSegment = 32 << 10;  // floats sent in one round

/// Called with received data: the offset of the first value in its slice, and the values.
using Take = std::function<void(size_t at, std::span<const float> values)>;

/// One step around the ring: sends a slice to the right neighbour, receives one from the left.
class RingStep : public Schedule {
 public:
  RingStep(const Group& group, std::span<const float> out, size_t incoming, Wire wire, Take take)
      : right_((group.rank() + 1) % group.size()),
        left_((group.rank() + group.size() - 1) % group.size()),
        out_(out),
        incoming_(incoming),
        wire_(wire),
        take_(std::move(take)),
        segment_(std::min(kRingSegment, std::max(out.size(), incoming))),
        values_(segment_) {
    if (wire != Wire::kFloat32) {
      narrow_out_.resize(segment_);
      narrow_in_.resize(segment_);
    }
  }

  int rounds() const override {
    const size_t longest = std::max(out_.size(), incoming_);
    return static_cast<int>((longest + segment_ - 1) / segment_);
  }

  void sends(int round, std::vector<Send>* messages) override {
    const size_t count = segment_of(out_.size(), round);
    if (count == 0) return;
    const void* data = &out_[round * segment_];
    if (wire_ != Wire::kFloat32) {
      narrow(wire_, &out_[round * segment_], count, narrow_out_.data());
      data = narrow_out_.data();
    }
    messages->push_back({right_, data, count * wire_bytes(wire_)});
  }

  void receives(int round, std::vector<Receive>* messages) override {
    const size_t count = segment_of(incoming_, round);
    if (count == 0) return;
    void* room = values_.data();
    if (wire_ != Wire::kFloat32) room = narrow_in_.data();
    messages->push_back({left_, room, count * wire_bytes(wire_)});
  }

  void received(int round) override {
    const size_t count = segment_of(incoming_, round);
    if (count == 0) return;
    if (wire_ != Wire::kFloat32) widen(wire_, narrow_in_.data(), count, values_.data());
    take_(round * segment_, {values_.data(), count});
  }

 private:
  size_t segment_of(size_t size, int round) const {
    return std::min(segment_, size - std::min(round * segment_, size));
  }

  const int right_, left_;
  const std::span<const float> out_;
  const size_t incoming_;
  const Wire wire_;
  const Take take_;
  const size_t segment_;
  std::vector<float> values_;
  std::vector<uint16_t> narrow_out_, narrow_in_;
};

/// Runs the step; does nothing if both slices are empty.
Status run_step(Group* group, std::span<const float> out, size_t incoming, Wire wire, Take take) {
  if (out.empty() && incoming == 0) return {};
  RingStep step(*group, out, incoming, wire, std::move(take));
  return group->run(&step);
}

/// Adds this rank's nodes, starting at `offset`, to `values`.
void add_nodes(const TreeSum& sum, size_t offset, std::span<float> values) {
  for (const TreeSum::Partial& p : sum.partials()) {
    const float* node = p.data + offset;
    for (size_t i = 0; i < values.size(); ++i) values[i] += node[i];
  }
}

}  // namespace

Status ring_reduce_scatter(Group* group, TreeSum& sum, std::span<const size_t> slices,
                           std::span<float> out, Wire wire) {
  const int rank = rank_of(group), ranks = size_of(group);
  if (ranks == 1) return reduce_scatter(group, sum, slices, out);
  CFT_TRY(check_reduction(group, sum, slices, out));
  const auto slice = [&](int r) { return (r % ranks + ranks) % ranks; };
  const auto size = [&](int r) { return slices[slice(r) + 1] - slices[slice(r)]; };
  size_t longest = 0;
  for (int r = 0; r < ranks; ++r) longest = std::max(longest, size(r));
  // The partial sum to send and the one to receive; they are swapped after each step.
  float* leaving = sum.scratch(2 * longest);
  float* coming = leaving + longest;
  std::fill_n(leaving, size(rank - 1), 0.f);
  add_nodes(sum, slices[slice(rank - 1)], {leaving, size(rank - 1)});
  for (int step = 1; step < ranks; ++step) {
    const int next = rank - step - 1;
    float* into = step + 1 == ranks ? out.data() : coming;
    const Take take = [&](size_t at, std::span<const float> values) {
      const std::span<float> mine(coming + at, values.size());
      std::copy(values.begin(), values.end(), mine.begin());
      add_nodes(sum, slices[slice(next)] + at, mine);
      if (into != coming) std::copy(mine.begin(), mine.end(), into + at);
    };
    CFT_TRY(run_step(group, {leaving, size(rank - step)}, size(next), wire, take));
    std::swap(leaving, coming);
  }
  return {};
}

Status ring_all_gather(Group* group, std::span<float> arena, std::span<const size_t> slices,
                       Wire wire) {
  const int rank = rank_of(group), ranks = size_of(group);
  if (ranks == 1) return {};
  CFT_TRY(check_slices(group, slices, arena.size()));
  const auto part = [&](int r) {
    const int s = (r % ranks + ranks) % ranks;
    return arena.subspan(slices[s], slices[s + 1] - slices[s]);
  };
  // Rounded values are forwarded unchanged: rounding them again has no effect.
  round_to_wire(wire, part(rank).data(), part(rank).size());
  for (int step = 0; step + 1 < ranks; ++step) {
    const std::span<float> coming = part(rank - step - 1);
    CFT_TRY(run_step(group, part(rank - step), coming.size(), wire,
                     [&](size_t at, std::span<const float> values) {
                       std::copy(values.begin(), values.end(), coming.begin() + ptrdiff_t(at));
                     }));
  }
  return {};
}

}  // namespace cafetiere
