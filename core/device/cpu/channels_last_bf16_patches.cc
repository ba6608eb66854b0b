// SPDX-License-Identifier: Apache-2.0
// A patch is what the kernel covers for one output pixel: [kernel row][kernel column][channel], each row of
// which lies together in the source. Products sum over pixels, whose patches are laid out in pairs and whose
// gradients are transposed.
#include "core/device/cpu/channels_last_bf16_patches.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "core/device/cpu/bf16_pack.h"
#include "core/device/cpu/bf16_product.h"
#include "core/device/cpu/bf16_tiles.h"
#include "core/device/cpu/cpu_device.h"
#include "core/device/map.h"

namespace cafetiere::channels_last_bf16 {
namespace {

constexpr int64_t kMostChannels = 31;
constexpr int64_t kMostElements = 512;
constexpr int64_t kMostParts = 8;            // summed on their own and added in order
constexpr int64_t kPairSize = 64 << 10;      // numbers: they stay in the L2 cache
constexpr int64_t kLineSize = 32 << 10;      // of the source rows of a patch
constexpr int64_t kOutputs = 128;            // a product
constexpr int64_t kMostDepth = 256;          // pixels a product
constexpr int64_t kPitch = kMostDepth + 32;  // from an output's pixels to the next one's
constexpr int64_t kTogether = 16;            // patches laid out before they are paired
constexpr int64_t kPiece = 16;               // numbers that are copied at once, also beyond an end

struct Patches {
  ConvGeometry g;
  int64_t row;    // numbers of a kernel row
  int64_t lanes;  // of a patch: whole vectors
  int64_t line;   // numbers of a source row with its padding and what is read beyond
  int64_t span;   // source rows from a patch's first to its last
  int64_t depth;  // pixels a product
  int64_t parts;

  explicit Patches(const ConvGeometry& g) : g(g) {
    row = g.kernel[1] * g.channels;
    lanes = rounded(row * g.kernel[0], Bf16Product::kVector);
    line = (g.in[1] + 2 * g.pad[1]) * g.channels + kPiece;
    span = (g.kernel[0] - 1) * g.dilation[0] + 1;
    depth = std::min(kMostDepth, kPairSize / lanes / 32 * 32);
    parts = std::clamp<int64_t>(pixels() / kMostDepth, 1, kMostParts);
  }
  static int64_t rounded(int64_t size, int64_t step) { return (size + step - 1) / step * step; }
  int64_t pixels() const { return g.n * g.out_pixels(); }
  /// Floats of a part: [output][lane].
  int64_t size() const { return g.outputs * lanes; }
};

/// Source rows with their padding; the newest of those that patches share.
class Lines {
 public:
  Lines(const Patches& w, const uint16_t* src) : w_(w), src_(src) { held_.fill(-1); }

  /// Row `ih` of an image.
  const uint16_t* row(int64_t image, int64_t ih) {
    const ConvGeometry& g = w_.g;
    if (ih < 0 || ih >= g.in[0]) return zeros_.data();
    const int64_t slot = ih % w_.span, number = image * g.in[0] + ih;
    uint16_t* const to = lines_.data() + slot * w_.line;
    if (std::exchange(held_[size_t(slot)], number) != number) {
      const int64_t width = g.in[1] * g.channels;
      std::copy_n(src_ + number * width, width, to + g.pad[1] * g.channels);
    }
    return to;
  }

 private:
  const Patches& w_;
  const uint16_t* src_;
  std::array<int64_t, kMostElements> held_;
  std::array<uint16_t, kLineSize> lines_{};  // the padding stays zero
  std::array<uint16_t, kLineSize> zeros_{};
};

/// Sums one part of the pixels.
struct PartKernel {
  Patches w;
  const uint16_t *src, *diff;
  float* partial;

