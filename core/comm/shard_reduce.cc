// The exchanges of the shard tree. Both sides of every message know its size from V, N and the
// slices, so nothing but numbers travels.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/comm/collectives.h"
#include "core/comm/shard_tree.h"

namespace cafetiere {
namespace {

constexpr size_t kSegment = 256 << 10;  // floats of a slice that travel in one exchange
constexpr size_t kTile = 1024;          // floats combined at a time: all operands stay in cache
constexpr int kMaxDepth = 32;           // of a tree over int shards

/// One addition of the tree. Operands and result are named by their place on a stack: adding pops
/// two places and pushes one.
struct Step {
  enum class Kind { kPush, kAdd } kind;
  int source;  // kPush: which node
};

/// Combines the nodes of all ranks to the root, the same additions for every element.
class TreeFinish {
 public:
  TreeFinish(std::span<const ShardRange> nodes, int shards) {
    std::vector<ShardRange> stack;
    for (size_t i = 0; i < nodes.size(); ++i) {
      stack.push_back(nodes[i]);
      steps_.push_back({Step::Kind::kPush, static_cast<int>(i)});
      while (stack.size() > 1 &&
             are_siblings(stack[stack.size() - 2], stack[stack.size() - 1], shards)) {
        const int end = stack.back().end;
        stack.pop_back();
        stack.back().end = end;
        steps_.push_back({Step::Kind::kAdd, 0});
      }
    }
  }

  void run(std::span<const float* const> sources, float* out, size_t floats,
           ThreadPool* pool) const {
    const int tiles = static_cast<int>((floats + kTile - 1) / kTile);
    const auto tile = [&](int t) {
      const size_t at = t * kTile;
      run_tile(sources, at, std::min(kTile, floats - at), out);
    };
    if (pool) {
      pool->run(tiles, tile);
    } else {
      for (int t = 0; t < tiles; ++t) tile(t);
    }
  }

 private:
  void run_tile(std::span<const float* const> sources, size_t at, size_t count, float* out) const {
    float sums[kMaxDepth][kTile];
    const float* stack[kMaxDepth];
    int depth = 0;
    for (size_t s = 0; s < steps_.size(); ++s) {
      if (steps_[s].kind == Step::Kind::kPush) {
        stack[depth++] = sources[steps_[s].source] + at;
        continue;
      }
      const float* left = stack[depth - 2];
      const float* right = stack[depth - 1];
      --depth;
      float* sum = s + 1 == steps_.size() ? out + at : sums[depth - 1];
      for (size_t i = 0; i < count; ++i) sum[i] = left[i] + right[i];
      stack[depth - 1] = sum;
    }
    if (stack[0] != out + at) std::memcpy(out + at, stack[0], count * sizeof(float));
  }

  std::vector<Step> steps_;
};

/// The sizes of one reduce_scatter and who sends what.
struct Layout {
  int rank, ranks;
  std::span<const size_t> slices;
  std::vector<std::vector<ShardRange>> nodes;  // of each rank
  size_t node_count = 0;

  Layout(const Group* group, int shards, std::span<const size_t> offsets)
      : rank(rank_of(group)), ranks(size_of(group)), slices(offsets), nodes(ranks) {
    for (int r = 0; r < ranks; ++r) {
      nodes[r] = nodes_of(shards_of_rank(r, ranks, shards), shards);
      node_count += nodes[r].size();
    }
  }

