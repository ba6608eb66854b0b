// SPDX-License-Identifier: Apache-2.0
// The two tables behind the translation: what writes a layer type as ONNX nodes, and what reads an
// ONNX node as layers. One file a family of operators holds both for its own.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "core/onnx/reader.h"
#include "core/onnx/writer.h"

namespace cafetiere {

/// A layer to be written: its values' names and shapes, and its parameters.
struct ExportLayer {
  const caffe::LayerParameter& param;
  OnnxValues bottoms;
  std::vector<Shape> bottom_shapes, top_shapes;
  std::vector<std::span<const float>> params;
  std::vector<Shape> param_shapes;

  const std::string& bottom() const { return bottoms[0]; }
  const Shape& bottom_shape() const { return bottom_shapes[0]; }
  const Shape& top_shape() const { return top_shapes[0]; }
  /// Parameter i as a constant, of its own shape or another.
  std::string constant(OnnxWriter& writer, size_t i) const {
    return writer.parameter(i, param_shapes[i], params[i]);
  }
  std::string constant(OnnxWriter& writer, size_t i, const Shape& shape) const {
    return writer.parameter(i, shape, params[i]);
  }
  /// x W^T for rows x, W being parameter `first`; with `bias`, the next one is added.
  std::string linear(OnnxWriter& writer, const std::string& x, size_t first, bool bias) const {
    OnnxValues inputs{x, constant(writer, first)};
    if (bias) inputs.push_back(constant(writer, first + 1));
    return writer.node("Gemm", inputs, {{"transB", int64_t(1)}});
  }
};

/// Writes a layer and gives the values of its tops, in order; a top may be a bottom.
struct Exporter {
  const char* type;
  Result<OnnxValues> (*write)(const ExportLayer&, OnnxWriter&);
  /// Its nodes are read back as one layer (whole_layer.h), since one by one they have none. Such a
  /// layer's parameters become constants as they are.
  bool whole = false;
};

/// Reads a node: adds layers, or a constant.
struct Importer {
  const char* op;
  Status (*read)(const OnnxNode&, OnnxReader&);
};

struct OnnxFamily {
  std::span<const Exporter> exporters;
  std::span<const Importer> importers;
};

extern const OnnxFamily onnx_activations;
extern const OnnxFamily onnx_arithmetic;
extern const OnnxFamily onnx_attention;
extern const OnnxFamily onnx_constants;
extern const OnnxFamily onnx_convolution;
extern const OnnxFamily onnx_normalization;
extern const OnnxFamily onnx_parts;
extern const OnnxFamily onnx_pooling;
extern const OnnxFamily onnx_products;
extern const OnnxFamily onnx_recurrent;
extern const OnnxFamily onnx_reduction;
extern const OnnxFamily onnx_shaping;
extern const OnnxFamily onnx_table;

inline constexpr std::array kOnnxFamilies{
    &onnx_activations,   &onnx_arithmetic, &onnx_attention, &onnx_constants, &onnx_convolution,
    &onnx_normalization, &onnx_parts,      &onnx_pooling,   &onnx_products,  &onnx_recurrent,
    &onnx_reduction,     &onnx_shaping,    &onnx_table};

/// The refusal of `what`, whose fractions ONNX drops and no layer does.
inline Status cuts_integers(const std::string& what) {
  return invalid_argument(what +
                          " cuts its fraction off, which no layer does: make floats of them " +
                          "by a Cast before it");
}

/// What writes layers of `type`; null when they have no ONNX form.
inline const Exporter* find_exporter(const std::string& type) {
  for (const OnnxFamily* family : kOnnxFamilies) {
    for (const Exporter& exporter : family->exporters) {
      if (type == exporter.type) return &exporter;
    }
  }
  return nullptr;
}

}  // namespace cafetiere
