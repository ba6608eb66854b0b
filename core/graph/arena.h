// SPDX-License-Identifier: Apache-2.0
// The parameter arena of a graph: first values, weights in and weights out.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/graph/filler.h"
#include "core/graph/graph.h"
#include "core/model/weights.h"

namespace cafetiere {

/// Fills all parameters by their fillers, in net order.
Status init_params(const Graph& graph, Random& random, std::span<float> arena);

/// Copies the blobs of layers of the same name into the arena. Layers without a source keep their
/// values; the names of source layers that the net lacks are added to `ignored`. A blob may be
/// missing where another layer owns it: HDF5 files store a shared blob once.
Status load_weights(const Graph& graph, const caffe::NetParameter& weights, std::span<float> arena,
                    std::vector<std::string>* ignored);
/// The same, a blob at a time: the values of an HDF5 file are read straight into the arena.
Status load_weights(const Graph& graph, const StoredWeights& weights, std::span<float> arena,
                    std::vector<std::string>* ignored);

/// The net with its parameters, as a caffemodel holds them: one layer entry each, splits included.
/// `diffs`, unless empty, is an arena of differences to store alongside the values.
caffe::NetParameter to_weights(const Graph& graph, std::span<const float> arena,
                               std::span<const float> diffs = {});

/// An upper bound on its bytes as a caffemodel, with differences or without.
size_t binary_bytes(const Graph& graph, bool diffs);

/// Writes the same as an HDF5 file, straight from the arenas: without the net, of any size, to a
/// temporary file that is then renamed.
Status write_hdf5_weights(const Graph& graph, std::span<const float> arena,
                          std::span<const float> diffs, const std::string& path);

/// For each parameter of `graph`, that of the same layer and blob of `owner`, in `arena`: how a test
/// net uses the weights of a training net. Layers that `owner` lacks keep theirs, in `own`. An error
/// names a parameter that does not fit.
Result<std::vector<float*>> shared_params(const Graph& graph, const Graph& owner, float* arena,
                                          float* own);

/// Whether `owner` has every layer of `graph` that has parameters, so that none needs `own`.
bool covers(const Graph& owner, const Graph& graph);

}  // namespace cafetiere