  void operator()(int part) const {
    float* const sums = partial + part * w.size();
    std::fill_n(sums, w.size(), 0.F);
    const bf16::TileScope scope;
    Lines lines(w, src);
    alignas(64) std::array<uint16_t, kPairSize + kPiece> pairs;
    alignas(64) std::array<uint16_t, kOutputs * kPitch> columns;
    const int64_t end = (part + 1) * w.pixels() / w.parts;
    for (int64_t first = part * w.pixels() / w.parts; first < end; first += w.depth) {
      const int64_t count = std::min(w.depth, end - first);
      lay_out(lines, first, count, pairs.data());
      for (int64_t o = 0; o < w.g.outputs; o += kOutputs) {
        const int64_t outputs = std::min(kOutputs, w.g.outputs - o);
        transpose(diff + first * w.g.outputs + o, count, outputs, columns.data());
        Bf16Product product(w.lanes, outputs, Patches::rounded(count, 32), w.lanes, kPitch, w.lanes,
                            true);
        product.whole_rows = true;
        const uint16_t *const a = pairs.data(), *const b = columns.data();
        product(&a, &b, sums + o * w.lanes, 1);
      }
    }
  }

  /// The patches of pixels in pairs, and zeros up to whole steps of the product.
  void lay_out(Lines& lines, int64_t first, int64_t count, uint16_t* to) const {
    const int64_t whole = Patches::rounded(count, 32);
    std::array<uint16_t, kTogether*(kMostElements + 2 * kPiece)> patches{};
    const int64_t distance = w.lanes + kPiece;
    for (int64_t i = 0; i < whole; i += kTogether) {
      const int64_t some = std::clamp<int64_t>(count - i, 0, kTogether);
      copy_patches(lines, first + i, some, distance, patches.data());
      for (int64_t j = 0; j < kTogether; j += 2, to += 2 * w.lanes) {
        const uint16_t* const at = patches.data() + j * distance;
        bf16::pair_rows(j < some ? at : nullptr, j + 1 < some ? at + distance : nullptr, w.lanes,
                        w.lanes, to);
      }
    }
  }

  void copy_patches(Lines& lines, int64_t first, int64_t count, int64_t distance,
                    uint16_t* to) const {
    const ConvGeometry& g = w.g;
    int64_t ow = first % g.out[1], oh = first / g.out[1] % g.out[0];
    int64_t image = first / g.out_pixels();
    std::array<const uint16_t*, kMostElements> rows;
    const auto find_rows = [&] {
      for (int64_t kh = 0; kh < g.kernel[0]; ++kh) {
        rows[size_t(kh)] = lines.row(image, oh * g.stride[0] - g.pad[0] + kh * g.dilation[0]);
      }
    };
    find_rows();
    for (int64_t i = 0; i < count; ++i, to += distance) {
      if (ow == g.out[1]) {
        ow = 0;
        if (++oh == g.out[0]) oh = 0, ++image;
        find_rows();
      }
      const int64_t at = ow++ * g.stride[1] * g.channels;
      for (int64_t kh = 0; kh < g.kernel[0]; ++kh) copy(rows[size_t(kh)] + at, to + kh * w.row);
    }
  }

  /// One kernel row; the next one is written over what this leaves behind itself.
  void copy(const uint16_t* from, uint16_t* to) const {
    for (int64_t i = 0; i < w.row; i += kPiece) {
      std::memcpy(to + i, from + i, kPiece * sizeof(uint16_t));
    }
  }

  /// Pixels' outputs as outputs' pixels, and zeros up to whole steps of the product.
  void transpose(const uint16_t* from, int64_t count, int64_t outputs, uint16_t* to) const {
    const int64_t distance = w.g.outputs;
    for (int64_t i = 0; i < Patches::rounded(count, 32); i += 8) {
      const int64_t pixels = std::clamp<int64_t>(count - i, 0, 8);
      for (int64_t o = 0; o < outputs; o += 8) {
        // The last eight may be partly those before.
        const int64_t first = std::max<int64_t>(0, std::min(o, outputs - 8));
        const uint16_t* const pixel = from + i * distance + first;
        uint16_t* const column = to + first * kPitch + i;
        if (pixels == 8 && outputs >= 8)
          transpose_tile(pixel, distance, column);
        else
          transpose_tile(pixel, distance, pixels, std::min<int64_t>(8, outputs), column);
      }
    }
  }

