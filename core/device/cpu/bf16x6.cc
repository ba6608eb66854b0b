// SPDX-License-Identifier: Apache-2.0
#include "core/device/cpu/bf16x6.h"

#include <algorithm>
#include <array>

#include "core/device/cpu/bf16_product.h"
#include "core/device/cpu/bf16x6_product.h"
#include "core/device/cpu/biased_step.h"
#include "core/device/cpu/convolution.h"
#include "core/device/cpu/whole_pieces.h"
#include "core/device/map.h"

namespace cafetiere::bf16x6 {
namespace {

/// Numbers of a source that are split together; their planes fit into the L2 cache.
constexpr int64_t kSplit = 32768;
constexpr int64_t kFewBlocks = 8;  // with fewer blocks, lanes or rows are divided too
constexpr int64_t kTokens = 128;   // rows of a weight gradient that are split together
constexpr int64_t kOutputs = 512, kInputs = 256;  // of a block of a weight gradient
/// With fewer rows, splitting the weights takes longer than the products save.
constexpr int64_t kFewRows = 256;

std::string kernel_name(int64_t depth, int64_t lanes) {
  return "bf16 x 6, " + std::to_string(depth) + " to " + std::to_string(lanes);
}

/// y(row, lane) = sum over the depth of x(row, depth) w(lane, depth).
struct Rows {
  int64_t rows, depth, lanes;
  /// Rows per block, and their depth that is split together. Of many weights each is to be used for
  /// more rows.
  int64_t together = depth < 512 ? 64 : 128, deep = kSplit / together;
  int64_t row_blocks = parts_of(rows, together);
  int64_t lane_parts = std::clamp<int64_t>(kFewBlocks / row_blocks, 1, blocks(lanes));
};

/// One block: rows of the source are split as they are used, weights were split before.
struct RowsKernel {
  Rows of;
  const float* x;
  const uint16_t* weights;
  const float* bias;
  float* y;
  bool relu;

  void operator()(int block) const {
    const int64_t part = block % of.lane_parts, row = block / of.lane_parts * of.together;
    const int64_t rows = std::min(of.together, of.rows - row);
    const int64_t begin = part * blocks(of.lanes) / of.lane_parts;
    const int64_t end = (part + 1) * blocks(of.lanes) / of.lane_parts;
    alignas(64) std::array<uint16_t, kSplit * kPlanes> planes;
    const Kernels& kernel = kernels();
    const bf16::TileScope scope;
    for (int64_t d = 0; d < of.depth; d += of.deep) {
      const int64_t depth = std::min(of.deep, of.depth - d);
      kernel.split({x + row * of.depth + d, of.depth, true, rows, depth}, Lines::kLanes,
                   planes.data());
      for (int64_t lane = begin; lane < end; ++lane) {
        const uint16_t* const pairs = weights + (lane * blocks(of.depth) + d / kBlock) * kBlockSize;
        for (int64_t r = 0; r < rows; r += kBlock) {
          const uint16_t* const lines = planes.data() + r / kBlock * blocks(depth) * kBlockSize;
          kernel.multiply(lines, pairs, blocks(depth), target(row + r, lane * kBlock, d));
        }
      }
    }
  }
  /// The block at a row and lane, of the sums from depth `d` on.
  Target target(int64_t row, int64_t lane, int64_t d) const {
    const bool last = d + of.deep >= of.depth;
    return {.to = y + row * of.lanes + lane,
            .distance = of.lanes,
            .rows = std::min(kBlock, of.rows - row),
            .lanes = std::min(kBlock, of.lanes - lane),
            .bias = last && bias ? bias + lane : nullptr,
            .add = d > 0,
            .relu = last && relu};
  }
};

/// Emits the step that splits weights (outputs, inputs) into planes. `lanes_are_outputs`: they are
/// summed over the inputs.
BufferId split_weights(Program& p, const std::string& name, const InnerProductGeometry& g,
                       TensorId weights, bool lanes_are_outputs) {
  const int64_t lanes = lanes_are_outputs ? g.outputs : g.k;
  const int64_t depth = lanes_are_outputs ? g.k : g.outputs;
  const auto pack = [=](const float* w, uint16_t* to, int block) {
    const int64_t lane = block * kBlock;
    const Matrix m{w + lane * (lanes_are_outputs ? g.k : 1), g.k, lanes_are_outputs,
                   std::min(kBlock, lanes - lane), depth};
    kernels().split(m, Lines::kPairs, to + block * blocks(depth) * kBlockSize);
  };
  return pack_step<uint16_t>(p, name, weights, blocks(lanes) * blocks(depth) * kBlockSize,
                             blocks(lanes), pack);
}

void emit_rows(Program& p, Step step, const Rows& of, TensorId bias, bool relu) {
  step.make = [=, reads = step.reads, write = step.writes[0]](const Binder& at) {
    return Kernel{int(of.row_blocks * of.lane_parts),
                  RowsKernel{of, at(reads[0]), at.as<uint16_t>(reads[1]),
                             bias == kNoTensor ? nullptr : at(reads[2]), at(write), relu}};
  };
  p.step(std::move(step));
}

/// dw(output, input) = sum over rows of dy(row, output) x(row, input), in regions of outputs and
/// inputs and parts of the rows; the parts are added in order.
struct Regions {
  static constexpr int64_t kSums = kBlock * kBlock;

