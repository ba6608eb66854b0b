// SPDX-License-Identifier: Apache-2.0
// A table that is counted, for those parts of the C interface that make nets of it.
#pragma once

#include <string>
#include <vector>

#include "cafetiere/c_api.h"
#include "core/data/table_statistics.h"

struct cft_table {
  std::vector<std::string> names;
  cafetiere::TableStatistics statistics;
};

namespace cafetiere::capi {

/// An empty one, of the options of cft_table_create().
Result<cft_table*> make_table(const char* options);

/// The net of cft_table_net().
Result<caffe::NetParameter> net_of(const cft_table& table, const char* options);

}  // namespace cafetiere::capi
