// SPDX-License-Identifier: Apache-2.0
// Weights as a .safetensors file: 8 bytes with the header's length, a JSON header that tells each
// tensor's type, shape and place, and the values (the format of the safetensors library).
#pragma once

#include <string>
#include <string_view>

#include "core/base/status.h"
#include "core/model/proto/caffe.pb.h"

namespace cafetiere {

/// Whether `path` ends in ".safetensors".
bool is_safetensors_path(const std::string& path);

/// Weights from the bytes of a file: tensor "conv1.0" is blob 0 of layer "conv1". Float and double
/// values are read. A header that is no JSON, too long, or names values beyond the file is an error;
/// nothing is allocated by what it says alone.
Result<caffe::NetParameter> parse_safetensors(std::string_view bytes);

/// The bytes of a file with all blobs of `net` as float32 under "layer.index", and the net's name as
/// metadata. A layer without blobs leaves no trace.
Result<std::string> serialize_safetensors(const caffe::NetParameter& net);

}  // namespace cafetiere
