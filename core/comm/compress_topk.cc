// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/comm/collectives.h"
#include "core/comm/compress.h"

namespace cafetiere {

TopK::TopK(Group* group, size_t floats, double density) : Compressor(group, floats) {
  const auto k = static_cast<size_t>(std::ceil(density * static_cast<double>(floats)));
  chosen_.resize(std::min(std::max<size_t>(k, 1), floats));
  all_.resize(chosen_.size() * static_cast<size_t>(size_of(group)));
}

/// Moves the k values of largest magnitude of error_ to chosen_, ordered by index; the first wins
/// ties.
void TopK::choose() {
  magnitudes_.resize(error_.size());
  std::ranges::transform(error_, magnitudes_.begin(), [](float v) { return std::fabs(v); });
  const auto last = magnitudes_.begin() + static_cast<ptrdiff_t>(chosen_.size()) - 1;
  std::nth_element(magnitudes_.begin(), last, magnitudes_.end(), std::greater<>());
  const float threshold = *last;
  size_t equal = static_cast<size_t>(
      std::count(magnitudes_.begin(), magnitudes_.begin() + ptrdiff_t(chosen_.size()), threshold));
  auto next = chosen_.begin();
  for (size_t i = 0; i < error_.size() && next != chosen_.end(); ++i) {
    const float magnitude = std::fabs(error_[i]);
    if (magnitude < threshold || (magnitude == threshold && equal == 0)) continue;
    if (magnitude == threshold) --equal;
    *next++ = {static_cast<uint32_t>(i), error_[i]};
    error_[i] = 0;
  }
}

Status TopK::mean(std::span<float> gradient) {
  if (gradient.size() != error_.size() || error_.size() > UINT32_MAX) {
    return internal_error(fmt::format("top-k: a gradient of {} floats, expected {}, below 2^32",
                                      gradient.size(), error_.size()));
  }
  if (gradient.empty()) return {};
  for (size_t i = 0; i < gradient.size(); ++i) error_[i] += gradient[i];
  choose();
  CFT_TRY(all_gather(group_, std::as_bytes(std::span(chosen_)),
                     std::as_writable_bytes(std::span(all_))));
  std::ranges::fill(gradient, 0.f);
  for (const Entry& e : all_) {
    if (e.place >= gradient.size()) {
      return internal_error(
          fmt::format("top-k: a peer sent index {} of {}: the ranks train different nets", e.place,
                      gradient.size()));
    }
    gradient[e.place] += e.value;
  }
  const float share = 1.f / static_cast<float>(size_of(group_));
  for (float& v : gradient) v *= share;
  return {};
}

}  // namespace cafetiere