  InnerProductGeometry g;
  int64_t down = parts_of(g.outputs, kOutputs), across = parts_of(g.k, kInputs);
  int64_t parts =
      std::clamp<int64_t>(parts_of(kFewBlocks, down* across), 1, parts_of(g.n, kTokens));
  int64_t part_rows = rounded_up(parts_of(g.n, parts), kBlock);

  /// Sums of a part: whole blocks, [output / 32][input / 32][32][32], as the rows of the gradient
  /// may be a power of two apart and then share few sets of the L1 cache.
  int64_t size() const { return blocks(g.outputs) * blocks(g.k) * kSums; }
};

struct RegionKernel {
  Regions of;
  const float *x, *dy;
  float* partial;

  void operator()(int block) const {
    const InnerProductGeometry& g = of.g;
    const int64_t input = block % of.across * kInputs;
    const int64_t output = block / of.across % of.down * kOutputs;
    const int64_t part = block / of.across / of.down;
    const int64_t first = part * of.part_rows, last = std::min(g.n, first + of.part_rows);
    const int64_t inputs = std::min(kInputs, g.k - input);
    const int64_t end = std::min(output + kOutputs, g.outputs);
    alignas(64) std::array<uint16_t, kTokens * kInputs * kPlanes> pairs;
    alignas(64) std::array<uint16_t, kTokens * kBlock * kPlanes> lines;
    const Kernels& kernel = kernels();
    const bf16::TileScope scope;
    const auto sums = [&](int64_t o, int64_t i) {
      return partial + part * of.size() + (o / kBlock * blocks(g.k) + i / kBlock) * of.kSums;
    };
    for (int64_t o = output; first >= last && o < end; o += kBlock) {
      std::fill_n(sums(o, input), blocks(inputs) * of.kSums, 0.F);
    }
    for (int64_t row = first; row < last; row += kTokens) {
      const int64_t rows = std::min(kTokens, last - row);
      kernel.split({x + row * g.k + input, g.k, false, inputs, rows}, Lines::kPairs, pairs.data());
      for (int64_t o = output; o < end; o += kBlock) {
        kernel.split({dy + row * g.outputs + o, g.outputs, false, std::min(kBlock, end - o), rows},
                     Lines::kLanes, lines.data());
        for (int64_t i = 0; i < inputs; i += kBlock) {
          kernel.multiply(lines.data(), pairs.data() + i / kBlock * blocks(rows) * kBlockSize,
                          blocks(rows),
                          {.to = sums(o, input + i),
                           .distance = kBlock,
                           .rows = kBlock,
                           .lanes = kBlock,
                           .add = row > first});
        }
      }
    }
  }
};

/// Adds the parts of 32 outputs in order.
struct SumParts {
  Regions of;
  const float* partial;
  float* out;
  Gradient gradient;
  const RunContext* run;