  static void transpose_tile(const uint16_t* from, int64_t distance, uint16_t* to) {
    bf16::Eight tile[8];
    for (int64_t j = 0; j < 8; ++j) std::memcpy(&tile[j], from + j * distance, sizeof tile[j]);
    bf16::transpose(tile);
    for (int64_t j = 0; j < 8; ++j) std::memcpy(to + j * kPitch, &tile[j], sizeof tile[j]);
  }

  static void transpose_tile(const uint16_t* from, int64_t distance, int64_t pixels,
                             int64_t outputs, uint16_t* to) {
    bf16::Eight tile[8] = {};
    for (int64_t j = 0; j < pixels; ++j) {
      std::memcpy(&tile[j], from + j * distance, size_t(outputs) * sizeof(uint16_t));
    }
    bf16::transpose(tile);
    for (int64_t j = 0; j < outputs; ++j) std::memcpy(to + j * kPitch, &tile[j], sizeof tile[j]);
  }
};

/// Adds the parts of an output, in order, and writes them as [channel][kernel row][kernel column].
struct UnpackKernel {
  Patches w;
  const float* partial;
  float* gradient;
  Gradient accumulates;
  const RunContext* run;

  void operator()(int output) const {
    const int64_t taps = w.g.kernel_size(), size = taps * w.g.channels;
    const bool add = accumulates.adds(*run);
    float* const to = gradient + output * size;
    const float* const from = partial + output * w.lanes;
    for (int64_t i = 0; i < size; ++i) {
      float sum = from[i];
      for (int64_t part = 1; part < w.parts; ++part) sum += from[part * w.size() + i];
      put(to + i % w.g.channels * taps + i / w.g.channels, sum, add);
    }
  }
};

}  // namespace

bool has_short_patches(const ConvGeometry& g) {
  if (g.spatial() != 2 || g.group != 1 || g.kernel_size() == 1) return false;
  // Sixteen fill the tiles of the other form.
  if (g.channels > kMostChannels || g.channels == bf16::kTileRows) return false;
  if (g.dilation[1] != 1 || g.channels * g.kernel_size() > kMostElements) return false;
  const Patches w(g);
  return w.span <= kMostElements && w.span * w.line <= kLineSize;
}

void patch_backward_weights(Program& p, const std::string& name, const ConvGeometry& g,
                            TensorId src, TensorId diff_dst, Gradient diff_weights) {
  const Patches w(g);
  const Version version(Layout::kChannels, Format::kBFloat16);
  Step step;
  step.name = name;
  step.kernel = "bfloat16 products NSC, lanes are patches of " + std::to_string(w.row) + " x " +
                std::to_string(g.kernel[0]) + ", " + std::to_string(w.parts) + " parts";
  step.flops = g.flops();
  step.reads = {p.read(src, version), p.read(diff_dst, version)};
  const BufferId sums = p.scratch(w.parts * w.size());
  step.writes = {sums};
  step.make = [=, reads = step.reads](const Binder& at) {
    return Kernel{int(w.parts),
                  PartKernel{w, at.as<uint16_t>(reads[0]), at.as<uint16_t>(reads[1]), at(sums)}};
  };
  p.step(std::move(step));

  Step unpack;
  unpack.name = name + " unpack";
  unpack.kernel = "sum of " + std::to_string(w.parts) + " parts";
  unpack.reads = {sums};
  unpack.writes = {p.write(diff_weights.tensor, Layout::kRowMajor)};
  unpack.make = [=, write = unpack.writes[0]](const Binder& at) {
    return Kernel{int(g.outputs), UnpackKernel{w, at(sums), at(write), diff_weights, at.run()}};
  };
  p.step(std::move(unpack));
}

}  // namespace cafetiere::channels_last_bf16
