// SPDX-License-Identifier: Apache-2.0
// Layer: the interface of a layer type. Each type has a file in core/layers/.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/device/device.h"
#include "core/graph/row_path.h"
#include "core/model/proto/caffe.pb.h"
#include "core/tensor/shape.h"

namespace cafetiere {

/// How the solver treats a parameter blob.
enum class ParamKind {
  kLearned,    ///< has a gradient; updated by the solver's rule
  kStatistic,  ///< its "gradient" is a new observation: blob = fraction * blob + observation
};

/// A parameter blob requested by a layer.
struct ParamRequest {
  Shape shape;
  caffe::FillerParameter filler;
  ParamKind kind = ParamKind::kLearned;
  float fraction = 1;
};

/// Input and output of Layer::shape(): filled by the graph, completed by the layer.
struct LayerShapes {
  std::vector<Shape> bottoms;
  std::vector<Shape> tops;  ///< one per top of the layer; set by shape()
  std::vector<ParamRequest> params;
  std::vector<Shape> fed;  ///< sources only: the shapes that will be fed, empty if unknown
  int64_t batch = 0;       ///< sources only: rows of the batch, 0 = the net's own
};

/// The context in which a layer is lowered. Tensors are SSA: an in-place layer reads one tensor and
/// creates another; the plan decides whether they share memory.
struct LoweringContext {
  Program& program;
  Device& device;
  std::string name;
  bool train = false;
  bool fuse_relu = false;  ///< the next layer is a ReLU for this one to apply
  std::vector<TensorId> bottoms = {};
  std::vector<TensorId> tops = {};  ///< set by forward()
  std::vector<Shape> top_shapes = {};
  std::vector<TensorId> params = {};
  std::vector<Gradient> param_diffs = {};   ///< kNoTensor where no gradient is needed
  std::vector<TensorId> top_diffs = {};     ///< kNoTensor where no gradient arrives
  std::vector<TensorId> bottom_diffs = {};  ///< set by backward() where propagate_down is true
  std::vector<bool> propagate_down = {};
  std::vector<TensorId> saved = {};  ///< kept by forward() for backward()

  const Shape& bottom_shape(size_t i) const { return program.shape(bottoms[i]); }
  /// Creates top i, or the gradient of bottom i, as a new tensor.
  TensorId new_top(size_t i) { return tops[i] = program.tensor(name, top_shapes[i]); }
  TensorId new_bottom_diff(size_t i) {
    return bottom_diffs[i] = program.tensor(name + " diff", bottom_shape(i));
  }
  /// A tensor internal to the layer.
  TensorId new_tensor(const std::string& what, Shape shape) {
    return program.tensor(name + " " + what, std::move(shape));
  }
  std::string step(const char* what) const { return name + " " + what; }
};

/// y = scale x + shift, with one value of each per channel.
struct ChannelAffine {
  TensorId scale = kNoTensor;
  TensorId shift = kNoTensor;  ///< kNoTensor: 0
};

/// A layer of a net. Objects are immutable after creation and shared by all plans of the net.
class Layer {
 public:
  explicit Layer(const caffe::LayerParameter& param) : param_(param) {}
  virtual ~Layer() = default;

  /// Checks the bottoms, sets the tops' shapes and requests parameters.
  virtual Status shape(LayerShapes& shapes) const = 0;
  /// Emits the forward steps and sets plan.tops.
  virtual Status forward(LoweringContext& plan) const = 0;
  /// Whether the tops are the same after every pass. A net that runs layer by layer computes them
  /// once, and what its user writes there stays, as in Caffe.
  virtual bool is_constant() const { return false; }
  /// Whether, in this phase, the layer is y = scale[c] x + shift[c], where c is axis 1 and scale
  /// and shift depend only on its parameters.
  virtual bool is_channel_affine() const { return false; }
  /// Emits the steps that compute scale and shift; only the parameters of the context are set.
  virtual ChannelAffine channel_affine(LoweringContext&) const { return {}; }
  /// Emits the backward steps for the requested gradients.
  virtual Status backward(LoweringContext&) const {
    return invalid_argument("a " + param_.type() +
                            " layer has no gradient; keep it off the path "
                            "from a loss to a parameter, or set propagate_down: false");
  }

