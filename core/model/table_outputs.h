// SPDX-License-Identifier: Apache-2.0
// What a table's net does with its scores: loss, accuracy and predictions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/model/table_net.h"

namespace cafetiere {

/// Appends a layer with one top.
caffe::LayerParameter& add_layer(caffe::NetParameter* net, const std::string& name,
                                 const std::string& type, const std::vector<std::string>& bottoms,
                                 const std::string& top);

/// Appends the mean of the members' `scores`, if there are several, and the layers that read the
/// blob "score". compared: the bottoms of the loss, "score" first.
void add_table_outputs(std::span<const caffe::TableDataParameter::Column> labels,
                       const TableNetOptions& options, const std::vector<std::string>& scores,
                       const std::vector<std::string>& compared, caffe::NetParameter* net);

}  // namespace cafetiere
