// SPDX-License-Identifier: Apache-2.0
// Checks of what a table's net is made from.
#pragma once

#include <span>

#include "core/base/status.h"
#include "core/model/table_net.h"

namespace cafetiere {

/// Checks the arguments of table_net(); its documentation lists the errors.
Status check_table_net(std::span<const caffe::TableDataParameter::Column> features,
                       const TableTarget& target, const TableNetOptions& options);

/// The number of scores that a net needs for labels.
int64_t scores_of(std::span<const caffe::TableDataParameter::Column> labels,
                  const TableNetOptions& options);

}  // namespace cafetiere
