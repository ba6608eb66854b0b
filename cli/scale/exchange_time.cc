// SPDX-License-Identifier: Apache-2.0
#include "cli/scale/exchange_time.h"

#include <algorithm>

#include "core/comm/shard_tree.h"

namespace cafetiere {
namespace {

constexpr double kMemoryMessage = 1e-6;  // seconds

/// The most nodes that a rank sends of.
double most_nodes(int ranks, int shards) {
  if (shards <= ranks) return 1;
  size_t most = 1;
  for (int r = 0; r < ranks; ++r) {
    most = std::max(most, nodes_of(shards_of_rank(r, ranks, shards), shards).size());
  }
  return double(most);
}

double tree_seconds(const Link& link, double bytes, double ranks, double rate, double nodes) {
  return 2 * (link.latency_s + (ranks - 1) * link.message_s) +
         (nodes + 1) * (ranks - 1) / ranks * bytes / rate;
}

}  // namespace

double exchange_seconds(const Link& link, ExchangeKind exchange, double floats,
                        const ExchangeSetting& setting) {
  if (setting.ranks <= 1) return 0;
  const double ranks = setting.ranks;
  const double bytes = floats * setting.wire_bytes;
  const double per_host = std::min(setting.ranks_per_host, setting.ranks);
  const bool one_host = per_host >= ranks;
  const Link memory{"memory", setting.memory_rate, kMemoryMessage, kMemoryMessage, 0};
  const Link& road = one_host ? memory : link;
  const double rate = road.rank_rate(one_host ? 1 : per_host);
  switch (exchange) {
    case ExchangeKind::kTree:
      return tree_seconds(road, bytes, ranks, rate, most_nodes(setting.ranks, setting.shards));
    case ExchangeKind::kRing:
      // Between neighbours of a ring only one rank of a host speaks with another host.
      return 2 * (ranks - 1) * (road.latency_s + road.message_s + bytes / ranks / road.rank_rate());
    case ExchangeKind::kHierarchical: {
      const double inside = 2 * (per_host - 1) / per_host * bytes / setting.memory_rate;
      const double hosts = ranks / per_host;
      return inside + (hosts > 1 ? tree_seconds(link, bytes, hosts, link.rank_rate(), 1) : 0);
    }
  }
  return 0;
}

}  // namespace cafetiere
