// SPDX-License-Identifier: Apache-2.0
// The parameter arena of a graph: initial values, loading and storing weights.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/base/log.h"
#include "core/graph/filler.h"
#include "core/graph/graph.h"
#include "core/model/weights.h"

namespace cafetiere {

/// Fills all parameters with their fillers, in net order.
Status init_params(const Graph& graph, Random& random, std::span<float> arena);

/// Copies the blobs of layers of the same name into the arena. Layers not in `weights` keep their
/// values; the names of layers in `weights` that the net lacks are appended to `ignored`. A blob
/// may be missing if another layer owns it: HDF5 files store a shared blob once.
Status load_weights(const Graph& graph, const caffe::NetParameter& weights, std::span<float> arena,
                    std::vector<std::string>* ignored);
/// The same, one blob at a time: the values of an HDF5 file are read directly into the arena.
Status load_weights(const Graph& graph, const StoredWeights& weights, std::span<float> arena,
                    std::vector<std::string>* ignored);

/// The same, for a training that begins with these weights: logs the layers that the net lacks, and
/// fails if that is every layer with weights, and the net has parameters.
Status begin_with_weights(const Graph& graph, const StoredWeights& weights, std::span<float> arena,
                          const Logger& log);

/// An error naming a layer whose parameters `weights` lacks, of those that the blobs depend on.
Status check_complete(const Graph& graph, const caffe::NetParameter& weights,
                      std::span<const int> blobs);

/// The net with its parameters, as in a caffemodel: one layer entry per layer, splits included.
/// `diffs`, unless empty, is an arena of differences to store with the values.
caffe::NetParameter to_weights(const Graph& graph, std::span<const float> arena,
                               std::span<const float> diffs = {});

/// An upper bound on its size in bytes as a caffemodel, with or without differences.
size_t binary_bytes(const Graph& graph, bool diffs);

/// Writes the same as an HDF5 file, directly from the arenas and without the net's definition; the
/// size is not limited. Writes to a temporary file that is then renamed.
Status write_hdf5_weights(const Graph& graph, std::span<const float> arena,
                          std::span<const float> diffs, const std::string& path);

/// For each parameter of `graph`, the address of the same layer's blob of `owner` in `arena`: this
/// is how a test net uses the weights of a training net. Parameters of layers that `owner` lacks
/// are in `own`. An error names a parameter that does not match.
Result<std::vector<float*>> shared_params(const Graph& graph, const Graph& owner, float* arena,
                                          float* own);

/// Whether `owner` has every layer of `graph` that has parameters, so that `own` is not needed.
bool covers(const Graph& owner, const Graph& graph);

}  // namespace cafetiere
