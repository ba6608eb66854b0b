// SPDX-License-Identifier: Apache-2.0
// Net: an eager net, run layer by layer as Caffe runs it. Every blob is exposed, row-major, to be
// read and written between layers, and any range of layers can be run. Plan is the fast way: it
// fuses layers, keeps the layouts that suit the kernels and lets blobs share memory.
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

/// For each of the graph's blobs the number of its Caffe blob, in net order: blobs of the same name
/// share one, those without a name do not.
std::vector<int> blob_homes(const Graph& graph);

class Net {
 public:
  struct Options {
    int threads = 1;
    uint64_t seed = 1;  ///< of the fillers and of all random choices in a pass
  };
  /// Fills the parameters and allocates every blob.
  static Result<std::unique_ptr<Net>> create(Graph graph, const Options& options);

  const Graph& graph() const { return graph_; }

  /// A blob or a parameter. A copy of `data` or `diff` keeps the memory alive, also when a blob has
  /// moved or the net is destroyed.
  struct Blob {
    std::string name;
    Shape shape;
    std::shared_ptr<float> data, diff;
    int64_t capacity = 0;   ///< floats; never shrinks
    float loss_weight = 0;  ///< what `diff` of a loss is filled with

    BlobView view() const { return {shape, data.get(), diff.get()}; }
  };
  /// Caffe's blobs, in the order of blob_homes().
  const std::vector<Blob>& blobs() const { return blobs_; }
  /// The blob that Graph calls `id`.
  int blob_index(int id) const { return blob_indices_[size_t(id)]; }
  /// As Graph::params().
  const std::vector<Blob>& params() const { return params_; }
  std::span<float> param_arena() const;
  std::span<float> diff_arena() const;

  /// Reshapes a blob, zeroed where it grows beyond its memory; the layers after it follow when they
  /// run, or on reshape().
  Status reshape_blob(int blob, Shape shape);
  /// Infers all shapes again, from those of the inputs.
  Status reshape();

  /// Makes `source` fill the tops of a layer on each forward pass. It must outlive the net; on
  /// failure the previous source is kept.
  Status feed(const std::string& layer, Source* source);

  /// Has the next forward pass be that after so many: it draws their next random numbers and rows.
  void continue_after(int64_t passes) { context_.sub_step = passes - 1; }

  /// Runs layers [from, to]; returns the sum of their losses.
  Result<float> forward(int from, int to);
  /// Runs layers from `from` down to `to`. Gradients of blobs are replaced, those of parameters
  /// added to.
  Status backward(int from, int to);
  void clear_param_diffs();

  /// Copies weights by layer name; the names of layers that this net lacks are added to `ignored`.
  Status copy_from(const StoredWeights& weights, std::vector<std::string>* ignored);
  /// Uses `other`'s parameters from now on, by layer name; they stay alive as long as this net.
  Status share_with(const Net& other, std::vector<std::string>* ignored);
  /// The net with its weights, as a caffemodel holds them.
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
  float loss_of(const Node& node) const;
  Status check_range(int from, int to) const;
  void copy_params(std::span<float> arena, bool out) const;

  Graph graph_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<ThreadPool> pool_;
  std::vector<Blob> blobs_, params_;
  std::vector<int> blob_indices_;  // by the graph's blob
  std::shared_ptr<float> arena_, diff_arena_;
  bool shares_params_ = false;
  std::vector<EagerNode> nodes_;
  struct Fed {
    Source* source = nullptr;
    int64_t batches = 0;  ///< read so far
  };
  std::map<std::string, Fed> sources_;  // by layer
  RunContext context_;
};

}  // namespace cafetiere
