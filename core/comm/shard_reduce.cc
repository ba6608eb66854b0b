// SPDX-License-Identifier: Apache-2.0
// The exchanges of the shard tree. Both sides of a message derive its size from V, N and the
// slices, so only values are sent.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>

#include "core/comm/collectives.h"
#include "core/comm/shard_tree.h"
#include "core/comm/tree_finish.h"

namespace cafetiere {
namespace {

constexpr size_t kSegment = 128 << 10;  // floats of a slice sent per round
constexpr size_t kDirect = 16 << 10;    // floats; smaller arrays are sent to all ranks

/// The part of the arrays that a rank sums.
struct Slice {
  size_t begin, end;
  size_t size() const { return end - begin; }
};

/// The sizes of a reduction, and the sender of each part.
struct Layout {
  int rank, ranks;
  std::vector<Slice> slices;                   // per rank
  std::vector<std::vector<ShardRange>> nodes;  // per rank
  size_t node_count = 0;
  size_t longest = 0;  // longest slice

  Layout(const Group* group, int shards, std::vector<Slice> parts)
      : rank(rank_of(group)), ranks(size_of(group)), slices(std::move(parts)), nodes(ranks) {
    for (int r = 0; r < ranks; ++r) {
      nodes[r] = nodes_of(shards_of_rank(r, ranks, shards), shards);
      node_count += nodes[r].size();
      longest = std::max(longest, slices[r].size());
    }
  }
};

/// The nodes of all ranks, in order.
std::vector<ShardRange> all_nodes(const Layout& layout) {
  std::vector<ShardRange> all;
  for (const auto& nodes : layout.nodes) all.insert(all.end(), nodes.begin(), nodes.end());
  return all;
}

/// The staging buffers of a segment, for sending or receiving: taken in order, reused in the next
/// segment.
class StagingBuffers {
 public:
  StagingBuffers() = default;
  StagingBuffers(float* begin, size_t floats) : begin_(begin), floats_(floats) {}

  void rewind() { next_ = 0; }
  void* take() { return begin_ + floats_ * next_++; }

 private:
  float* begin_ = nullptr;
  size_t floats_ = 0;  // per buffer
  size_t next_ = 0;
};

/// Segment by segment: sends each peer its part of this rank's nodes, receives the peers' nodes for
/// this rank's slice, and completes the tree.
class ReduceSchedule : public Schedule {
 public:
  /// `ready` may be null if the sum is complete.
  ReduceSchedule(TreeSum& sum, Layout layout, std::span<float> out, Wire wire, ReadyTest ready = {},
                 int wake_fd = -1)
      : sum_(sum),
        layout_(std::move(layout)),
        out_(out),
        wire_(layout_.ranks > 1 ? wire : Wire::kFloat32),
        ready_(std::move(ready)),
        wake_fd_(wake_fd),
        finish_(all_nodes(layout_), sum.shards()),
        segment_(std::min(kSegment, (layout_.longest + 1) / 2 * 2)) {
    const size_t own = layout_.nodes[layout_.rank].size();
    const size_t copies = wire_ == Wire::kFloat32 ? 0 : own * (layout_.ranks - 1);
    const size_t room = segment_ * wire_bytes(wire_) / sizeof(float);
    float* scratch = sum.scratch((layout_.node_count + copies) * room);
    staging_in_ = StagingBuffers(scratch, room);
    staging_out_ = StagingBuffers(scratch + layout_.node_count * room, room);
  }

  int rounds() const override {
    return layout_.longest == 0 ? 0 : static_cast<int>((layout_.longest - 1) / segment_) + 1;
  }

  Result<bool> ready(int round) override {
    if (round > 0 || !ready_) return true;
    return ready_();
  }
  int wake_fd() const override { return wake_fd_; }

  void sends(int round, std::vector<Send>* messages) override {
    staging_out_.rewind();
    for (int peer = 0; peer < layout_.ranks; ++peer) {
      if (peer == layout_.rank) continue;
      const size_t count = segment_floats(peer, round);
      for (const TreeSum::Partial& p : sum_.partials()) {
        if (count == 0) break;
        const void* part = on_wire(p.data + segment_begin(peer, round), count, &staging_out_);
        messages->push_back({peer, part, count * wire_bytes(wire_)});
      }
    }
  }

