// SPDX-License-Identifier: Apache-2.0
// How long one exchange of parameters takes, by the model of Hockney ("The communication challenge
// for MPP", 1994): a message of b bytes takes latency + b / rate, and a rank's messages share its
// link.
#pragma once

#include "cli/scale/link.h"

namespace cafetiere {

/// How an all-reduce is laid out.
enum class ExchangeKind {
  /// Reduce-scatter and all-gather, each message straight to its reader: the engine's own, and that
  /// of EASGD (parts of the center variable go to their owners and come back).
  kTree,
  /// The same bytes in 2 (N - 1) turns from neighbour to neighbour (Patarasuk and Yuan, "Bandwidth
  /// optimal all-reduce algorithms for clusters of workstations", 2009).
  kRing,
  /// Within each host over shared memory, then the tree across hosts.
  kHierarchical,
};

struct ExchangeSetting {
  int ranks = 1;
  int ranks_per_host = 1;    ///< they share their host's link
  int shards = 0;            ///< of the shard tree; 0: one a rank
  double wire_bytes = 4;     ///< of one number: 4 or 2
  double memory_rate = 5e9;  ///< bytes/s of a rank's exchange over shared memory
};

/// Seconds from the moment in which every rank is ready until all have the sum of `floats` numbers;
/// 0 for one rank.
///   tree          2 (L + (N-1) o) + (n + 1) (N-1)/N B / r
///   ring          2 (N-1) (L + o + B/N / r)
///   hierarchical  2 (h-1)/h B / memory_rate + tree over N/h hosts
/// N ranks, h of them a host, B bytes, L latency, o work for a message, r rate of a rank, and n the
/// most nodes of the shard tree that a rank holds: 1 where shards / ranks is a power of two.
double exchange_seconds(const Link& link, ExchangeKind exchange, double floats,
                        const ExchangeSetting& setting);

/// What half of an exchange, the sums alone or the weights alone, takes however little travels.
inline double trip_seconds(const Link& link, ExchangeKind exchange,
                           const ExchangeSetting& setting) {
  return exchange_seconds(link, exchange, 0, setting) / 2;
}

}  // namespace cafetiere
