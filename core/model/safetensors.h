// SPDX-License-Identifier: Apache-2.0
// Weights as a .safetensors file: 8 bytes with the length of the header, a JSON header with the
// type, shape and position of each tensor, and the values (the format of the safetensors library).
#pragma once

#include <string>
#include <string_view>

#include "core/base/status.h"
#include "core/model/proto/caffe.pb.h"

namespace cafetiere {

/// Whether `path` ends in ".safetensors".
bool is_safetensors_path(const std::string& path);

/// Weights from the bytes of a file: tensor "conv1.0" is blob 0 of layer "conv1". Float and double
/// values are supported. A header that is not JSON, is too long, or refers to values beyond the
/// file is an error; no memory is allocated based on the header alone.
Result<caffe::NetParameter> parse_safetensors(std::string_view bytes);

/// The bytes of a file with all blobs of `net` as float32, named "layer.index", and the net's name
/// as metadata. Layers without blobs are omitted.
Result<std::string> serialize_safetensors(const caffe::NetParameter& net);

}  // namespace cafetiere
