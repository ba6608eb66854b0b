// SPDX-License-Identifier: Apache-2.0
#include "core/sync/weight_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/comm/collectives.h"
#include "core/data/hash.h"

namespace cafetiere {

Status compare_weights(Group* group, std::span<const float> weights, int64_t iteration) {
  if (size_of(group) == 1) return {};
  const uint64_t mine = hash128(std::as_bytes(weights), 0).low;
  std::vector<uint64_t> all(static_cast<size_t>(size_of(group)));
  CFT_TRY(all_gather(group, std::as_bytes(std::span(&mine, 1)),
                     std::as_writable_bytes(std::span(all))));
  uint64_t common = all.front();
  for (const uint64_t hash : all) {
    if (std::ranges::count(all, hash) > std::ranges::count(all, common)) common = hash;
  }
  std::vector<int> odd;
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank] != common) odd.push_back(int(rank));
  }
  if (odd.empty()) return {};
  const bool told = 2 * odd.size() < all.size();
  // The first rank that ends its run cancels the others, which by then are to have heard why.
  (void)barrier(group);
  if (!told) {
    return internal_error(fmt::format(
        "after iteration {} the {} ranks have different weights, and no majority tells which ones "
        "are wrong: the memory or the code of a machine is at fault. Test them, and resume from "
        "the "
        "last checkpoint",
        iteration, all.size()));
  }
  return internal_error(fmt::format(
      "after iteration {} the weights of rank {} are not those of the other ranks: its memory or "
      "its code is at fault. Exclude that machine and resume from the last checkpoint",
      iteration, fmt::join(odd, ", ")));
}

}  // namespace cafetiere
