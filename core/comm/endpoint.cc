// SPDX-License-Identifier: Apache-2.0
#include "core/comm/endpoint.h"

#include <fmt/format.h>

namespace cafetiere {

std::string PeerName::text() const { return fmt::format("rank {} at {}", peer, address); }

Status wrong_size(const PeerName& name, uint64_t sent, uint64_t expected) {
  return internal_error(fmt::format(
      "rank {} sends {} bytes where rank {} expects {}: the ranks run different programs or "
      "settings",
      name.peer, sent, name.self, expected));
}

}  // namespace cafetiere
