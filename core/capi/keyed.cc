// SPDX-License-Identifier: Apache-2.0
// A net for each key of a table, through the C interface.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/capi/boundary.h"
#include "core/capi/options.h"
#include "core/capi/table_handle.h"
#include "core/model/prototxt.h"
#include "core/train/keyed_trainer.h"

struct cft_keyed {
  std::string net_options;
  int64_t least_rows = 1;
  std::unique_ptr<cft_table> empty;  ///< counts nothing; copied for each key
  std::unique_ptr<cafetiere::KeyedTrainer> trainer;
  cafetiere::RowTable rows;   ///< of the key under way
  cafetiere::Status failure;  ///< of the key under way
  /// What the last key has ended with.
  std::string net, classes;
  cafetiere::KeyedTrainer::Trained trained;
};

namespace cafetiere::capi {
namespace {

Result<cft_keyed*> make_keyed(const char* text) {
  CFT_ASSIGN(Options options, Options::parse(text));
  const std::string schema_text = options.object("schema");
  const nlohmann::json table{{"schema", nlohmann::json::parse(schema_text)},
                             {"columns", nlohmann::json::parse(options.list("columns"))}};
  std::string net_options = options.object("net");
  const int64_t least_rows = options.number("least_rows", 1, 1, INT64_MAX);
  KeyedTrainer::Options training;
  training.seed = uint64_t(options.number("seed", 1, 0, INT64_MAX));
  training.epochs = options.number("epochs", 0, 0, INT32_MAX);
  const std::string solver = options.text("solver");
  const int64_t max_iter = options.number("max_iter", 0, 0, INT32_MAX);
  CFT_TRY(options.done());
  CFT_ASSIGN(SolverText parsed, parse_solver(solver, "solver"));
  training.solver = std::move(parsed.param);
  if (max_iter > 0) training.solver.set_max_iter(int(max_iter));
  CFT_ASSIGN(auto trainer, KeyedTrainer::create(std::move(training)));
  CFT_ASSIGN(cft_table * made, make_table(table.dump().c_str()));
  std::unique_ptr<cft_table> empty(made);
  CFT_ASSIGN(RowSchema schema, RowSchema::parse(schema_text));
  return new cft_keyed{.net_options = std::move(net_options),
                       .least_rows = least_rows,
                       .empty = std::move(empty),
                       .trainer = std::move(trainer),
                       .rows = RowTable(std::move(schema)),
                       .failure = {},
                       .net = {},
                       .classes = {},
                       .trained = {}};
}

/// The classes of the label, which is the first target of a net for tables.
std::string classes_of(const caffe::NetParameter& net) {
  nlohmann::json classes = nlohmann::json::array();
  const auto& tops = net.layer(0).table_data_param().top();
  const auto& label =
      std::ranges::find_if(tops, &caffe::TableDataParameter::TableTop::target)->column(0);
  if (label.kind() == caffe::TableDataParameter::Column::CLASS) {
    for (const std::string& value : label.value()) classes.push_back(value);
  }
  return json_text(classes);
}

Status train(cft_keyed& keyed, RowTable&& rows) {
  if (rows.rows() < keyed.least_rows) {
    return invalid_argument(
        fmt::format("{} row(s), and a net needs {}", rows.rows(), keyed.least_rows));
  }
  cft_table table = *keyed.empty;
  CFT_TRY(table.statistics.add(rows));
  CFT_ASSIGN(const caffe::NetParameter net, net_of(table, keyed.net_options.c_str()));
  CFT_ASSIGN(keyed.trained, keyed.trainer->train(net, std::move(rows)));
  keyed.net = to_text(net);
  keyed.classes = classes_of(net);
  return {};
}

}  // namespace
}  // namespace cafetiere::capi

using cafetiere::RowTable;
using cafetiere::Status;
namespace capi = cafetiere::capi;

int cft_keyed_create(const char* options, cft_keyed** out) {
  CFT_NOT_NULL(options, out);
  return capi::guarded([&]() -> Status {
    CFT_ASSIGN(*out, capi::make_keyed(options));
    return {};
  });
}

int cft_keyed_add(cft_keyed* keyed, int64_t count, const void* chunk, uint64_t bytes) {
  CFT_NOT_NULL(keyed);
  return capi::guarded([&]() -> Status {
    CFT_TRY(keyed->failure);
    keyed->failure = cafetiere::guard([&]() -> Status {
      CFT_ASSIGN(const auto rows, capi::given_bytes(chunk, bytes, "chunk"));
      return keyed->rows.append(count, rows);
    });
    return keyed->failure;
  });
}

int cft_keyed_train(cft_keyed* keyed, cft_keyed_net* out) {
  CFT_NOT_NULL(keyed, out);
  return capi::guarded([&]() -> Status {
    RowTable rows = std::move(keyed->rows);
    CFT_TRY(std::exchange(keyed->failure, {}));
    CFT_TRY(capi::check_struct("cft_keyed_net", out, out->struct_size, sizeof *out, sizeof *out));
    CFT_TRY(capi::train(*keyed, std::move(rows)));
    out->rows = keyed->trained.rows;
    out->steps = keyed->trained.steps;
    out->loss = keyed->trained.loss;
    out->net = keyed->net.data();
    out->net_bytes = keyed->net.size();
    out->model = keyed->trained.model.data();
    out->model_bytes = keyed->trained.model.size();
    out->classes = keyed->classes.c_str();
    return {};
  });
}

int cft_keyed_drop(cft_keyed* keyed) {
  CFT_NOT_NULL(keyed);
  return capi::guarded([&]() -> Status {
    const RowTable dropped = std::move(keyed->rows);
    keyed->failure = {};
    return {};
  });
}

void cft_keyed_cancel(cft_keyed* keyed) {
  if (keyed) keyed->trainer->cancel();
}

void cft_keyed_destroy(cft_keyed* keyed) { delete keyed; }
