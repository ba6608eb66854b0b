// SPDX-License-Identifier: Apache-2.0
// Inner products: forward with images in lanes, backward with inputs in lanes, so that all three
// passes read the weights in their stored order.
#include <algorithm>
#include <array>
#include <span>

#include "core/device/cpu/bf16x6.h"
#include "core/device/cpu/biased_step.h"
#include "core/device/cpu/brgemm.h"
#include "core/device/cpu/convolution.h"
#include "core/device/cpu/cpu_device.h"
#include "core/device/cpu/few_rows.h"
#include "core/device/cpu/few_rows_bf16.h"
#include "core/device/cpu/forms.h"
#include "core/device/cpu/packed_product.h"
#include "core/device/cpu/whole_pieces.h"
#include "core/device/map.h"

namespace cafetiere {
namespace {

constexpr int64_t kProductLanes = 64;
constexpr int64_t kOutputs = 64;  // outputs per block

/// A product whose last chunk along m or n is smaller: one generated kernel per shape.
struct ChunkedProduct {
  int64_t m, n, m_chunk, n_chunk;
  Brgemm whole, short_m, short_n, short_both;

  ChunkedProduct(int64_t m, int64_t n, int64_t k, int64_t lda, int64_t ldb, int64_t ldc,
                 int64_t m_chunk, int64_t n_chunk, bool add)
      : m(m), n(n), m_chunk(std::min(m, m_chunk)), n_chunk(std::min(n, n_chunk)) {
    const int64_t last_m = m - (parts_of(m, this->m_chunk) - 1) * this->m_chunk;
    const int64_t last_n = n - (parts_of(n, this->n_chunk) - 1) * this->n_chunk;
    whole = Brgemm(this->m_chunk, this->n_chunk, k, lda, ldb, ldc, add);
    short_m = Brgemm(last_m, this->n_chunk, k, lda, ldb, ldc, add);
    short_n = Brgemm(this->m_chunk, last_n, k, lda, ldb, ldc, add);
    short_both = Brgemm(last_m, last_n, k, lda, ldb, ldc, add);
  }
  const Brgemm& at(int64_t m0, int64_t n0) const {
    const bool end_m = m0 + m_chunk > m, end_n = n0 + n_chunk > n;
    return end_m ? (end_n ? short_both : short_m) : (end_n ? short_n : whole);
  }
};

/// Images per chunk, chosen so that no chunk is so small that its order of summation differs.
int64_t image_lanes(int64_t n) {
  const auto few = [&](int64_t rest) { return rest > 0 && rest <= few_rows::kRows; };
  int64_t lanes = kProductLanes;
  while (n > lanes && few(n % lanes)) --lanes;
  return lanes;
}

void product(Program& p, const std::string& name, const InnerProductGeometry& g, TensorId src,
             TensorId weights, TensorId bias, TensorId dst, bool relu) {
  Step step = biased_step(p, name, "brgemm CSN, lanes are images", g.flops(),
                          {p.read(src, Layout::kFeatures), p.read(weights, Layout::kRowMajor)},
                          bias, dst, Layout::kFeatures);
  step.make = [=, reads = step.reads, write = step.writes[0]](const Binder& at) {
    const int64_t lanes = image_lanes(g.n);
    const ChunkedProduct product(g.n, g.outputs, g.k, g.n, g.k, g.n, lanes, kOutputs, true);
    const float *x = at(reads[0]), *w = at(reads[1]);
    const float* b = bias == kNoTensor ? nullptr : at(reads[2]);
    float* y = at(write);
    return Kernel{int(parts_of(g.outputs, kOutputs)), [=](int block) {
                    const int64_t o0 = block * kOutputs;
                    const int64_t o1 = std::min(g.outputs, o0 + kOutputs);
                    for (int64_t o = o0; o < o1; ++o) {
                      std::fill_n(y + o * g.n, g.n, b ? b[o] : 0.f);
                    }
                    for (int64_t n = 0; n < g.n; n += lanes) {
                      product.at(n, o0)(x + n, w + o0 * g.k, y + o0 * g.n + n);
                    }
                    if (!relu) return;
                    for (int64_t i = o0 * g.n; i < o1 * g.n; ++i) y[i] = std::max(y[i], 0.f);
                  }};
  };
  p.step(std::move(step));
}

/// The rows of weights for a product of this depth, copied to be adjacent: rows that are about a
/// power of two apart share few cache sets.
struct WeightPanel {
  alignas(64) float values[Brgemm::kDepth * kProductLanes];

