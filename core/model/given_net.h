// SPDX-License-Identifier: Apache-2.0
// A net that somebody gives as the hidden layers of another, or as all of them.
#pragma once

#include <set>
#include <string>

#include "core/base/status.h"
#include "core/model/proto/caffe.pb.h"

namespace cafetiere {

/// Layers to put behind the blob "input".
struct GivenNet {
  caffe::NetParameter net;
  std::string top;     ///< that the scores are made of or, of a whole net, the scores
  bool whole = false;  ///< the last layer gives as many scores as are wanted
};

/// `net` without its Input layer, whose top, if there is such a layer, is "input" from here on. One that ends
/// in a Softmax of `scores` InnerProduct outputs is whole, and loses the Softmax. Blobs called as those in
/// `taken` get other names. Errors: several inputs, a last layer without a top, a layer that is called as
/// one in `taken`, since its weights would be found by that name.
Result<GivenNet> given_net(const caffe::NetParameter& net, int64_t scores,
                           const std::set<std::string>& taken);

}  // namespace cafetiere
