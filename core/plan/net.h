// SPDX-License-Identifier: Apache-2.0
// Net: an eager net, run layer by layer like Caffe's. Every blob is exposed, row-major, and can be
// read and written between layers; any range of layers can be run. Plan is the faster alternative:
// it fuses layers, uses the layouts that suit the kernels and lets blobs share memory.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/data/source.h"
#include "core/model/weights.h"
#include "core/plan/eager_node.h"

namespace cafetiere {

/// For each blob of the graph, the index of its Caffe blob, in net order: blobs of the same name
/// share one, unnamed blobs do not.
std::vector<int> blob_homes(const Graph& graph);

class Net {
 public:
  struct Options {
    int threads = 1;
    uint64_t seed = 1;  ///< for the fillers and for all random choices of a pass
  };
  /// Initialises the parameters and allocates every blob.
  static Result<std::unique_ptr<Net>> create(Graph graph, const Options& options);

  const Graph& graph() const { return graph_; }

  /// A blob or a parameter. A copy of `data` or `diff` keeps the memory alive after the blob is
  /// reallocated or the net destroyed.
  struct Blob {
    std::string name;
    Shape shape;
    std::shared_ptr<float> data, diff;
    int64_t capacity = 0;   ///< floats; never shrinks
    float loss_weight = 0;  ///< the value that fills `diff` of a loss

    BlobView view() const { return {shape, data.get(), diff.get()}; }
  };
  /// Caffe's blobs, in the order of blob_homes().
  const std::vector<Blob>& blobs() const { return blobs_; }
  /// The index of the blob with id `id` in Graph.
  int blob_index(int id) const { return blob_indices_[size_t(id)]; }
  /// In the order of Graph::params().
  const std::vector<Blob>& params() const { return params_; }
  std::span<float> param_arena() const;
  std::span<float> diff_arena() const;

  /// Reshapes a blob; memory it grows into is zeroed. Later layers are reshaped when they run, or
  /// by reshape().
  Status reshape_blob(int blob, Shape shape);
  /// Infers all shapes again from those of the inputs.
  Status reshape();

  /// Makes `source` fill the tops of a layer on each forward pass. It must outlive the net; on
  /// failure the previous source is kept.
  Status feed(const std::string& layer, Source* source);

  /// Sets the number of passes done, which determines the random numbers of the next forward pass.
  /// Sources go on where they are.
  void continue_after(int64_t passes) { context_.sub_step = passes - 1; }

  /// Runs layers [from, to]; returns the sum of their losses.
  Result<float> forward(int from, int to);
  /// Runs layers from `from` down to `to`. Overwrites the gradients of blobs, adds to those of
  /// parameters.
  Status backward(int from, int to);
  void clear_param_diffs();

  /// Copies weights by layer name; appends the names of layers that this net lacks to `ignored`.
  Status copy_from(const StoredWeights& weights, std::vector<std::string>* ignored);
  /// Uses `other`'s parameters from now on, matched by layer name; they live as long as this net.
  Status share_with(const Net& other, std::vector<std::string>* ignored);
  /// The net with its weights, as in a caffemodel.
  caffe::NetParameter weights() const;

  ThreadPool& pool() { return *pool_; }

 private:
  explicit Net(Graph graph) : graph_(std::move(graph)) {}
  Status build(const Options& options);
  void place_blobs();
  void place_params();
  void set_shape(Blob& blob, Shape shape);
  Status reshape_node(size_t n);
  Status shape_by_values(const ExternalLayer& layer, const Node& node);
  Status check_params(const Node& node, const std::vector<ParamRequest>& requests) const;
  NodeBlobs blobs_of(const Node& node) const;
  std::vector<BlobView> param_views(const Node& node) const;
  Status forward_node(size_t n);
  Status run_node(size_t n);
  float loss_of(const Node& node) const;
  Status check_range(int from, int to) const;
  void copy_params(std::span<float> arena, bool out) const;

  Graph graph_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<ThreadPool> pool_;
  std::vector<Blob> blobs_, params_;
  std::vector<int> blob_indices_;  // indexed by the graph's blob
  std::shared_ptr<float> arena_, diff_arena_;
  bool shares_params_ = false;
  std::vector<EagerNode> nodes_;
  struct Fed {
    Source* source = nullptr;
    int64_t batches = 0;  ///< read so far
  };
  std::map<std::string, Fed> sources_;  // keyed by layer
  RunContext context_;
};

}  // namespace cafetiere
