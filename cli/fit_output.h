// SPDX-License-Identifier: Apache-2.0
// The folder that `cafetiere fit` writes into.
#pragma once

#include <string>

#include "core/base/status.h"

namespace cafetiere {

/// The folder for the model of a table: `out`, or without one TABLE.model beside the table. Errors: it
/// cannot be written into; it holds files that are no model of a table, or, where `out` does not name it, anything.
Result<std::string> output_folder(const std::string& table, const std::string& out);

}  // namespace cafetiere
