// SPDX-License-Identifier: Apache-2.0
// Graph: a net after phase rules and splits, with its layers wired, its parameters placed in one
// arena and the layers that need a gradient marked.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/graph/layer.h"
#include "core/model/prototxt.h"

namespace cafetiere {

/// A parameter blob. `offset` is its place in the arena that holds all of them in net order.
struct Param {
  std::string layer;
  int index = 0;  ///< which blob of the layer
  std::string shared_name;
  Shape shape;
  caffe::FillerParameter filler;
  ParamKind kind = ParamKind::kLearned;
  float fraction = 1;
  float lr_mult = 1, decay_mult = 1;
  bool lr_given = false, decay_given = false;  ///< whether the net says them, or they are defaults
  int64_t offset = 0;
};

/// A layer with its wires. Blobs are SSA: an in-place layer has a new blob of the same name.
struct Node {
  caffe::LayerParameter param;
  const LayerType* type = nullptr;
  std::unique_ptr<Layer> layer;
  std::string where;  ///< "net.prototxt:12: layer 'conv1'", for messages
  std::vector<int> bottoms, tops, params;
  std::vector<float> loss_weights;  ///< one a top
  std::vector<bool> propagate_down;
  bool needs_backward = false;
  bool inserted =
      false;  ///< copies a blob for each of its readers; the net's file has no such layer
};

struct GraphOptions {
  LayerTypes types;  ///< the layer types to choose from: layer_types() of core/layers
  /// Creates layers of types from outside the engine (LayerType::foreign).
  using Maker = std::function<Result<std::unique_ptr<Layer>>(const caffe::LayerParameter&)>;
  Maker make_foreign = nullptr;
  /// The shapes fed to a source layer's tops, by layer name, where the net itself does not say.
  std::map<std::string, std::vector<Shape>> fed;
};

class Graph {
 public:
  /// Filters the net by `state`, inserts splits, wires and checks everything.
  static Result<Graph> build(const NetText& net, const caffe::NetState& state,
                             const GraphOptions& options);

  const std::string& name() const { return name_; }
  caffe::Phase phase() const { return phase_; }
  /// Whether every layer and parameter is to have its gradient, even where nothing learns from it.
  bool force_backward() const { return force_backward_; }
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<Param>& params() const { return params_; }
  const std::vector<std::string>& blob_names() const { return blob_names_; }
  /// The name of a blob in the net's file: for a copy that was inserted, that of its original.
  const std::string& written_name(int blob) const;
  /// Floats of the parameter arena; each parameter begins on a 64-byte boundary. Learned ones come
  /// first, in net order; statistics follow in blocks of their own, so that they enter no norm.
  int64_t arena_size() const { return arena_size_; }
  int64_t learned_size() const { return learned_size_; }
  /// The index of the newest blob of that name; -1 when there is none.
  int find_blob(const std::string& name) const;
  /// Blobs that no layer reads, in alphabetical order as Caffe numbers them.
  const std::vector<int>& outputs() const { return outputs_; }
  /// Shapes of all blobs when the sources give `batch` rows (0 = what the net says).
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
