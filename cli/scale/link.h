// SPDX-License-Identifier: Apache-2.0
// Link: what joins two ranks of different hosts, as a model of exchanges needs it.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace cafetiere {

/// A full-duplex link from each host to a switch that is never the bottleneck.
struct Link {
  std::string name;
  double bytes_per_s = 0;  ///< of payload, in each direction
  double latency_s = 0;    ///< one way, from a process to a process
  double message_s = 0;    ///< a processor's work for one message
  double byte_s = 0;       ///< and for a byte sent and another received

  /// Bytes/s of one rank where `ranks` of a host exchange at once: the link's, at most what its
  /// processor moves.
  double rank_rate(double ranks = 1) const {
    return std::min(bytes_per_s / ranks, byte_s > 0 ? 1 / byte_s : bytes_per_s);
  }
};

/// "1gbe", "10gbe", "25gbe", "100gbe" (TCP, 1,448 of each 1,538 bytes on the wire are payload) and
/// "infiniband" (100 Gbit/s EDR, as its makers say; UCX has not been measured on it).
const std::vector<Link>& known_links();

/// A known link, or "MBIT,ONE_WAY_MS": Mbit/s of payload and milliseconds, as in "500,25"; a third
/// number says what Mbit/s a rank's processor moves while it does nothing else.
Result<Link> parse_link(std::string_view text);

}  // namespace cafetiere
