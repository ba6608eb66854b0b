// SPDX-License-Identifier: Apache-2.0
// The JSON options of the C interface, asked for values of every kind; and a schema of rows.
#include "core/capi/options.h"

#include "core/data/row_schema.h"
#include "fuzz/targets.h"

void cafetiere::fuzz::options(std::string_view bytes) {
  const std::string text(bytes);
  if (auto options = capi::Options::parse(text.c_str()); options.ok()) {
    options->text("solver");
    options->number("threads", 1, 1, 1024);
    options->number("seed", -1, -1, INT64_MAX);
    options->texts("stages");
    options->pairs("columns", "top", "column");
    options->object("schema");
    options->shapes("shapes");
    (void)options->done();
  }
  (void)RowSchema::parse(bytes);
}
