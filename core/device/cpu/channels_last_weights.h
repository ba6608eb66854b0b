// SPDX-License-Identifier: Apache-2.0
// Common code of the channels-last weight gradients of all number formats: the division of their
// sums.
#pragma once

#include <algorithm>
#include <memory>
#include <string>

#include "core/device/cpu/channels_last.h"

namespace cafetiere::channels_last {

/// The sums divided into blocks: (part of the images, group, range of outputs, range of source
/// channels). Parts are summed separately and added in order.
struct SumBlocks {
  Correlation c;
  LaneBlocks lanes;
  int64_t outputs, sources, parts;

  int64_t together;  ///< source channels that stay in the same block

  /// `most_sources`: maximum number of source channels per block.
  SumBlocks(const ConvGeometry& g, LaneBlocks lanes, int64_t most_sources, int64_t together = 1)
      : c(forward_correlation(g)), lanes(lanes), together(together) {
    constexpr int64_t kSumFloats = 64 << 10;  // sums per block: they fit into the L2 cache
    constexpr int64_t kFewBlocks = 16;        // with fewer blocks, the images are divided into
                                              // parts
    const int64_t per_source = lanes.height(0) * c.kernel_size();
    const int64_t fit =
        std::clamp<int64_t>(kSumFloats / per_source, 1, std::min(most_sources, c.group_in()));
    const int64_t most = std::max<int64_t>(1, fit / together);
    sources = (units() + most - 1) / most;
    const int64_t lane_blocks = std::max<int64_t>(1, kSumFloats / (per_source * fit));
    outputs = (lanes.count + lane_blocks - 1) / lane_blocks;
    const int64_t blocks = c.group * outputs * sources;
    parts = std::clamp<int64_t>((kFewBlocks + blocks - 1) / blocks, 1, std::min<int64_t>(8, c.n));
  }

  int64_t blocks() const { return parts * c.group * outputs * sources; }
  int64_t units() const { return (c.group_in() + together - 1) / together; }
  int64_t source(int64_t range) const {
    return std::min(range * units() / sources * together, c.group_in());
  }
  int64_t depth() const { return c.group_in() * c.kernel_size(); }
  /// Floats per part: [group][block of lanes][source channel][kernel element][lane].
  int64_t size() const { return c.group * lanes.heights() * depth(); }

  /// A block: blocks of lanes [b0, b1), `channels` source channels starting at `first`.
  struct Block {
    int64_t part, group, b0, b1, first, channels;
  };
  Block block(int index) const {
    const int64_t range = index % sources, output = index / sources % outputs;
    return {.part = index / sources / outputs / c.group,
            .group = index / sources / outputs % c.group,
            .b0 = output * lanes.count / outputs,
            .b1 = (output + 1) * lanes.count / outputs,
            .first = source(range),
            .channels = source(range + 1) - source(range)};
  }
  /// The sums of a block of lanes, starting at a source channel; `sums` are those of its part and
  /// group.
  float* sum(float* sums, int64_t b, int64_t source) const {
    return sums + lanes.begin(b) * depth() + source * c.kernel_size() * lanes.height(b);
  }
  /// Sets a block's sums to zero and returns those of its part and group.
  float* zero(float* partial, int index) const {
    const Block of = block(index);
    float* const sums = partial + of.part * size() + of.group * lanes.heights() * depth();
    for (int64_t b = of.b0; b < of.b1; ++b) {
      std::fill_n(sum(sums, b, of.first), of.channels * c.kernel_size() * lanes.height(b), 0.f);
    }
    return sums;
  }
};

/// The rows of the sums: the kernel elements of a source channel; those of an unfolded source; or
/// outputs, with the source channels of a 1 x 1 kernel in lanes.
enum class SumRows { kSources, kUnfolded, kOutputs };

/// Emits the step that adds the parts in order and writes the weight gradient of `g`.
void unpack_sums(Program&, const std::string& name, const ConvGeometry& g,
                 const std::shared_ptr<const SumBlocks>&, BufferId partial, Gradient diff_weights,
                 SumRows);

}  // namespace cafetiere::channels_last