  void receives(int round, std::vector<Receive>* messages) override {
    const size_t count = segment_floats(layout_.rank, round);
    sources_.clear();
    sources_.reserve(layout_.node_count);  // pointers into it are kept
    staging_in_.rewind();
    if (count == 0) return;
    for (int peer = 0; peer < layout_.ranks; ++peer) {
      if (peer == layout_.rank) {
        for (const TreeSum::Partial& p : sum_.partials()) {
          const void* part = on_wire(p.data + segment_begin(peer, round), count, &staging_in_);
          sources_.push_back({part, wire_});
        }
        continue;
      }
      for (size_t node = 0; node < layout_.nodes[peer].size(); ++node) {
        void* buffer = staging_in_.take();
        sources_.push_back({buffer, wire_});
        messages->push_back({peer, buffer, count * wire_bytes(wire_), &sources_.back().data});
      }
    }
  }

  /// For a single rank, whose nodes are the whole tree.
  Status run_alone() {
    CFT_TRY(wait_until_ready([this] { return ready(0); }, wake_fd_));
    std::vector<Receive> none;
    for (int round = 0; round < rounds(); ++round) {
      receives(round, &none);
      received(round);
    }
    return {};
  }

  void received(int round) override {
    if (sources_.empty()) return;
    finish_.run(sources_, out_.data() + round * segment_, segment_floats(layout_.rank, round),
                sum_.pool());
  }

 private:
  size_t segment_begin(int rank, int round) const {
    return layout_.slices[rank].begin + round * segment_;
  }
  /// Number of floats of a rank's slice in the segment of this round.
  size_t segment_floats(int rank, int round) const {
    const size_t size = layout_.slices[rank].size();
    return std::min(segment_, size - std::min(round * segment_, size));
  }

  /// The values in wire format; this rank's own too, so that any rank would compute the same sum.
  const void* on_wire(const float* part, size_t count, StagingBuffers* buffers) const {
    if (wire_ == Wire::kFloat32) return part;
    auto* buffer = static_cast<uint16_t*>(buffers->take());
    narrow(wire_, part, count, buffer);
    return buffer;
  }

  TreeSum& sum_;
  const Layout layout_;
  const std::span<float> out_;
  const Wire wire_;
  const ReadyTest ready_;
  const int wake_fd_;
  const TreeFinish finish_;
  const size_t segment_;
  StagingBuffers staging_in_, staging_out_;
  std::vector<NodeValues> sources_;  // of the segment being received
};

/// Several schedules run back to back: the sends of a later one do not wait for replies to an
/// earlier one, so the network latency is paid once instead of once per schedule.
class Chain : public Schedule {
 public:
  /// `part` must outlive this object.
  void append(Schedule* part) {
    for (int round = 0; round < part->rounds(); ++round) rounds_.push_back({part, round});
  }

  int rounds() const override { return static_cast<int>(rounds_.size()); }
  Result<bool> ready(int round) override {
    return rounds_[round].part->ready(rounds_[round].number);
  }
  int wake_fd() const override { return rounds_.front().part->wake_fd(); }
  void sends(int round, std::vector<Send>* messages) override {
    rounds_[round].part->sends(rounds_[round].number, messages);
  }
  void receives(int round, std::vector<Receive>* messages) override {
    rounds_[round].part->receives(rounds_[round].number, messages);
  }
  void received(int round) override { rounds_[round].part->received(rounds_[round].number); }

 private:
  struct Round {
    Schedule* part;
    int number;  // within `part`
  };
  std::vector<Round> rounds_;
};

/// all_gather_slices() in a 16-bit format, segment by segment.
class NarrowGather : public Schedule {
 public:
  NarrowGather(const Group& group, std::span<float> arena, std::span<const size_t> slices,
               Wire wire)
      : rank_(group.rank()), arena_(arena), slices_(slices), wire_(wire) {
    for (int r = 0; r < group.size(); ++r) longest_ = std::max(longest_, size(r));
    segment_ = std::min(kSegment, longest_);
    staging_.resize(segment_ * slices_.size());
  }

  int rounds() const override { return static_cast<int>((longest_ + segment_ - 1) / segment_); }

