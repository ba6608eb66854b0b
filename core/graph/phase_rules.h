// SPDX-License-Identifier: Apache-2.0
// Which layers of a net are there in a given phase, level and set of stages.
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/model/proto/caffe.pb.h"

namespace cafetiere {

/// Whether everything that `rule` states holds in `state`; what it leaves out does not matter.
bool rule_is_met(const caffe::NetStateRule& rule, const caffe::NetState& state);

/// The net without the layers whose include and exclude rules keep them out of `state`. `kept`,
/// unless null, gets for each layer of the result its index in `net`; `notes`, for each rule that
/// did not hold, why, in Caffe's wording.
Result<caffe::NetParameter> filter_net(const caffe::NetParameter& net, const caffe::NetState& state,
                                       std::vector<int>* kept,
                                       std::vector<std::string>* notes = nullptr);

}  // namespace cafetiere