 protected:
  const caffe::LayerParameter& param() const { return param_; }

 private:
  caffe::LayerParameter param_;
};

class Source;
struct RowsInput;
struct SourceOptions;

/// The valid labels of a layer: integers in [0, classes), or `ignored`.
struct LabelRange {
  int64_t classes = 0;  ///< 0: unknown, any label is valid
  std::optional<int32_t> ignored;
};

/// The table that a data layer names, for a reader such as Spark.
struct SourceTable {
  std::string source, format;
  std::vector<std::string> columns;  ///< expressions; empty = all columns
};

/// The properties of a layer type: its entry in the generated table (core/CMakeLists.txt). The rest
/// of the engine uses these only and refers to no type by name. -1 = any number.
struct LayerType {
  const char* name;
  int min_bottoms = 1, max_bottoms = 1;
  int min_tops = 1, max_tops = 1;
  std::unique_ptr<Layer> (*create)(const caffe::LayerParameter&);
  bool any_format = false;    ///< accepts bottoms in any number format; others get float32
  bool loss = false;          ///< its first top is part of the objective, with weight 1
  bool source = false;        ///< its tops are fed from outside
  bool identity = false;      ///< its tops are aliases of its bottom
  bool no_label = false;      ///< only the first bottom has a gradient
  bool score = false;         ///< its tops evaluate its bottoms, as those of a loss do
  bool foreign = false;       ///< defined outside the engine: created by GraphOptions::make_foreign
  bool inputs = false;        ///< a source whose tops are the inputs of the net
  bool takes_arrays = false;  ///< a source of data and labels that are passed as arrays in memory
  bool applies_relu = false;  ///< supports LoweringContext::fuse_relu
  /// Whether, if the parameters of a following scale layer are appended to its own, it multiplies
  /// its channels by the first of them and adds the second, if any.
  bool (*applies_scale)(const caffe::LayerParameter&) = nullptr;
  /// Whether it is y = params[0] x [+ params[1]], with one value per channel (axis 1), which the
  /// layer before may apply.
  bool (*is_channel_scale)(const caffe::LayerParameter&) = nullptr;
  /// Whether its first parameter has one row per channel (axis 1) of its only top, and its second,
  /// if any, is added to the channels: a channel-wise affine layer after it can then be folded into
  /// both.
  bool (*linear_in_channels)(const caffe::LayerParameter&) = nullptr;
  /// Whether it is max(x, 0), which the layer before may apply.
  bool (*is_relu)(const caffe::LayerParameter&) = nullptr;
  /// Whether a row's values in a top depend on no other row; null: unknown, treated as no.
  bool (*rows_apart)(const caffe::LayerParameter&, const RowPath&) = nullptr;
  /// The valid values of the second bottom, if it holds labels for the scores in the first.
  LabelRange (*labels)(const caffe::LayerParameter&, const Shape& scores) = nullptr;
  /// Opens the files that a source names; null: the caller feeds the source.
  Result<std::unique_ptr<Source>> (*open)(const caffe::LayerParameter&,
                                          const SourceOptions&) = nullptr;
  /// Describes the column that feeds a top of a source; null: derived from the top's shape.
  Status (*rows_input)(const caffe::LayerParameter&, int top, RowsInput* input) = nullptr;
  /// The table that a source names; null: none.
  SourceTable (*table)(const caffe::LayerParameter&) = nullptr;
};

template <class L>
std::unique_ptr<Layer> create_layer(const caffe::LayerParameter& param) {
  return std::make_unique<L>(param);
}

/// All layer types, in alphabetical order of their files.
using LayerTypes = std::span<const LayerType* const>;

/// The entry of a type name; the error lists all names and suggests the nearest one.
Result<const LayerType*> find_layer_type(LayerTypes types, const std::string& name);

}  // namespace cafetiere
