// SPDX-License-Identifier: Apache-2.0
// Which rows a net can take.
#include <algorithm>

#include "core/capi/boundary.h"
#include "core/capi/handles.h"
#include "core/capi/options.h"
#include "core/data/row_reader.h"
#include "core/layers/registry.h"

struct cft_row_check {
  cafetiere::RowSchema schema;
  cafetiere::RowReader reader;
};

namespace cafetiere::capi {
namespace {

Result<cft_row_check> make_row_check(const char* options) {
  CFT_ASSIGN(Options o, Options::parse(options));
  const std::string phase = o.text("phase", "TRAIN"), schema_text = o.object("schema");
  const InputBindings inputs = take_inputs(o);
  CFT_ASSIGN(const TrainingText training, take_training(o));
  CFT_ASSIGN(const NetChoice choice, chosen_net(training, phase));
  CFT_ASSIGN(const Graph graph,
             Graph::build(choice.net, choice.state, {.types = layer_types(), .fed = {}}));
  CFT_ASSIGN(RowSchema schema, RowSchema::parse(schema_text));
  CFT_ASSIGN(FedTops fed, bind_rows(graph, schema, inputs, /*optional=*/true));
  for (RowsInput& input : fed.inputs) {
    if (input.transform) input.transform->clear_mean_file();
  }
  CFT_ASSIGN(RowReader reader, RowReader::make(schema, fed.inputs, phase == "TRAIN", 0));
  return cft_row_check{std::move(schema), std::move(reader)};
}

Status check_rows(const cft_row_check& check, int64_t count, std::span<const std::byte> chunk,
                  uint8_t* good, std::string* why) {
  RowTable table(check.schema);
  CFT_TRY(table.append(count, chunk));
  for (int64_t row = 0; row < count; ++row) {
    const Status status = check.reader.check_form(table.row(row));
    if (status.code() == ErrorCode::kOutOfMemory) return status;
    if (!status.ok() && why->empty()) *why = status.message();
    good[row] = status.ok() ? 1 : 0;
  }
  return {};
}

}  // namespace
}  // namespace cafetiere::capi

using cafetiere::Status;
namespace capi = cafetiere::capi;

int cft_row_check_create(const char* options, cft_row_check** out) {
  CFT_NOT_NULL(out);
  return capi::guarded([&]() -> Status {
    CFT_ASSIGN(cft_row_check made, capi::make_row_check(options));
    *out = new cft_row_check(std::move(made));
    return {};
  });
}

int cft_row_check_run(cft_row_check* check, int64_t count, const void* chunk, uint64_t bytes,
                      uint8_t* good, char** why) {
  CFT_NOT_NULL(check, good, why);
  return capi::guarded([&]() -> Status {
    CFT_ASSIGN(const auto given, capi::given_bytes(chunk, bytes, "chunk"));
    std::string first;
    CFT_TRY(capi::check_rows(*check, count, given, good, &first));
    return capi::give_text(first, why);
  });
}

void cft_row_check_destroy(cft_row_check* check) { delete check; }
