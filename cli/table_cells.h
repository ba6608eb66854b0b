// SPDX-License-Identifier: Apache-2.0
// Cells of a table as text, made the bytes that the engine reads.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/data/row_schema.h"

namespace cafetiere {

/// Appends a cell: its size, then its value. Of i32 the text is a date, such as 2020-09-13, of i64 a
/// moment, such as 2020-09-13T12:26:40.5+02:00, in UTC where no offset is given; true and false are the
/// numbers 1 and 0. "" is a gap. An error: a text that is none of its type.
Status append_cell(ColumnType type, std::string_view text, std::vector<std::byte>* row);

}  // namespace cafetiere
