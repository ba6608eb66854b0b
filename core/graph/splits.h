// SPDX-License-Identifier: Apache-2.0
// A blob with several readers is copied by a Split layer, so that each reader has a separate
// gradient, and the producer gets their sum.
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/model/proto/caffe.pb.h"

namespace cafetiere {

/// The net with a Split layer, of the given type, after each producer of a blob that is read more
/// than once, or both read and weighted as a loss; readers are renamed to its tops. `origin`,
/// unless null, receives for each layer of the result its index in `net`, for a Split that of its
/// producer; after an error, the index of the layer at fault.
Result<caffe::NetParameter> insert_splits(const caffe::NetParameter& net, const std::string& type,
                                          std::vector<int>* origin);

/// The name of the Split layer of top number `top` of `layer`: `<blob>_<layer>_<top>_split`.
std::string split_layer_name(const std::string& layer, const std::string& blob, int top);

/// The name of its top number `k`: `<blob>_<layer>_<top>_split_<k>`.
std::string split_blob_name(const std::string& layer, const std::string& blob, int top, int k);

}  // namespace cafetiere
