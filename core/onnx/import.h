// SPDX-License-Identifier: Apache-2.0
// Import: an ONNX model as a net with its weights.
#pragma once

#include <string>
#include <string_view>

#include "core/base/status.h"
#include "core/model/proto/caffe.pb.h"

namespace cafetiere {

/// Reads the bytes of an ONNX file (opset 9 and later, weights inside) as a net: Input layers, then a
/// layer or a few for every node, with its blobs. A size of an input that the file leaves open must
/// be its first, which becomes `batch`. An operator, an attribute or a form that no layer has is an
/// error that names the node.
Result<caffe::NetParameter> import_onnx(std::string_view bytes, int64_t batch = 1);

/// The net without its blobs: what a prototxt holds.
caffe::NetParameter structure_of(const caffe::NetParameter& net);

}  // namespace cafetiere
