// SPDX-License-Identifier: Apache-2.0
// A user-supplied net that provides the hidden layers of another net, or all of it.
#pragma once

#include <set>
#include <string>

#include "core/base/status.h"
#include "core/model/proto/caffe.pb.h"

namespace cafetiere {

/// Layers to append after the blob "input".
struct GivenNet {
  caffe::NetParameter net;
  std::string top;     ///< the input of the scores; for a whole net, the scores
  bool whole = false;  ///< the last layer outputs the required number of scores
};

/// `net` without its Input layer, if any, whose top is renamed to "input". A net that ends in a
/// Softmax of `scores` InnerProduct outputs is whole, and its Softmax is removed. Blobs with names
/// in `taken` are renamed. Errors: several inputs; a last layer without a top; a layer with a name
/// in `taken`, since weights are matched by layer name.
Result<GivenNet> given_net(const caffe::NetParameter& net, int64_t scores,
                           const std::set<std::string>& taken);

}  // namespace cafetiere
