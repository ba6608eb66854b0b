// SPDX-License-Identifier: Apache-2.0
#include "core/sync/mode_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/comm/collectives.h"

namespace cafetiere {
namespace {

/// What rank 0 requests from a rank: its part of some floats of an array; or, with `last`, nothing
/// more, and `count` bytes of an error text follow.
struct Request {
  uint32_t last = 0, kind = 0;
  uint64_t index = 0, shard = 0, begin = 0, count = 0;
};

constexpr uint64_t kMaxErrorBytes = 4096;

const StateParts* find_parts(const PlacedState& placed, const StateArray& array) {
  const auto at = [](const auto& list, size_t i) { return i < list.size() ? &list[i] : nullptr; };
  if (array.kind == StateArray::kHistory) return at(placed.history, array.index);
  if (array.kind == StateArray::kOuter) return at(placed.outer, array.index);
  const auto* shard = at(placed.replicas, array.shard);
  return shard ? at(*shard, array.index) : nullptr;
}

/// The intersection of a part with [begin, end); may be empty.
StatePart cut(const StatePart& part, size_t begin, size_t end) {
  const size_t from = std::clamp(begin, part.begin, part.end);
  const size_t to = std::clamp(end, from, part.end);
  return {part.rank, from, to, part.values ? part.values + (from - part.begin) : nullptr};
}

class PlacedReader final : public ModeState {
 public:
  PlacedReader(Group* group, const PlacedState& placed) : group_(group), placed_(placed) {
    mode = placed.mode;
    kinds = placed.history.size();
    replicas = placed.replicas.size();
    outer = placed.outer.size();
  }

  Status read(const StateArray& array, size_t begin, std::span<float> out) override {
    const StateParts* parts = find_parts(placed_, array);
    if (!parts) return internal_error("the mode does not have the requested array");
    std::ranges::fill(out, 0.F);
    std::vector<int> owners;
    std::vector<Receive> receives;
    for (const StatePart& whole : *parts) {
      const StatePart part = cut(whole, begin, begin + out.size());
      if (part.begin == part.end) continue;
      float* const to = out.data() + (part.begin - begin);
      if (part.rank == 0) {
        std::copy_n(part.values, part.end - part.begin, to);
        continue;
      }
      receives.push_back({part.rank, to, (part.end - part.begin) * sizeof(float)});
      if (std::ranges::count(owners, part.rank) == 0) owners.push_back(part.rank);
    }
    if (owners.empty()) return {};
    const Request request{0, array.kind, array.index, array.shard, begin, out.size()};
    std::vector<Send> sends;
    for (const int rank : owners) sends.push_back({rank, &request, sizeof request});
    return group_->exchange(sends, receives);
  }

 private:
  Group* const group_;
  const PlacedState& placed_;
};

/// Ends serve() on the other ranks, with rank 0's error if it failed.
Status end_service(Group* group, const Status& status) {
  const std::string text = status.message().substr(0, kMaxErrorBytes);
  const Request last{.last = 1, .count = status.ok() ? 0 : std::max<uint64_t>(text.size(), 1)};
  const std::string bytes = text.empty() ? " " : text;
  std::vector<Send> sends;
  for (int rank = 1; rank < size_of(group); ++rank) {
    sends.push_back({rank, &last, sizeof last});
    if (last.count > 0) sends.push_back({rank, bytes.data(), last.count});
  }
  return sends.empty() ? Status() : group->exchange(sends, {});
}

Status hear_end(Group* group, const Request& last) {
  if (last.count == 0) return {};
  if (last.count > kMaxErrorBytes) return internal_error("rank 0 ended a checkpoint oddly");
  std::string text(last.count, '\0');
  const Receive receive{0, text.data(), text.size()};
  CFT_TRY(group->exchange({}, {&receive, 1}));
  return unavailable("rank 0 could not take the checkpoint: " + text);
}

/// Sends rank 0 what it requests, until it is done.
Status serve(Group* group, const PlacedState& placed) {
  while (true) {
    Request request;
    const Receive receive{0, &request, sizeof request};
    CFT_TRY(group->exchange({}, {&receive, 1}));
    if (request.last != 0) return hear_end(group, request);
    const StateParts* parts = find_parts(
        placed, {StateArray::Kind(request.kind), size_t(request.index), size_t(request.shard)});
    if (!parts) return internal_error("rank 0 requests an array that this rank does not have");
    std::vector<Send> sends;
    for (const StatePart& whole : *parts) {
      if (whole.rank != group->rank()) continue;
      const StatePart part = cut(whole, request.begin, request.begin + request.count);
      if (part.begin == part.end) continue;
      sends.push_back({0, part.values, (part.end - part.begin) * sizeof(float)});
    }
    CFT_TRY(group->exchange(sends, {}));
  }
}

}  // namespace

HeldHistory::HeldHistory(HistoryArenas history, std::string kept_by)
    : history_(std::move(history)) {
  mode = std::move(kept_by);
  kinds = history_.size();
}

Status HeldHistory::read(const StateArray& array, size_t begin, std::span<float> out) {
  const bool there = array.kind == StateArray::kHistory && array.index < history_.size() &&
                     begin + out.size() <= history_[array.index].size();
  if (!there) return internal_error("the mode does not have the requested array");
  std::copy_n(history_[array.index].begin() + ptrdiff_t(begin), out.size(), out.begin());
  return {};
}

NoHistory::NoHistory(size_t history_kinds, int first) {
  kinds = history_kinds;
  began = first;
}

Status NoHistory::read(const StateArray&, size_t, std::span<float> out) {
  std::ranges::fill(out, 0.f);
  return {};
}

Status show_placed(Group* group, const PlacedState& placed, const StateUse& use) {
  if (rank_of(group) != 0) return serve(group, placed);
  PlacedReader state(group, placed);
  const Status used = use(state);
  const Status ended = end_service(group, used);
  return used.ok() ? ended : used;
}

}  // namespace cafetiere
