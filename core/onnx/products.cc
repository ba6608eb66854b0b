// SPDX-License-Identifier: Apache-2.0
// Products with a learned matrix: InnerProduct and Embed.
#include <cmath>

#include "core/model/blob.h"
#include "core/onnx/families.h"

namespace cafetiere {
namespace {

Result<OnnxValues> inner_product(const ExportLayer& layer, OnnxWriter& w) {
  const caffe::InnerProductParameter& p = layer.param.inner_product_param();
  CFT_ASSIGN(const int axis, layer.bottom_shape().axis(p.axis()));
  std::string x = layer.bottom();
  if (axis != 1 || layer.bottom_shape().axes() != 2) {
    x = w.node("Flatten", {x}, {{"axis", int64_t(axis)}});
  }
  OnnxValues inputs{x, layer.constant(w, 0)};
  if (layer.params.size() > 1) inputs.push_back(layer.constant(w, 1));
  const std::string y = w.node("Gemm", inputs, {{"transB", int64_t(p.transpose() ? 0 : 1)}});
  return OnnxValues{layer.top_shape().axes() == 2 ? y : w.reshape(y, layer.top_shape())};
}

Result<OnnxValues> embed(const ExportLayer& layer, OnnxWriter& w) {
  const std::string index =
      w.node("Cast", {layer.bottom()}, {{"to", int64_t(onnx::TensorProto::INT64)}});
  const std::string row = w.node("Gather", {layer.constant(w, 0), index});
  if (layer.params.size() == 1) return OnnxValues{row};
  return OnnxValues{w.node("Add", {row, layer.constant(w, 1)})};
}

constexpr Exporter kProductsExporters[] = {{"Embed", embed}, {"InnerProduct", inner_product}};

/// An InnerProduct from `axis` on with a matrix (outputs, inputs) or, transposed, the other way.
Result<caffe::LayerParameter> product_layer(const OnnxNode& node, OnnxReader& r, int axis,
                                            bool transpose, float factor) {
  CFT_ASSIGN(OnnxFloats matrix, r.floats(node.input(1)));
  if (matrix.shape.axes() != 2) {
    return invalid_argument("the second factor must be a matrix, not " + matrix.shape.str());
  }
  if (matrix.values.empty()) return invalid_argument("the second factor is empty");
  for (float& value : matrix.values) value *= factor;
  caffe::LayerParameter layer = r.layer("InnerProduct", node);
  caffe::InnerProductParameter* p = layer.mutable_inner_product_param();
  p->set_num_output(uint32_t(matrix.shape[transpose ? 1 : 0]));
  p->set_axis(axis);
  p->set_transpose(transpose);
  p->set_bias_term(false);
  floats_to_blob(matrix.values, matrix.shape, layer.add_blobs());
  return layer;
}

Status read_gemm(const OnnxNode& node, OnnxReader& r) {
  if (!node.has(1)) return invalid_argument("needs two factors");
  if (node.integer("transA", 0)) return invalid_argument("transA has no layer");
  const bool transpose = node.integer("transB", 0) == 0;
  CFT_ASSIGN(caffe::LayerParameter layer,
             product_layer(node, r, 1, transpose, node.number("alpha", 1)));
  if (node.has(2)) {
    CFT_ASSIGN(OnnxFloats bias, r.floats(node.input(2)));
    const auto outputs = size_t(layer.inner_product_param().num_output());
    if (bias.values.size() == 1) bias.values.assign(outputs, bias.values[0]);
    if (bias.values.size() != outputs || (bias.shape.axes() == 2 && bias.shape[0] != 1)) {
      return invalid_argument("the summand must have one value an output, not shape " +
                              bias.shape.str());
    }
    for (float& value : bias.values) value *= node.number("beta", 1);
    layer.mutable_inner_product_param()->set_bias_term(true);
    floats_to_blob(bias.values, Shape{int64_t(outputs)}, layer.add_blobs());
  }
  return r.add(std::move(layer));
}

Status read_mat_mul(const OnnxNode& node, OnnxReader& r) {
  if (!node.has(1)) return invalid_argument("needs two factors");
  CFT_ASSIGN(const Shape x, r.shape(node.input(0)));
  CFT_ASSIGN(caffe::LayerParameter layer, product_layer(node, r, x.axes() - 1, true, 1));
  return r.add(std::move(layer));
}

/// Rows of a constant table.
Status read_rows(const OnnxNode& node, OnnxReader& r) {
  CFT_ASSIGN(const OnnxFloats table, r.floats(node.input(0)));
  if (table.shape.axes() != 2 || node.integer("axis", 0) != 0) {
    return invalid_argument("only rows of a matrix have a layer: Embed");
  }
  caffe::LayerParameter layer = r.layer("Embed", node);
  layer.set_bottom(0, node.input(1));
  caffe::EmbedParameter* p = layer.mutable_embed_param();
  p->set_input_dim(uint32_t(table.shape[0]));
  p->set_num_output(uint32_t(table.shape[1]));
  p->set_bias_term(false);
  floats_to_blob(table.values, table.shape, layer.add_blobs());
  CFT_TRY(r.add(std::move(layer)));
  r.set_integers(node.output(), false);  // though its indices were
  return {};
}

/// Items of a computed value at computed places.
Status read_items(const OnnxNode& node, OnnxReader& r) {
  if (node.integer("axis", 0) != 0) return invalid_argument("only items of axis 0 are picked");
  CFT_ASSIGN(const Shape indices, r.shape(node.input(1)));
  if (indices.axes() != 1) return invalid_argument("the indices must be a list");
  caffe::LayerParameter layer = r.layer("BatchReindex", node);
  layer.add_bottom(node.input(1));
  return r.add(std::move(layer));
}

/// Numbers of a list of integers (a shape, mostly), rows of a table, or items of a value.
Status read_gather(const OnnxNode& node, OnnxReader& r) {
  if (!node.has(1)) return invalid_argument("needs indices");
  const bool of_values = !r.is_constant(node.input(0)), at_values = !r.is_constant(node.input(1));
  if (of_values) return read_items(node, r);
  if (at_values) return read_rows(node, r);
  CFT_ASSIGN(const Shape given, r.constant_shape(node.input(0)));
  if (given.axes() != 1) return invalid_argument("of constants, only a list of integers is read");
  CFT_ASSIGN(const std::vector<int64_t> from, r.integers(node.input(0)));
  CFT_ASSIGN(const std::vector<int64_t> indices, r.integers(node.input(1)));
  CFT_ASSIGN(const Shape shape, r.constant_shape(node.input(1)));
  const auto size = int64_t(from.size());
  std::vector<int64_t> chosen;
  for (int64_t i : indices) {
    if (i < -size || i >= size) return invalid_argument("an index is out of range");
    chosen.push_back(from[size_t(i < 0 ? i + size : i)]);
  }
  return r.add_integers(node.output(), shape, chosen);
}

constexpr Importer kProductsImporters[] = {
    {"Gather", read_gather}, {"Gemm", read_gemm}, {"MatMul", read_mat_mul}};

}  // namespace

extern constinit const OnnxFamily onnx_products{kProductsExporters, kProductsImporters};

}  // namespace cafetiere
