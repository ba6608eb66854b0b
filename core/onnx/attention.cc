// SPDX-License-Identifier: Apache-2.0
// Attention, written out in products, transpositions and a softmax.
#include <cmath>

#include "core/onnx/families.h"

namespace cafetiere {
namespace {

constexpr float kMasked = -1e9F;  // its exponential is 0 beside any score's

/// Zeros, and kMasked where a key follows its query; made by the model, which stays small.
std::string causal_mask(OnnxWriter& w, int64_t tokens) {
  const std::string all = w.node("Expand", {w.scalar(kMasked), w.integers({tokens, tokens})});
  return w.node("Trilu", {all, w.integer(1)}, {{"upper", int64_t(1)}});
}

Result<OnnxValues> attention(const ExportLayer& layer, OnnxWriter& w) {
  const caffe::AttentionParameter& p = layer.param.attention_param();
  const Shape& x = layer.bottom_shape();
  const int64_t n = x[0], tokens = x[1], features = x[2], heads = p.num_heads();
  const int64_t width = features / heads;
  const std::string rows = w.reshape(layer.bottom(), {n * tokens, features});
  const std::string qkv =
      w.reshape(layer.linear(w, rows, 0, p.bias_term()), {n, tokens, 3, heads, width});
  const std::string by_role =
      w.node("Transpose", {qkv}, {{"perm", std::vector<int64_t>{2, 0, 3, 1, 4}}});
  const OnnxValues parts =
      w.nodes("Split", {by_role, w.integers({1, 1, 1})}, 3, {{"axis", int64_t(0)}});
  const std::string keys =
      w.node("Transpose", {parts[1]}, {{"perm", std::vector<int64_t>{0, 1, 2, 4, 3}}});
  std::string scores = w.times(w.node("MatMul", {parts[0], keys}), 1 / std::sqrt(float(width)));
  if (p.causal()) scores = w.node("Add", {scores, causal_mask(w, tokens)});
  const std::string weights = w.node("Softmax", {scores}, {{"axis", int64_t(-1)}});
  const std::string mixed = w.node("MatMul", {weights, parts[2]});
  const std::string joined =
      w.reshape(w.node("Transpose", {mixed}, {{"perm", std::vector<int64_t>{0, 1, 3, 2, 4}}}),
                {n * tokens, features});
  const size_t outer = p.bias_term() ? 2 : 1;
  return OnnxValues{w.reshape(layer.linear(w, joined, outer, p.bias_term()), layer.top_shape())};
}

constexpr Exporter kAttentionExporters[] = {{"Attention", attention, true}};

}  // namespace

extern constinit const OnnxFamily onnx_attention{kAttentionExporters, {}};

}  // namespace cafetiere
