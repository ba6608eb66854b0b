// SPDX-License-Identifier: Apache-2.0
// A blob that several layers read is copied by a Split layer, so that each reader has its own
// gradient and the sum of them reaches the producer.
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/model/proto/caffe.pb.h"

namespace cafetiere {

/// The net with a Split layer, of the given type, after each producer of a blob that is read more than once, or read
/// and weighted as a loss; readers are renamed to its tops. `origin`, unless null, gets for each
/// layer of the result its index in `net`, for a Split that of its producer; after an error, the
/// index of the layer at fault.
Result<caffe::NetParameter> insert_splits(const caffe::NetParameter& net, const std::string& type,
                                          std::vector<int>* origin);

/// `<blob>_<layer>_<top>_split`, the name of the Split layer of top number `top` of `layer`.
std::string split_layer_name(const std::string& layer, const std::string& blob, int top);

/// `<blob>_<layer>_<top>_split_<k>`, the name of its top number `k`.
std::string split_blob_name(const std::string& layer, const std::string& blob, int top, int k);

}  // namespace cafetiere