  void take(const float* from, int64_t depth, int64_t lanes, int64_t stride) {
    for (int64_t row = 0; row < depth; ++row) {
      std::copy_n(from + row * stride, lanes, values + row * kProductLanes);
    }
  }
};

void product_backward_data(Program& p, const std::string& name, const InnerProductGeometry& g,
                           TensorId diff_dst, TensorId weights, TensorId diff_src) {
  Step step = biased_step(p, name, "brgemm NCS, lanes are inputs", g.flops(),
                          {p.read(diff_dst, Layout::kRowMajor), p.read(weights, Layout::kRowMajor)},
                          kNoTensor, diff_src, Layout::kRowMajor);
  step.make = [=, reads = step.reads, write = step.writes[0]](const Binder& at) {
    const auto of_depth = [&](int64_t depth) {
      return ChunkedProduct(g.k, g.n, depth, kProductLanes, g.outputs, g.k, kProductLanes, g.n,
                            true);
    };
    const int64_t depth = std::min(g.outputs, Brgemm::kDepth);
    const int64_t whole_end = g.outputs / depth * depth;
    const ChunkedProduct whole = of_depth(depth);
    const ChunkedProduct rest = whole_end < g.outputs ? of_depth(g.outputs - whole_end) : whole;
    const float *dy = at(reads[0]), *w = at(reads[1]);
    float* dx = at(write);
    return Kernel{int(parts_of(g.k, kProductLanes)), [=](int block) {
                    const int64_t k = block * kProductLanes;
                    const int64_t lanes = std::min(kProductLanes, g.k - k);
                    for (int64_t n = 0; n < g.n; ++n) std::fill_n(dx + n * g.k + k, lanes, 0.F);
                    WeightPanel panel;
                    for (int64_t o = 0; o < g.outputs; o += depth) {
                      panel.take(w + o * g.k + k, std::min(depth, g.outputs - o), lanes, g.k);
                      (o < whole_end ? whole : rest).at(k, 0)(panel.values, dy + o, dx + k);
                    }
                  }};
  };
  p.step(std::move(step));
}

// The rows of a weight gradient's source. Rows a multiple of 1 KB apart share few sets of the L1
// cache: they are read as panels, [inputs / 64][row][64].

bool in_panels(const InnerProductGeometry& g) { return g.k % 256 == 0; }

BufferId read_source(Program& p, const InnerProductGeometry& g, TensorId src) {
  if (!in_panels(g)) return p.read(src, Layout::kRowMajor);
  const TensorId panels = p.reshaped(src, {g.n, g.k / kProductLanes, kProductLanes});
  return p.read(panels, Layout::kPanels);
}

/// The distance of a source's rows.
int64_t source_stride(const InnerProductGeometry& g) { return in_panels(g) ? kProductLanes : g.k; }

/// The first row's inputs starting at `k`, a multiple of kProductLanes.
const float* source_at(const InnerProductGeometry& g, const float* x, int64_t k) {
  return x + (in_panels(g) ? k * g.n : k);
}

/// The weight gradient of a block of outputs, passed to the solver in pieces: the whole gradient is
/// never in memory. Each number is summed as in product_backward_weights.
struct UpdateWeights {
  static constexpr int64_t kRows = 16;  ///< outputs per piece
  /// Long rows make good use of memory bandwidth; a piece fits into the L2 cache.
  static constexpr int64_t kInputs = 4096;
  /// Rows a power of two apart would share few sets of the L1 cache.
  static constexpr int64_t kStride = kInputs + 16;

  /// With so few rows, libxsmm would sum a last chunk of few inputs in another order.
  static bool suits(const InnerProductGeometry& g) {
    const int64_t rest = g.k % kProductLanes;
    return rest == 0 || rest > few_rows::kRows;
  }

  InnerProductGeometry g;
  const float *x, *dy;
  size_t param;
  const RunContext* run;
  ChunkedProduct product{g.k,           g.outputs, g.n,  source_stride(g), g.n, kStride,
                         kProductLanes, kRows,     false};

