// SPDX-License-Identifier: Apache-2.0
// Layer: what a layer type must define. One file in core/layers/ per type.
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

/// A parameter blob that a layer asks for.
struct ParamRequest {
  Shape shape;
  caffe::FillerParameter filler;
  ParamKind kind = ParamKind::kLearned;
  float fraction = 1;
};

/// Shapes in, shapes out. Filled by the graph, completed by Layer::shape().
struct LayerShapes {
  std::vector<Shape> bottoms;
  std::vector<Shape> tops;  ///< as many as the layer has; to be set
  std::vector<ParamRequest> params;
  std::vector<Shape> fed;  ///< for sources: the shapes that will be fed, empty if not known
  int64_t batch = 0;       ///< for sources: rows of the batch, 0 = as the net says
};

/// What a layer sees while it is lowered. Tensors are SSA: an in-place layer reads one tensor and
/// makes another; the plan decides whether they share memory.
struct LoweringContext {
  Program& program;
  Device& device;
  std::string name;
  bool train = false;
  bool fuse_relu = false;  ///< the next layer is a ReLU that this one should apply
  std::vector<TensorId> bottoms = {};
  std::vector<TensorId> tops = {};  ///< to be set by forward()
  std::vector<Shape> top_shapes = {};
  std::vector<TensorId> params = {};
  std::vector<Gradient> param_diffs = {};  ///< kNoTensor where no gradient is wanted
  std::vector<TensorId> top_diffs = {};    ///< kNoTensor where no gradient arrives
  std::vector<TensorId> bottom_diffs =
      {};  ///< to be set by backward() where propagate_down says so
  std::vector<bool> propagate_down = {};
  std::vector<TensorId> saved = {};  ///< what forward() keeps for backward()

  const Shape& bottom_shape(size_t i) const { return program.shape(bottoms[i]); }
  /// Creates top i, or the gradient of bottom i, as a new tensor.
  TensorId new_top(size_t i) { return tops[i] = program.tensor(name, top_shapes[i]); }
  TensorId new_bottom_diff(size_t i) {
    return bottom_diffs[i] = program.tensor(name + " diff", bottom_shape(i));
  }
  /// A tensor for forward() and backward() alone.
  TensorId new_tensor(const std::string& what, Shape shape) {
    return program.tensor(name + " " + what, std::move(shape));
  }
  std::string step(const char* what) const { return name + " " + what; }
};

/// What a layer does to each channel: y = scale x + shift, one value a channel each.
struct ChannelAffine {
  TensorId scale = kNoTensor;
  TensorId shift = kNoTensor;  ///< kNoTensor: 0
};

/// A layer of a net. Objects are immutable after creation and shared by all plans of the net.
class Layer {
 public:
  explicit Layer(const caffe::LayerParameter& param) : param_(param) {}
  virtual ~Layer() = default;

  /// Checks the bottoms, sets the tops' shapes, asks for parameters.
  virtual Status shape(LayerShapes& shapes) const = 0;
  /// Emits the forward steps and sets plan.tops.
  virtual Status forward(LoweringContext& plan) const = 0;
  /// Whether, in this phase, it is y = scale[c] x + shift[c] by its parameters alone, c being axis 1.
  virtual bool is_channel_affine() const { return false; }
  /// Emits the steps that compute both; of the context only the parameters are there.
  virtual ChannelAffine channel_affine(LoweringContext&) const { return {}; }
  /// Emits the backward steps for the gradients asked for.
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

/// What the labels of a layer may be: whole numbers in [0, classes), or `ignored`.
struct LabelRange {
  int64_t classes = 0;  ///< 0: not known, anything goes
  std::optional<int32_t> ignored;
};

/// The table that a data layer names for its reader, such as Spark.
struct SourceTable {
  std::string source, format;
  std::vector<std::string> columns;  ///< expressions; empty = all columns
};

/// The properties of a layer type: its entry in the generated table (core/CMakeLists.txt). The rest
/// of the engine reads them and knows no type by name. -1 = any number.
struct LayerType {
  const char* name;
  int min_bottoms = 1, max_bottoms = 1;
  int min_tops = 1, max_tops = 1;
  std::unique_ptr<Layer> (*create)(const caffe::LayerParameter&);
  bool any_format = false;    ///< takes bottoms as they are stored; others get float32
  bool loss = false;          ///< its first top counts towards the objective with weight 1
  bool source = false;        ///< its tops are fed from outside
  bool identity = false;      ///< its tops are its bottom under other names
  bool no_label = false;      ///< the gradient stops at bottoms other than the first
  bool score = false;         ///< its tops score its bottoms, as a loss's do
  bool foreign = false;       ///< outside the engine: GraphOptions::make_foreign creates it
  bool inputs = false;        ///< a source whose tops are the inputs of the net
  bool takes_arrays = false;  ///< a source of data and labels from arrays in memory
  bool applies_relu = false;  ///< does what LoweringContext::fuse_relu says
  /// Whether it multiplies channels by the parameter behind its own, and adds the next one if there is
  /// one, when it is given those of the scale that follows.
  bool (*applies_scale)(const caffe::LayerParameter&) = nullptr;
  /// Whether it is y = params[0] x [+ params[1]], one value a channel (axis 1), which the layer before
  /// may apply.
  bool (*is_channel_scale)(const caffe::LayerParameter&) = nullptr;
  /// Whether its first parameter has a row for each channel (axis 1) of its only top and its second,
  /// which may be missing, is added to the channels: then what follows can be folded into both.
  bool (*linear_in_channels)(const caffe::LayerParameter&) = nullptr;
  /// Whether it is max(x, 0), which the layer before may apply.
  bool (*is_relu)(const caffe::LayerParameter&) = nullptr;
  /// Whether a row's values in a top depend on no other row; null: not known, so no.
  bool (*rows_apart)(const caffe::LayerParameter&, const RowPath&) = nullptr;
  /// What the second bottom may hold, if it holds labels of the first one's scores.
  LabelRange (*labels)(const caffe::LayerParameter&, const Shape& scores) = nullptr;
  /// Opens the files that a source names; null: the caller feeds it.
  Result<std::unique_ptr<Source>> (*open)(const caffe::LayerParameter&,
                                          const SourceOptions&) = nullptr;
  /// What a source says of the column that feeds a top; null: what its shape says.
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

/// The entry of a type name; the error lists all names and the nearest one.
Result<const LayerType*> find_layer_type(LayerTypes types, const std::string& name);

}  // namespace cafetiere