  void sends(int round, std::vector<Send>* messages) override {
    const std::span<float> mine = part(rank_, round);
    if (mine.empty()) return;
    narrow(wire_, mine.data(), mine.size(), staging(rank_));
    widen(wire_, staging(rank_), mine.size(), mine.data());
    for (int peer = 0; peer < ranks(); ++peer) {
      if (peer != rank_)
        messages->push_back({peer, staging(rank_), mine.size() * sizeof(uint16_t)});
    }
  }

  void receives(int round, std::vector<Receive>* messages) override {
    for (int peer = 0; peer < ranks(); ++peer) {
      const size_t count = part(peer, round).size();
      if (peer != rank_ && count > 0) {
        messages->push_back({peer, staging(peer), count * sizeof(uint16_t)});
      }
    }
  }

  void received(int round) override {
    for (int peer = 0; peer < ranks(); ++peer) {
      const std::span<float> theirs = part(peer, round);
      if (peer != rank_) widen(wire_, staging(peer), theirs.size(), theirs.data());
    }
  }

 private:
  int ranks() const { return static_cast<int>(slices_.size()) - 1; }
  size_t size(int rank) const { return slices_[rank + 1] - slices_[rank]; }
  std::span<float> part(int rank, int round) const {
    const size_t start = std::min(round * segment_, size(rank));
    return arena_.subspan(slices_[rank] + start, std::min(segment_, size(rank) - start));
  }
  uint16_t* staging(int rank) { return staging_.data() + rank * segment_; }