  void operator()(int block) const {
    if (!run->update) return;
    const int64_t first = block * kRows, outputs = std::min(kRows, g.outputs - first);
    alignas(64) std::array<float, kRows * kStride> piece;
    for (int64_t begin = 0; begin < g.k; begin += kInputs) {
      const int64_t inputs = std::min(kInputs, g.k - begin);
      for (int64_t k = 0; k < inputs; k += kProductLanes) {
        product.at(begin + k, first)(source_at(g, x, begin + k), dy + first * g.n,
                                     piece.data() + k);
      }
      for (int64_t o = 0; o < outputs; ++o) {
        run->update->apply(param, (first + o) * g.k + begin,
                           std::span(piece).subspan(size_t(o * kStride), size_t(inputs)));
      }
    }
  }
};

void product_backward_weights(Program& p, const std::string& name, const InnerProductGeometry& g,
                              TensorId src, TensorId diff_dst, Gradient diff_weights) {
  Step step;
  step.name = name;
  step.kernel = "brgemm, lanes are inputs";
  step.flops = g.flops();
  step.reads = {read_source(p, g, src), p.read(diff_dst, Layout::kFeatures)};
  step.writes = {p.write(diff_weights.tensor, Layout::kRowMajor)};
  step.make = [=, reads = step.reads, write = step.writes[0]](const Binder& at) {
    const int64_t lda = source_stride(g);
    const ChunkedProduct replace(g.k, g.outputs, g.n, lda, g.n, g.k, kProductLanes, kOutputs,
                                 false);
    const ChunkedProduct add(g.k, g.outputs, g.n, lda, g.n, g.k, kProductLanes, kOutputs, true);
    const float *x = at(reads[0]), *dy = at(reads[1]);
    float* dw = at(write);
    const RunContext* run = at.run();
    return Kernel{int(parts_of(g.outputs, kOutputs)), [=](int block) {
                    const ChunkedProduct& product = diff_weights.adds(*run) ? add : replace;
                    const int64_t o = block * kOutputs;
                    for (int64_t k = 0; k < g.k; k += kProductLanes) {
                      product.at(k, o)(source_at(g, x, k), dy + o * g.n, dw + o * g.k + k);
                    }
                  }};
  };
  if (UpdateWeights::suits(g)) {
    step.make_update = [=, reads = step.reads](const Binder& at, size_t param) {
      return Kernel{int(parts_of(g.outputs, UpdateWeights::kRows)),
                    UpdateWeights{g, at(reads[0]), at(reads[1]), param, at.run()}};
    };
  }
  p.step(std::move(step));
}

std::string declines_product(const InnerProductGeometry& g) {
  return g.transposed ? "transposed weights" : "";
}

/// The inner product as a 1 x 1 convolution of single-row images of `inner` pixels.
ConvGeometry as_convolution(const InnerProductGeometry& g, int64_t inner) {
  return {.n = g.n / inner,
          .channels = g.k,
          .outputs = g.outputs,
          .in = {1, inner},
          .out = {1, inner},
          .kernel = {1, 1},
          .stride = {1, 1},
          .pad = {0, 0},
          .dilation = {1, 1}};
}

void bf16_product(Program& p, const std::string& name, const InnerProductGeometry& g, TensorId src,
                  TensorId weights, TensorId bias, TensorId dst, bool relu) {
  if (few_rows_bf16::suits(g)) {
    return few_rows_bf16::product(p, name, g, src, weights, bias, dst, relu);
  }
  channels_last_bf16::convolution(p, name, as_convolution(g, g.n), src, weights, bias, dst, relu);
}
void bf16_product_backward_data(Program& p, const std::string& name, const InnerProductGeometry& g,
                                TensorId diff_dst, TensorId weights, TensorId diff_src) {
  if (few_rows_bf16::suits(g)) {
    return few_rows_bf16::backward_data(p, name, g, diff_dst, weights, diff_src);
  }
  channels_last_bf16::backward_data(p, name, as_convolution(g, g.n), diff_dst, weights, diff_src);
}
void bf16_product_backward_weights(Program& p, const std::string& name,
                                   const InnerProductGeometry& g, TensorId src, TensorId diff_dst,
                                   Gradient diff_weights) {
  if (few_rows_bf16::suits(g)) {
    return few_rows_bf16::backward_weights(p, name, g, src, diff_dst, diff_weights);
  }
  channels_last_bf16::backward_weights(p, name, as_convolution(g, g.n), src, diff_dst,
                                       diff_weights);
}

/// Why rows are not treated as the pixels of images, which needs no transposition and gives results
/// for a row that do not depend on the number of images.
std::string declines_pixels(const InnerProductGeometry& g) {
  constexpr int64_t kLeast = 16;
  if (g.transposed) return "transposed weights";
  return g.inner < kLeast || g.k % 8 != 0 || g.outputs % 8 != 0 ? "few rows in each of the batch, "
                                                                  "or odd widths"
                                                                : "";
}

void pixel_product(Program& p, const std::string& name, const InnerProductGeometry& g, TensorId src,
                   TensorId weights, TensorId bias, TensorId dst, bool relu) {
  channels_last::convolution(p, name, as_convolution(g, g.inner), src, weights, bias, dst, relu);
}
void pixel_product_backward_data(Program& p, const std::string& name, const InnerProductGeometry& g,
                                 TensorId diff_dst, TensorId weights, TensorId diff_src) {
  channels_last::backward_data(p, name, as_convolution(g, g.inner), diff_dst, weights, diff_src);
}
void pixel_product_backward_weights(Program& p, const std::string& name,
                                    const InnerProductGeometry& g, TensorId src, TensorId diff_dst,
                                    Gradient diff_weights) {
  channels_last::backward_weights(p, name, as_convolution(g, g.inner), src, diff_dst, diff_weights);
}

using ProductForm = Form<InnerProductGeometry, TensorId /*src*/, TensorId /*weights*/,
                         TensorId /*bias*/, TensorId /*dst*/, bool /*relu*/>;
constexpr ProductForm kBf16Product{"bfloat16", declines_product, bf16_product};
constexpr ProductForm kBf16x6Product{"bf16x6", bf16x6::declines, bf16x6::product};
constexpr ProductForm kProduct[] = {{"pixels", declines_pixels, pixel_product},
                                    {"few rows", few_rows::declines, few_rows::product},
                                    {"panels", packed::declines, packed::product},
                                    {"brgemm", declines_product, product},
                                    reference_form<&RefDevice::inner_product, ProductForm>()};

using ProductDataForm =
    Form<InnerProductGeometry, TensorId /*diff_dst*/, TensorId /*weights*/, TensorId /*diff_src*/>;
constexpr ProductDataForm kBf16ProductData{"bfloat16", declines_product,
                                           bf16_product_backward_data};
constexpr ProductDataForm kBf16x6ProductData{"bf16x6", bf16x6::declines, bf16x6::backward_data};
constexpr ProductDataForm kProductBackwardData[] = {
    {"pixels", declines_pixels, pixel_product_backward_data},
    {"panels", packed::declines_backward_data, packed::backward_data},
    {"brgemm", declines_product, product_backward_data},
    reference_form<&RefDevice::inner_product_backward_data, ProductDataForm>()};

using ProductWeightsForm =
    Form<InnerProductGeometry, TensorId /*src*/, TensorId /*diff_dst*/, Gradient /*diff_weights*/>;
constexpr ProductWeightsForm kBf16ProductWeights{"bfloat16", declines_product,
                                                 bf16_product_backward_weights};
constexpr ProductWeightsForm kBf16x6ProductWeights{"bf16x6", bf16x6::declines,
                                                   bf16x6::backward_weights};
constexpr ProductWeightsForm kProductBackwardWeights[] = {
    {"pixels", declines_pixels, pixel_product_backward_weights},
    {"brgemm", declines_product, product_backward_weights},
    reference_form<&RefDevice::inner_product_backward_weights, ProductWeightsForm>()};

}  // namespace

void CpuDevice::inner_product(Program& p, const std::string& name, const InnerProductGeometry& g,
                              TensorId src, TensorId weights, TensorId bias, TensorId dst,
                              bool relu) {
  emit_first(form_of(precision_, kBf16Product, &kBf16x6Product), kProduct, p, name, g, src, weights,
             bias, dst, relu);
}

void CpuDevice::inner_product_backward_data(Program& p, const std::string& name,
                                            const InnerProductGeometry& g, TensorId diff_dst,
                                            TensorId weights, TensorId diff_src) {
  emit_first(form_of(precision_, kBf16ProductData, &kBf16x6ProductData), kProductBackwardData, p,
             name, g, diff_dst, weights, diff_src);
}

void CpuDevice::inner_product_backward_weights(Program& p, const std::string& name,
                                               const InnerProductGeometry& g, TensorId src,
                                               TensorId diff_dst, Gradient diff_weights) {
  emit_first(form_of(precision_, kBf16ProductWeights, &kBf16x6ProductWeights),
             kProductBackwardWeights, p, name, g, src, diff_dst, diff_weights);
}

}  // namespace cafetiere
