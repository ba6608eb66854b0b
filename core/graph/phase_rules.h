// SPDX-License-Identifier: Apache-2.0
// Selects the layers of a net for a phase, level and set of stages.
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/model/proto/caffe.pb.h"

namespace cafetiere {

/// Whether `state` meets all conditions that `rule` sets; conditions it omits are met.
bool rule_is_met(const caffe::NetStateRule& rule, const caffe::NetState& state);

/// The net without the layers that their include and exclude rules remove for `state`. `kept`,
/// unless null, receives for each layer of the result its index in `net`; `notes`, for each rule
/// not met, the reason in Caffe's wording.
Result<caffe::NetParameter> filter_net(const caffe::NetParameter& net, const caffe::NetState& state,
                                       std::vector<int>* kept,
                                       std::vector<std::string>* notes = nullptr);

}  // namespace cafetiere
