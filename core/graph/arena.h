// The parameter arena of a graph: first values, weights in and weights out.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/graph/filler.h"
#include "core/graph/graph.h"

namespace cafetiere {

/// Fills all parameters by their fillers, in net order.
Status init_params(const Graph& graph, Random& random, std::span<float> arena);

/// Copies the blobs of layers of the same name into the arena. Layers without a source keep their
/// values; the names of source layers that the net lacks are added to `ignored`.
Status load_weights(const Graph& graph, const caffe::NetParameter& weights, std::span<float> arena,
                    std::vector<std::string>* ignored);

/// The net with its parameters, as a caffemodel holds them: one layer entry each, splits included.
caffe::NetParameter to_weights(const Graph& graph, std::span<const float> arena);

/// For each parameter of `graph`, that of the same layer and blob of `owner`, in owner's arenas: how
/// a test net uses the weights of a training net. An error names a parameter that has no match.
Result<std::vector<float*>> shared_params(const Graph& graph, const Graph& owner, float* arena);

}  // namespace cafetiere
