// SPDX-License-Identifier: Apache-2.0
// A model for any number of rows, of two that were written for so many.
#pragma once

#include <onnx/onnx.pb.h>

#include "core/base/status.h"

namespace cafetiere {

/// Rows of the two graphs that open_rows() compares.
inline constexpr int64_t kFewRows = 2, kMoreRows = 3;

/// Makes `few`, the graph of a net for kFewRows rows, that of any number: what is another in `more`, that
/// of kMoreRows, is the number of rows. A node that no shape opens is an error that names it.
Status open_rows(const onnx::GraphProto& more, onnx::GraphProto* few);

}  // namespace cafetiere