  size_t slice_floats(int r) const { return slices[r + 1] - slices[r]; }
  /// How much of rank r's slice belongs to the segment that starts at `start`.
  size_t segment_floats(int r, size_t start) const {
    return std::min(kSegment, slice_floats(r) - std::min(start, slice_floats(r)));
  }
  size_t longest_slice() const {
    size_t longest = 0;
    for (int r = 0; r < ranks; ++r) longest = std::max(longest, slice_floats(r));
    return longest;
  }
};

Status check_slices(const Group* group, std::span<const size_t> slices, size_t floats) {
  const bool fits = slices.size() == static_cast<size_t>(size_of(group)) + 1 &&
                    slices.front() == 0 && slices.back() == floats &&
                    std::is_sorted(slices.begin(), slices.end());
  if (fits) return {};
  return internal_error(fmt::format("{} slice offsets do not cut {} floats into {} slices",
                                    slices.size(), floats, size_of(group)));
}

/// Receives the peers' parts of one segment of our slice into `scratch` and sends them theirs;
/// leaves in `sources` where each node's part lies.
Status exchange_segment(Group* group, const TreeSum& sum, const Layout& layout, size_t start,
                        float* scratch, std::vector<const float*>* sources) {
  std::vector<Send> sends;
  std::vector<Receive> receives;
  const size_t mine = layout.segment_floats(layout.rank, start);
  sources->clear();
  for (int peer = 0; peer < layout.ranks; ++peer) {
    const size_t theirs = layout.segment_floats(peer, start);
    for (const TreeSum::Partial& p : sum.partials()) {
      const float* part = p.data + layout.slices[peer] + start;
      if (peer == layout.rank) {
        sources->push_back(part);
      } else if (theirs > 0) {
        sends.push_back({peer, part, theirs * sizeof(float)});
      }
    }
    if (peer == layout.rank) continue;
    for (size_t node = 0; node < layout.nodes[peer].size(); ++node, scratch += kSegment) {
      sources->push_back(scratch);
      if (mine > 0) receives.push_back({peer, scratch, mine * sizeof(float)});
    }
  }
  if (sends.empty() && receives.empty()) return {};
  return group->exchange(sends, receives);
}

}  // namespace

Status reduce_scatter(Group* group, TreeSum& sum, std::span<const size_t> slices,
                      std::span<float> out) {
  CFT_TRY(check_slices(group, slices, sum.floats()));
  const Layout layout(group, sum.shards(), slices);
  if (!sum.complete() || sum.shards() < 1 || out.size() != layout.slice_floats(layout.rank) ||
      sum.range() != shards_of_rank(layout.rank, layout.ranks, sum.shards())) {
    return internal_error(fmt::format(
        "reduce_scatter: rank {} of {} has not summed its shards of {}, or gives {} floats of room "
        "for a slice of {}",
        layout.rank, layout.ranks, sum.shards(), out.size(), layout.slice_floats(layout.rank)));
  }
  std::vector<ShardRange> all;
  for (const auto& nodes : layout.nodes) all.insert(all.end(), nodes.begin(), nodes.end());
  const TreeFinish finish(all, sum.shards());
  const size_t received = layout.node_count - sum.partials().size();
  const size_t longest = layout.longest_slice();
  float* scratch = sum.scratch(received * kSegment);
  std::vector<const float*> sources;
  for (size_t start = 0; start < longest; start += kSegment) {
    CFT_TRY(exchange_segment(group, sum, layout, start, scratch, &sources));
    const size_t mine = layout.segment_floats(layout.rank, start);
    if (mine > 0) finish.run(sources, out.data() + start, mine, sum.pool());
  }
  return {};
}

Status all_gather_slices(Group* group, std::span<float> arena, std::span<const size_t> slices) {
  CFT_TRY(check_slices(group, slices, arena.size()));
  const int rank = rank_of(group), ranks = size_of(group);
  std::vector<Send> sends;
  std::vector<Receive> receives;
  const auto bytes = [&](int r) { return (slices[r + 1] - slices[r]) * sizeof(float); };
  for (int peer = 0; peer < ranks; ++peer) {
    if (peer == rank) continue;
    if (bytes(rank) > 0) sends.push_back({peer, arena.data() + slices[rank], bytes(rank)});
    if (bytes(peer) > 0) receives.push_back({peer, arena.data() + slices[peer], bytes(peer)});
  }
  if (sends.empty() && receives.empty()) return {};
  return group->exchange(sends, receives);
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
    return internal_error(fmt::format(
        "gather_shard_values: {} values of rank {} and room for {} do not fit {} shards with {} "
        "values each",
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
