// SPDX-License-Identifier: Apache-2.0
// A patch holds the numbers under the kernel for one output pixel: [channel][kernel row][kernel
// column]. Products sum over pixels: each patch element is a row, copied from source rows with
// separated channels, and the output gradient is laid out in pairs of pixels.
#include "core/device/cpu/channels_last_bf16_patches.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "core/device/cpu/bf16_pack.h"
#include "core/device/cpu/bf16_product.h"
#include "core/device/cpu/bf16_tiles.h"
#include "core/device/cpu/channels_last_bf16_rows.h"
#include "core/device/cpu/channels_last_bf16_unfold.h"
#include "core/device/cpu/cpu_device.h"
#include "core/device/cpu/whole_pieces.h"
#include "core/device/map.h"

namespace cafetiere::channels_last_bf16 {
namespace {

constexpr int64_t kMostElements = 512;
constexpr int64_t kMostParts = 8;            // summed separately and added in order
constexpr int64_t kLineSize = 32 << 10;      // numbers of the source rows of a patch
constexpr int64_t kLanes = 64;               // outputs laid out in pairs at a time
constexpr int64_t kMostDepth = 512;          // pixels per product
constexpr int64_t kAhead = 32;               // prefetch distance in pixels when pairing
constexpr int64_t kPitch = kMostDepth + 32;  // distance between the pixels of consecutive elements

struct Patches {
  ConvGeometry g;
  int64_t elements;
  int64_t lanes;          // outputs in whole vectors
  RowLayout row;          // of the source
  int64_t span;           // source rows between the first and last row of a patch
  int64_t width, height;  // output pixels of a product: whole rows, or columns of one
  int64_t pieces, parts;

  explicit Patches(const ConvGeometry& g) : g(g), row(g) {
    elements = g.channels * g.kernel_size();
    lanes = rounded_up(g.outputs, Bf16Product::kVector);
    span = (g.kernel[0] - 1) * g.dilation[0] + 1;
    width = alike_pieces(g.out[1], kMostDepth);
    height = width < g.out[1] ? 1 : kMostDepth / width;
    pieces = (rows() + height - 1) / height;
    parts = std::min(pieces, kMostParts);
  }
  /// Output rows of all images.
  int64_t rows() const { return g.n * g.out[0]; }
  /// Numbers of the elements at the pixels of a product, in whole tiles.
  int64_t columns() const { return rounded_up(elements, bf16::kTileRows) * kPitch; }
  /// Floats per part: [element][lane].
  int64_t size() const { return elements * lanes; }
};

/// Source rows as laid out; caches the most recent ones, which patches share.
class Lines {
 public:
  Lines(const Patches& w, const uint16_t* src) : w_(w), src_(src) { held_.fill(-1); }

  /// Row `ih` of an image.
  const uint16_t* row(int64_t image, int64_t ih) {
    if (ih < 0 || ih >= w_.g.in[0]) return zeros_.data();
    const int64_t slot = ih % w_.span, number = image * w_.g.in[0] + ih;
    uint16_t* const to = lines_.data() + slot * w_.row.size();
    if (std::exchange(held_[size_t(slot)], number) == number) return to;
    w_.row.separate(src_ + number * w_.g.in[1] * w_.g.channels, padded_.data(), to);
    return to;
  }

 private:
  const Patches& w_;
  const uint16_t* src_;
  std::array<int64_t, kMostElements> held_;
  std::array<uint16_t, kLineSize> padded_{};  // a row with its padding, which stays zero
  std::array<uint16_t, kLineSize> lines_{};
  std::array<uint16_t, kLineSize> zeros_{};
};

/// Sums one part of the pixels.
struct PartKernel {
  Patches w;
  const uint16_t *src, *diff;
  uint16_t* elements;  // per part: the patch elements at the pixels of a product
  float* partial;

  void operator()(int part) const {
    float* const sums = partial + part * w.size();
    std::fill_n(sums, w.size(), 0.F);
    const bf16::TileScope scope;
    Lines lines(w, src);
    const Offsets at = offsets();
    uint16_t* const columns = elements + part * w.columns();
    const int64_t first = part * w.pieces / w.parts * w.height;
    const int64_t end = std::min(w.rows(), (part + 1) * w.pieces / w.parts * w.height);
    for (int64_t row = first; row < end; row += w.height) {
      const int64_t rows = std::min(w.height, end - row);
      for (int64_t col = 0; col < w.g.out[1]; col += w.width) {
        const int64_t cols = std::min(w.width, w.g.out[1] - col);
        lay_out(lines, at, row, rows, col, cols, columns);
        multiply(row * w.g.out[1] + col, rows * cols, columns, sums);
      }
    }
  }

  /// The start of a kernel's columns in a laid-out source row: [channel][kernel column].
  using Offsets = std::array<int64_t, kMostElements>;
  Offsets offsets() const {
    Offsets at;
    for (int64_t i = 0; i < w.g.channels * w.g.kernel[1]; ++i) {
      const int64_t channel = i / w.g.kernel[1] * w.row.phases * w.row.places;
      at[size_t(i)] = channel + w.row.begin(i % w.g.kernel[1]);
    }
    return at;
  }

  /// Lays out the patch elements at some output pixels, and zeros up to whole steps of the product.
  void lay_out(Lines& lines, const Offsets& offsets, int64_t row, int64_t rows, int64_t col,
               int64_t cols, uint16_t* to) const {
    const ConvGeometry& g = w.g;
    for (int64_t r = row; r < row + rows; ++r, to += cols) {
      const int64_t top = r % g.out[0] * g.stride[0] - g.pad[0];
      for (int64_t kh = 0; kh < g.kernel[0]; ++kh) {
        const uint16_t* const line = lines.row(r / g.out[0], top + kh * g.dilation[0]) + col;
        copy_row(line, offsets, kh, cols, to);
      }
    }
    const int64_t count = rows * cols, rest = rounded_up(count, bf16::kTileDepth) - count;
    for (int64_t e = 0; e < w.elements; ++e) std::fill_n(to + e * kPitch, rest, uint16_t(0));
  }

