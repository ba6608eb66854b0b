// SPDX-License-Identifier: Apache-2.0
// Layers that ONNX has no operator for, written out in many nodes: the first node's documentation
// holds the layer's prototxt, so that what is read back is one layer again.
#pragma once

#include "core/onnx/families.h"

namespace cafetiere {

/// Writes into the first node of `layer`, all of whose nodes have been written, what it is. `tops`
/// are the names of its values.
void describe_whole_layer(const ExportLayer& layer, const OnnxValues& tops, onnx::NodeProto* first);

/// Whether a node says that a layer's nodes begin here.
bool begins_whole_layer(const onnx::NodeProto& node);

/// Adds the layer whose nodes begin with node `first`; gives how many there are. The nodes decide: the
/// layer is written again, and each node and constant must be what is in the file, the parameters'
/// values aside. A model that another program has changed in between is refused.
Result<int> read_whole_layer(const onnx::GraphProto& graph, int first, OnnxReader& reader);

}  // namespace cafetiere
