// SPDX-License-Identifier: Apache-2.0
// Graph: a net after phase rules and splits, with its layers connected, its parameters laid out in
// one arena and the layers that need a gradient marked.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/graph/layer.h"
#include "core/model/prototxt.h"

namespace cafetiere {

/// The top of a loss layer to which the net gives none, as in Caffe; it is no output of the net.
inline constexpr const char* kAnonymousTop = "(automatic)";

/// A parameter blob. `offset` is its position in the parameter arena, in floats.
struct Param {
  std::string layer;
  int index = 0;  ///< index of the blob within the layer
  std::string shared_name;
  Shape shape;
  caffe::FillerParameter filler;
  ParamKind kind = ParamKind::kLearned;
  float fraction = 1;  ///< of a statistic: what a pass of all layers that share it leaves of it
  float lr_mult = 1, decay_mult = 1;
  bool lr_given = false, decay_given = false;  ///< whether the net sets them; else they are
                                               ///< defaults
  int64_t offset = 0;
};

/// A layer and its connections. Blobs are SSA: an in-place layer creates a new blob of the same
/// name.
struct Node {
  caffe::LayerParameter param;
  const LayerType* type = nullptr;
  std::unique_ptr<Layer> layer;
  std::string where;  ///< "net.prototxt:12: layer 'conv1'", for messages
  std::vector<int> bottoms, tops, params;
  std::vector<Shape> param_shapes;  ///< its own, where it shares a blob of as many numbers
  std::vector<float> loss_weights;  ///< one per top
  std::vector<bool> propagate_down;
  bool needs_backward = false;
  bool inserted = false;  ///< copies a blob for each of its readers; not in the net's file
};

struct GraphOptions {
  LayerTypes types;  ///< the available layer types: layer_types() of core/layers
  /// Creates layers of types defined outside the engine (LayerType::foreign).
  using Maker = std::function<Result<std::unique_ptr<Layer>>(const caffe::LayerParameter&)>;
  Maker make_foreign = nullptr;
  /// The shapes fed to the tops of source layers, by layer name, where the net does not define
  /// them.
  std::map<std::string, std::vector<Shape>> fed;
};

class Graph {
 public:
  /// Filters the net for `state`, inserts splits, and connects and checks all layers.
  static Result<Graph> build(const NetText& net, const caffe::NetState& state,
                             const GraphOptions& options);

  const std::string& name() const { return name_; }
  caffe::Phase phase() const { return phase_; }
  /// Whether every layer and parameter gets a gradient, even if nothing learns from it.
  bool force_backward() const { return force_backward_; }
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<Param>& params() const { return params_; }
  const std::vector<std::string>& blob_names() const { return blob_names_; }
  /// The name of a blob in the net's file; for a copy made by a split, the name of the original.
  const std::string& written_name(int blob) const;
  /// Size of the parameter arena in floats; each parameter begins on a 64-byte boundary. Learned
  /// parameters come first, in net order; statistics follow in separate blocks, so that they are
  /// not part of any norm.
  int64_t arena_size() const { return arena_size_; }
  int64_t learned_size() const { return learned_size_; }
  /// Numbers in all parameters, without the arena's padding.
  int64_t parameter_count() const;
  /// The index of the newest blob of that name; -1 if there is none.
  int find_blob(const std::string& name) const;
  /// Blobs that no layer reads, in alphabetical order, as in Caffe.
  const std::vector<int>& outputs() const { return outputs_; }
  /// Shapes of all blobs if the sources provide `batch` rows (0 = the net's own batch size).
  Result<std::vector<Shape>> infer(int64_t batch) const;

 private:
  Status add_node(const GraphOptions& options, caffe::LayerParameter param, std::string where,
                  std::map<std::string, int>& available);
  Status wire(Node& node, std::map<std::string, int>& available);
  Status set_loss_weights(Node& node);
  Status place_params(Node& node, const std::vector<ParamRequest>& requests);
  Status share_param(Node& node, Param& candidate, const caffe::ParamSpec& spec);
  Status shape_node(const Node& node, int64_t batch, std::vector<Shape>& shapes,
                    std::vector<ParamRequest>* requests) const;
  void lay_out_arena();
  void want_gradients();
  Status keep_paths_to_losses();

  std::string name_;
  caffe::Phase phase_ = caffe::TEST;
  bool force_backward_ = false;
  std::map<std::string, std::vector<Shape>> fed_;
  std::vector<Node> nodes_;
  std::vector<Param> params_;
  std::vector<std::string> blob_names_;
  std::vector<int> outputs_;
  int64_t arena_size_ = 0, learned_size_ = 0;
};

}  // namespace cafetiere
