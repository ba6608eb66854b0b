// SPDX-License-Identifier: Apache-2.0
#include "core/device/cpu/bf16_channel_sums.h"

#include "core/device/cpu/bf16_channel_sums_rows.h"
#include "core/device/cpu/lane_chunks.h"
#include "core/device/isa.h"

namespace cafetiere::bf16 {
namespace {

struct Octets {
  static constexpr int64_t kLanes = kOctet;
  using Float = Simd8;
  template <class T>
  static Simd8 load(const T* from, int64_t lanes) {
    return lanes == kOctet ? load_octet(from, kOctet) : load_octet(from, lanes);
  }
};

}  // namespace

void sum_channels_plainly(const ChannelSums& of) { sum_rows<Octets>(of); }

SumChannels sum_channels() {
  return has_wide_vectors(instruction_set()) ? sum_channels_512 : sum_channels_plainly;
}

}  // namespace cafetiere::bf16