  const int rank_;
  const std::span<float> arena_;
  const std::span<const size_t> slices_;
  const Wire wire_;
  size_t longest_ = 0;
  size_t segment_;
  std::vector<uint16_t> staging_;  // one segment per rank
};

}  // namespace

Status check_slices(const Group* group, std::span<const size_t> slices, size_t floats) {
  const bool fits = slices.size() == static_cast<size_t>(size_of(group)) + 1 &&
                    slices.front() == 0 && slices.back() == floats &&
                    std::is_sorted(slices.begin(), slices.end());
  if (fits) return {};
  return internal_error(fmt::format("{} slice offsets do not cut {} floats into {} slices",
                                    slices.size(), floats, size_of(group)));
}

Status check_reduction(const Group* group, const TreeSum& sum, std::span<const size_t> slices,
                       std::span<const float> out) {
  CFT_TRY(check_slices(group, slices, sum.floats()));
  const int rank = rank_of(group), ranks = size_of(group);
  const size_t mine = slices[rank + 1] - slices[rank];
  if (sum.complete() && sum.shards() > 0 && out.size() == mine &&
      sum.range() == shards_of_rank(rank, ranks, sum.shards())) {
    return {};
  }
  return internal_error(
      fmt::format("reduction: rank {} of {} has not summed its shards of {}, or has space for {} "
                  "floats instead of {}",
                  rank, ranks, sum.shards(), out.size(), mine));
}

Status reduce_scatter(Group* group, std::span<const Reduction> reductions, Wire wire,
                      ReadySource* source) {
  std::deque<ReduceSchedule> schedules;
  Chain chain;
  for (size_t index = 0; index < reductions.size(); ++index) {
    const Reduction& r = reductions[index];
    CFT_TRY(check_slices(group, r.slices, r.sum.floats()));
    const auto ready = [=, &r]() -> Result<bool> {
      CFT_ASSIGN(const bool is_ready, source ? source->ready(index) : Result<bool>(true));
      if (is_ready) CFT_TRY(check_reduction(group, r.sum, r.slices, r.out));
      return is_ready;
    };
    std::vector<Slice> parts;
    for (size_t i = 0; i + 1 < r.slices.size(); ++i) {
      parts.push_back({r.slices[i], r.slices[i + 1]});
    }
    Layout layout(group, r.sum.shards(), std::move(parts));
    chain.append(&schedules.emplace_back(r.sum, std::move(layout), r.out, wire, ready,
                                         source ? source->wake_fd() : -1));
  }
  if (chain.rounds() == 0) return {};
  if (group) return group->run(&chain);
  for (ReduceSchedule& schedule : schedules) CFT_TRY(schedule.run_alone());
  return {};
}

namespace {

/// all_gather_slices() in float32, sent directly from the arena.
Status gather_floats(Group* group, std::span<const AllGatherOp> gathers) {
  const int rank = group->rank();
  std::vector<Send> sends;
  std::vector<Receive> receives;
  for (const AllGatherOp& g : gathers) {
    const auto slice = [&](int r) {
      return g.arena.subspan(g.slices[r], g.slices[r + 1] - g.slices[r]);
    };
    const std::span<float> mine = slice(rank);
    for (int peer = 0; peer < group->size(); ++peer) {
      if (peer == rank) continue;
      const std::span<float> theirs = slice(peer);
      if (!mine.empty()) sends.push_back({peer, mine.data(), mine.size_bytes()});
      if (!theirs.empty()) receives.push_back({peer, theirs.data(), theirs.size_bytes()});
    }
  }
  if (sends.empty() && receives.empty()) return {};
  return group->exchange(sends, receives);
}

}  // namespace

Status all_gather_slices(Group* group, std::span<const AllGatherOp> gathers, Wire wire) {
  for (const AllGatherOp& g : gathers) CFT_TRY(check_slices(group, g.slices, g.arena.size()));
  if (size_of(group) == 1) return {};
  if (wire == Wire::kFloat32) return gather_floats(group, gathers);
  std::deque<NarrowGather> schedules;
  Chain chain;
  for (const auto& [arena, slices] : gathers) {
    if (!arena.empty()) chain.append(&schedules.emplace_back(*group, arena, slices, wire));
  }
  return chain.rounds() == 0 ? Status() : group->run(&chain);
}

Status all_reduce(Group* group, TreeSum& sum, std::span<float> out, Wire wire) {
  const int rank = rank_of(group), ranks = size_of(group);
  if (out.size() != sum.floats()) {
    return internal_error(
        fmt::format("all_reduce: space for {} floats, for a sum of {}", out.size(), sum.floats()));
  }
  const auto slices = even_slices(sum.floats(), ranks);
  const std::span<float> mine = out.subspan(slices[rank], slices[rank + 1] - slices[rank]);
  CFT_TRY(check_reduction(group, sum, slices, mine));
  if (sum.floats() > kDirect) {
    CFT_TRY(reduce_scatter(group, sum, slices, mine, wire));
    return all_gather_slices(group, out, slices, wire);
  }
  if (sum.floats() == 0) return {};
  std::vector<Slice> everything(ranks, Slice{0, sum.floats()});
  ReduceSchedule schedule(sum, Layout(group, sum.shards(), std::move(everything)), out, wire);
  if (ranks == 1) return schedule.run_alone();
  // `out` may still be in use by a send: no receive may run ahead of one, hence Group::run().
  CFT_TRY(group->Group::run(&schedule));
  round_to_wire(wire, out.data(), out.size());
  return {};
}

Status gather_shard_values(Group* group, int shards, std::span<const double> mine, int k,
                           std::span<double> all) {
  const int rank = rank_of(group), ranks = size_of(group);
  const auto range = [&](int r) { return shards_of_rank(r, ranks, shards); };
  const auto part = [&](int r) {
    return all.subspan(static_cast<size_t>(range(r).begin) * k,
                       static_cast<size_t>(range(r).size()) * k);
  };
  if (all.size() != static_cast<size_t>(shards) * k ||
      mine.size() != static_cast<size_t>(range(rank).size()) * k) {
    return internal_error(
        fmt::format("gather_shard_values: {} values of rank {} and space for {} do not match {} "
                    "shards with {} values each",
                    mine.size(), rank, all.size(), shards, k));
  }
  std::copy(mine.begin(), mine.end(), part(rank).begin());
  std::vector<Send> sends;
  std::vector<Receive> receives;
  for (int peer = 0; peer < ranks; ++peer) {
    if (peer == rank) continue;
    if (!mine.empty()) sends.push_back({peer, mine.data(), mine.size_bytes()});
    if (!part(peer).empty()) receives.push_back({peer, part(peer).data(), part(peer).size_bytes()});
  }
  if (sends.empty() && receives.empty()) return {};
  return group->exchange(sends, receives);
}

}  // namespace cafetiere