  /// Copies what a kernel row reads for an output row. Writes beyond the end are overwritten by the
  /// next row.
  void copy_row(const uint16_t* line, const Offsets& offsets, int64_t kh, int64_t cols,
                uint16_t* to) const {
    const ConvGeometry& g = w.g;
    for (int64_t channel = 0; channel < g.channels; ++channel) {
      const int64_t* const from = offsets.data() + channel * g.kernel[1];
      uint16_t* element = to + (channel * g.kernel[0] + kh) * g.kernel[1] * kPitch;
      for (int64_t kw = 0; kw < g.kernel[1]; ++kw, element += kPitch) {
        copy_over(line + from[kw], cols, element);
      }
    }
  }

  void multiply(int64_t pixel, int64_t count, const uint16_t* columns, float* sums) const {
    alignas(64) std::array<uint16_t, kMostDepth * kLanes> pairs;
    const int64_t depth = rounded_up(count, bf16::kTileDepth);
    for (int64_t o = 0; o < w.lanes; o += kLanes) {
      const int64_t height = std::min(kLanes, w.lanes - o);
      lay_out_pairs(diff + pixel * w.g.outputs + o, count, depth, std::min(height, w.g.outputs - o),
                    height, pairs.data());
      Bf16Product product(height, w.elements, depth, height, kPitch, w.lanes, true);
      product.whole_rows = true;
      const uint16_t *const a = pairs.data(), *const b = columns;
      product(&a, &b, sums + o, 1);
    }
  }

  void lay_out_pairs(const uint16_t* from, int64_t count, int64_t depth, int64_t outputs,
                     int64_t height, uint16_t* to) const {
    for (int64_t i = 0; i < depth; i += 2, to += 2 * height) {
      const uint16_t* const at = from + i * w.g.outputs;
      __builtin_prefetch(at + kAhead * w.g.outputs);
      __builtin_prefetch(at + (kAhead + 1) * w.g.outputs);
      bf16::pair_rows(i < count ? at : nullptr, i + 1 < count ? at + w.g.outputs : nullptr, outputs,
                      height, to);
    }
  }
};

/// Adds the parts for a vector of outputs, in order, and writes them as [output][element].
struct UnpackKernel {
  Patches w;
  const float* partial;
  float* gradient;
  Gradient accumulates;
  const RunContext* run;

  void operator()(int vector) const {
    const int64_t first = vector * Bf16Product::kVector;
    const int64_t outputs = std::min(Bf16Product::kVector, w.g.outputs - first);
    const bool add = accumulates.adds(*run);
    for (int64_t e = 0; e < w.elements; ++e) {
      for (int64_t o = first; o < first + outputs; ++o) {
        const float* const from = partial + e * w.lanes + o;
        float sum = *from;
        for (int64_t part = 1; part < w.parts; ++part) sum += from[part * w.size()];
        put(gradient + o * w.elements + e, sum, add);
      }
    }
  }
};

}  // namespace

bool has_short_patches(const ConvGeometry& g) {
  if (g.spatial() != 2 || g.group != 1 || g.kernel_size() == 1) return false;
  if (!has_few_channels(g) || g.channels * g.kernel_size() > kMostElements) return false;
  if (unfolds(g)) {
    // With fewer copies, if kernel rows fill tiles almost as well as whole kernels.
    const int64_t row = rounded_up(g.channels * g.kernel[1], bf16::kTileRows);
    const int64_t all = rounded_up(g.channels * g.kernel_size(), bf16::kTileRows);
    if (4 * row * g.kernel[0] <= 5 * all) return false;
  }
  const Patches w(g);
  return w.span <= kMostElements && w.span * w.row.size() <= kLineSize &&
         w.row.padded_size() <= kLineSize;
}

void patch_backward_weights(Program& p, const std::string& name, const ConvGeometry& g,
                            TensorId src, TensorId diff_dst, Gradient diff_weights) {
  const Patches w(g);
  const Version version(Layout::kChannels, Format::kBFloat16);
  Step step;
  step.name = name;
  step.kernel = "bfloat16 products NSC, rows are the " + std::to_string(w.elements) +
                " elements of patches, " + std::to_string(w.parts) + " parts";
  step.flops = g.flops();
  step.reads = {p.read(src, version), p.read(diff_dst, version)};
  const BufferId sums = p.scratch(w.parts * w.size());
  const BufferId elements = p.scratch(w.parts * w.columns(), Format::kBFloat16);
  step.writes = {sums, elements};
  step.make = [=, reads = step.reads](const Binder& at) {
    return Kernel{int(w.parts), PartKernel{w, at.as<uint16_t>(reads[0]), at.as<uint16_t>(reads[1]),
                                           at.as<uint16_t>(elements), at(sums)}};
  };
  p.step(std::move(step));

  Step unpack = unpack_step(p, name, w.parts, sums, diff_weights);
  unpack.make = [=, write = unpack.writes[0]](const Binder& at) {
    return Kernel{int(w.lanes / Bf16Product::kVector),
                  UnpackKernel{w, at(sums), at(write), diff_weights, at.run()}};
  };
  p.step(std::move(unpack));
}

}  // namespace cafetiere::channels_last_bf16
