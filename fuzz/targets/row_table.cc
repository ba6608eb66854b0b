// SPDX-License-Identifier: Apache-2.0
// Rows as a client hands them in: the first byte is how many, the schema's JSON goes to a line's
// end, and the rest are the rows.
#include "core/data/row_table.h"

#include "fuzz/targets.h"

void cafetiere::fuzz::row_table(std::string_view bytes) {
  const size_t end = bytes.find('\n');
  if (bytes.empty() || end == bytes.npos) return;
  const auto schema = RowSchema::parse(bytes.substr(1, end - 1));
  if (!schema.ok()) return;
  const std::string_view rows = bytes.substr(end + 1);
  RowTable table(*schema);
  (void)table.append(static_cast<signed char>(bytes[0]), std::as_bytes(std::span(rows)));
  for (int64_t i = 0; i < table.rows(); ++i) {
    for (size_t c = 0; c < schema->columns.size(); ++c) {
      (void)table.cell(i, static_cast<int>(c)).describe();
    }
    (void)schema->describe_row(table.row(i));
  }
}
