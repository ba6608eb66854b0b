// SPDX-License-Identifier: Apache-2.0
// Nets of tables that begin with the weights of another one.
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/model/table_net.h"

namespace cafetiere::capi {

/// Encodes the features as the net `initial`, prototxt of a model of a table, does, and in its order: so
/// that its weights fit. The label, too, where it is the same and all its classes are known there; else
/// `score` becomes another name for the layer of the scores, which begins anew. An error if the features
/// are not those of the net.
Status take_encoding(const std::string& initial,
                     std::vector<caffe::TableDataParameter::Column>* features, TableTarget* target,
                     std::string* score);

/// Keeps layers as they are: those that are named, and those of a name that begins with one and a slash.
/// An error if there is no such layer with parameters.
Status freeze(const std::vector<std::string>& names, caffe::NetParameter* net);

}  // namespace cafetiere::capi