  void operator()(int block) const {
    const InnerProductGeometry& g = of.g;
    const bool add = gradient.adds(*run);
    const int64_t first = block * kBlock, rows = std::min(kBlock, g.outputs - first);
    const float* from = partial + block * blocks(g.k) * of.kSums;
    for (int64_t i = 0; i < g.k; i += kBlock, from += of.kSums) {
      std::array<float, Regions::kSums> sums;
      std::copy_n(from, of.kSums, sums.data());
      for (int64_t part = 1; part < of.parts; ++part) {
        const float* const more = from + part * of.size();
        for (int64_t s = 0; s < of.kSums; ++s) sums[size_t(s)] += more[s];
      }
      const int64_t lanes = std::min(kBlock, g.k - i);
      for (int64_t r = 0; r < rows; ++r) {
        float* const to = out + (first + r) * g.k + i;
        const float* const own = sums.data() + r * kBlock;
        if (add) {
          for (int64_t l = 0; l < lanes; ++l) to[l] += own[l];
        } else {
          std::copy_n(own, lanes, to);
        }
      }
    }
  }
};

}  // namespace

std::string declines(const InnerProductGeometry& g) {
  if (g.transposed) return "transposed weights";
  if (g.n < kFewRows) return std::to_string(g.n) + " rows";
  return g.k < kBlock || g.outputs < kBlock ? channel_widths(g.k, g.outputs) : "";
}

std::optional<InnerProductGeometry> of_pixels(const ConvGeometry& g) {
  if (g.group != 1 || !is_pointwise(g)) return {};
  return InnerProductGeometry{.n = g.n * g.out_pixels(), .k = g.channels, .outputs = g.outputs};
}

void product(Program& p, const std::string& name, const InnerProductGeometry& g, TensorId src,
             TensorId weights, TensorId bias, TensorId dst, bool relu) {
  const BufferId x = p.read(src, Layout::kChannels);
  const BufferId planes = split_weights(p, name, g, weights, true);
  emit_rows(p,
            biased_step(p, name, kernel_name(g.k, g.outputs), g.flops(), {x, planes}, bias, dst,
                        Layout::kChannels),
            {g.n, g.k, g.outputs}, bias, relu);
}

void backward_data(Program& p, const std::string& name, const InnerProductGeometry& g,
                   TensorId diff_dst, TensorId weights, TensorId diff_src) {
  const BufferId dy = p.read(diff_dst, Layout::kChannels);
  const BufferId planes = split_weights(p, name, g, weights, false);
  emit_rows(p,
            biased_step(p, name, kernel_name(g.outputs, g.k), g.flops(), {dy, planes}, kNoTensor,
                        diff_src, Layout::kChannels),
            {g.n, g.outputs, g.k}, kNoTensor, false);
}

void backward_weights(Program& p, const std::string& name, const InnerProductGeometry& g,
                      TensorId src, TensorId diff_dst, Gradient diff_weights) {
  const Regions of{g};
  const BufferId partial = p.scratch(of.parts * of.size());
  Step step;
  step.name = name;
  step.kernel = kernel_name(g.k, g.outputs) + ", " + std::to_string(of.parts) + " parts";
  step.flops = g.flops();
  step.reads = {p.read(src, Layout::kChannels), p.read(diff_dst, Layout::kChannels)};
  step.writes = {partial};
  step.make = [=, reads = step.reads](const Binder& at) {
    return Kernel{int(of.parts * of.down * of.across),
                  RegionKernel{of, at(reads[0]), at(reads[1]), at(partial)}};
  };
  p.step(std::move(step));
  Step sum = unpack_step(p, name, of.parts, partial, diff_weights);
  sum.make = [=, write = sum.writes[0]](const Binder& at) {
    return Kernel{int(blocks(g.outputs)),
                  SumParts{of, at(partial), at(write), diff_weights, at.run()}};
  };
  p.step(std::move(sum));
}

}  // namespace cafetiere::bf16x6
