// SPDX-License-Identifier: Apache-2.0
#include "core/comm/collectives.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <new>

#include "core/comm/check_exchange.h"

namespace cafetiere {
namespace {

using Bytes = std::vector<std::byte>;

/// Allocates buffers of the sizes announced by the peers; returns an error instead of throwing.
Status make_room(std::span<const uint64_t> sizes, std::vector<Bytes>* room) {
  room->resize(sizes.size());
  for (size_t r = 0; r < sizes.size(); ++r) {
    if (sizes[r] > kMaxMessageBytes) {
      return internal_error(fmt::format("rank {} announces a message of {} bytes", r, sizes[r]));
    }
    try {
      (*room)[r].resize(sizes[r]);
    } catch (const std::bad_alloc&) {
      return {ErrorCode::kOutOfMemory,
              fmt::format("out of memory for the {} bytes that rank {} sends", sizes[r], r)};
    }
  }
  return {};
}

}  // namespace

Status barrier(Group* group) {
  // Dissemination: after round k a rank has heard, directly or indirectly, from 2^(k+1) ranks.
  const int rank = rank_of(group), size = size_of(group);
  for (int distance = 1; distance < size; distance *= 2) {
    const Send send{(rank + distance) % size, nullptr, 0};
    const Receive receive{(rank - distance + size) % size, nullptr, 0};
    CFT_TRY(group->exchange({&send, 1}, {&receive, 1}));
  }
  return {};
}

Status broadcast(Group* group, int root, std::span<std::byte> bytes) {
  // A binomial tree: in round k the first 2^k ranks, counted from the root, each send to one more.
  const int size = size_of(group);
  if (root < 0 || root >= size) {
    return internal_error(fmt::format("broadcast: no rank {} among {}", root, size));
  }
  const int place = (rank_of(group) - root + size) % size;
  for (int served = 1; served < size; served *= 2) {
    if (place < served && place + served < size) {
      const Send send{(place + served + root) % size, bytes.data(), bytes.size()};
      CFT_TRY(group->exchange({&send, 1}, {}));
    } else if (place >= served && place < 2 * served) {
      const Receive receive{(place - served + root) % size, bytes.data(), bytes.size()};
      CFT_TRY(group->exchange({}, {&receive, 1}));
    }
  }
  return {};
}

Status all_gather(Group* group, std::span<const std::byte> mine, std::span<std::byte> all) {
  const int rank = rank_of(group), size = size_of(group);
  if (all.size() != mine.size() * size) {
    return internal_error(fmt::format("all_gather: {} bytes from each of {} ranks do not make {}",
                                      mine.size(), size, all.size()));
  }
  if (!mine.empty()) std::memmove(&all[rank * mine.size()], mine.data(), mine.size());
  if (size == 1) return {};
  std::vector<Send> sends;
  std::vector<Receive> receives;
  for (int peer = 0; peer < size; ++peer) {
    if (peer == rank) continue;
    sends.push_back({peer, mine.data(), mine.size()});
    receives.push_back({peer, all.data() + peer * mine.size(), mine.size()});
  }
  return group->exchange(sends, receives);
}

Result<std::vector<Bytes>> all_gather_v(Group* group, std::span<const std::byte> mine) {
  const int rank = rank_of(group), size = size_of(group);
  const uint64_t bytes = mine.size();
  std::vector<uint64_t> sizes(size);
  CFT_TRY(all_gather(group, std::as_bytes(std::span(&bytes, 1)),
                     std::as_writable_bytes(std::span(sizes))));
  std::vector<Bytes> all;
  CFT_TRY(make_room(sizes, &all));
  all[rank].assign(mine.begin(), mine.end());
  if (size == 1) return all;
  std::vector<Send> sends;
  std::vector<Receive> receives;
  for (int peer = 0; peer < size; ++peer) {
    if (peer == rank) continue;
    sends.push_back({peer, mine.data(), mine.size()});
    receives.push_back({peer, all[peer].data(), all[peer].size()});
  }
  CFT_TRY(group->exchange(sends, receives));
  return all;
}

Result<std::vector<Bytes>> all_to_all_v(Group* group, std::vector<Bytes> to) {
  const int rank = rank_of(group), size = size_of(group);
  if (to.size() != static_cast<size_t>(size)) {
    return internal_error(fmt::format("all_to_all_v: {} messages for {} ranks", to.size(), size));
  }
  if (size == 1) return to;
  std::vector<uint64_t> out_sizes(size), in_sizes(size);
  std::vector<Send> sends;
  std::vector<Receive> receives;
  for (int peer = 0; peer < size; ++peer) {
    out_sizes[peer] = to[peer].size();
    if (peer == rank) continue;
    sends.push_back({peer, &out_sizes[peer], sizeof(uint64_t)});
    receives.push_back({peer, &in_sizes[peer], sizeof(uint64_t)});
  }
  CFT_TRY(group->exchange(sends, receives));
  std::vector<Bytes> from;
  CFT_TRY(make_room(in_sizes, &from));
  from[rank] = std::move(to[rank]);
  sends.clear();
  receives.clear();
  for (int peer = 0; peer < size; ++peer) {
    if (peer == rank) continue;
    sends.push_back({peer, to[peer].data(), to[peer].size()});
    receives.push_back({peer, from[peer].data(), from[peer].size()});
  }
  CFT_TRY(group->exchange(sends, receives));
  return from;
}

}  // namespace cafetiere
