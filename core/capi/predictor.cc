// SPDX-License-Identifier: Apache-2.0
// The predictor's part of the C interface.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/capi/boundary.h"
#include "core/capi/handles.h"
#include "core/capi/options.h"
#include "core/capi/predictions.h"
#include "core/capi/row_axes.h"
#include "core/data/row_table.h"
#include "core/device/precision.h"
#include "core/graph/arena.h"
#include "core/layers/registry.h"
#include "core/model/weights.h"
#include "core/train/plan_set.h"
#include "core/train/rows_net.h"

namespace cafetiere::capi {

/// A net with its weights and what is known of its outputs. Predictors share it and none changes it.
struct PredictedNet {
  Graph graph;
  RowSchema schema;
  std::optional<RowReader> reader;
  std::vector<std::string> tops;  ///< that the reader fills
  std::vector<std::string> outputs;
  std::vector<float> arena;
  int threads = 1;
  Precision precision = Precision::kFloat32;
  int64_t batch = 0;
  std::vector<int> row_axes;  ///< along which the rows lie, of each output; -1: it is of all rows
  std::vector<Shape> shapes;  ///< of each output, for a batch
  /// What plans compute of the weights, by rows, for all predictors that share the net.
  std::map<int64_t, std::weak_ptr<FixedValues>> fixed;
  std::mutex fixed_mutex;
  bool rows_alone = false;  ///< a row's outputs depend on no other row
};

/// The values that plans of so many rows share.
inline std::shared_ptr<FixedValues> fixed_values(PredictedNet& net, int64_t rows) {
  const std::lock_guard lock(net.fixed_mutex);
  std::shared_ptr<FixedValues> values = net.fixed[rows].lock();
  if (!values) net.fixed[rows] = values = std::make_shared<FixedValues>();
  return values;
}

/// A plan, and whether it ran since the predictor was made or reset.
struct PredictorPlan {
  std::unique_ptr<Plan> plan;
  std::vector<float*> tops;  ///< for the reader; null of those that nothing is computed from
  bool begun = false;
};

}  // namespace cafetiere::capi

struct cft_predictor {
  explicit cft_predictor(std::shared_ptr<cafetiere::capi::PredictedNet> of)
      : net(std::move(of)),
        device(cafetiere::make_cpu_device(net->precision)),
        pool(net->threads) {}

  std::shared_ptr<cafetiere::capi::PredictedNet> net;
  std::unique_ptr<cafetiere::Device> device;
  cafetiere::ThreadPool pool;
  std::map<int64_t, cafetiere::capi::PredictorPlan> plans;  // by rows
  int64_t tail = 0;  ///< rows of the last batch that was not full
  std::vector<float> scratch;
  std::vector<std::byte> row;                    ///< encoded, of floats
  std::vector<std::span<const std::byte>> rows;  ///< of the caller's chunk

  cafetiere::Result<cafetiere::capi::PredictorPlan*> plan_for(int64_t rows) {
    auto& of_rows = plans[rows];
    if (!of_rows.plan) {
      const auto params = cafetiere::param_pointers(net->graph, net->arena.data(), nullptr);
      CFT_ASSIGN(of_rows.plan,
                 cafetiere::Plan::compile(
                     net->graph, *device, params,
                     {.batch = rows, .outputs = net->outputs, .fixed = fixed_values(*net, rows)}));
      of_rows.tops = cafetiere::tops_of(*of_rows.plan, net->tops);
    }
    if (rows != net->batch) tail = rows;
    return &of_rows;
  }

  /// The next run of each plan is like a first one. Plans of other tails than the last go, so that a
  /// predictor that is used again and again does not grow.
  void reset() {
    std::erase_if(plans, [this](const auto& entry) {
      return entry.first != net->batch && entry.first != tail;
    });
    for (auto& [rows, plan] : plans) plan.begun = false;
  }
};

namespace cafetiere::capi {
namespace {

/// Floats a row of an output: those of one item, or all of a blob that is of all rows.
int64_t row_size(const Shape& shape, int axis, int64_t rows) {
  return axis < 0 ? shape.count() : shape.count() / rows;
}

/// One row of an output of `rows` rows.
void copy_row(const Plan::Blob& blob, int axis, int64_t rows, int64_t row, float* to) {
  if (axis < 0) {
    std::copy_n(blob.data, blob.shape.count(), to);
    return;
  }
  const int64_t size = blob.shape.count(axis) / rows;
  for (const float* from = blob.data + row * size; from < blob.data + blob.shape.count();
       from += rows * size) {
    to = std::copy_n(from, size, to);
  }
}

/// Finds out the outputs' shapes, along which axis the rows of each lie, and whether they are alone.
Status find_rows(PredictedNet* net, const Plan& plan) {
  CFT_ASSIGN(const std::vector<Shape> shapes, net->graph.infer(net->batch));
  const std::vector<int> axes = row_axes(net->graph, net->batch, shapes);
  for (const Plan::Blob& blob : plan.outputs()) {
    const int axis = axes[size_t(net->graph.find_blob(blob.name))];
    if (axis >= 0 && blob.shape[axis] % net->batch) {
      return invalid_argument(
          fmt::format("output '{}' has shape {} for {} rows, which cannot be divided among the "
                      "rows: request another output",
                      blob.name, blob.shape.str(), net->batch));
    }
    net->row_axes.push_back(axis);
    net->shapes.push_back(blob.shape);
  }
  net->rows_alone = rows_are_apart(net->graph, shapes, axes, net->outputs);
  return {};
}

constexpr RowPosition kAnywhere;

/// A tail runs as a full batch whose last rows nobody reads, where that is possible: kernels and
/// layouts go by the number of rows, and what a row gives must not depend on where it stands.
/// Nor do random choices: images are not mirrored, and all draw the same size, if any.
/// `row`(i) gives the encoded bytes of row i, which may end with the next call.
template <class Row>
Status run_batch(cft_predictor* p, const Row& row, int64_t first, int64_t rows,
                 float* const* outputs) {
  const PredictedNet& net = *p->net;
  const int64_t run_rows = net.rows_alone ? net.batch : rows;
  CFT_ASSIGN(PredictorPlan * of_rows, p->plan_for(run_rows));
  Plan& plan = *of_rows->plan;
  for (const Plan::Blob& input : plan.inputs()) {
    if (rows < run_rows) std::fill_n(input.data, input.shape.count(), 0.f);
  }
  for (int64_t i = first; i < first + rows; ++i) {
    CFT_TRY(net.reader->read(row(i), kAnywhere, of_rows->tops, i - first, run_rows, p->scratch));
  }
  CFT_TRY(plan.run(p->pool, {.begins = !std::exchange(of_rows->begun, true)}));
  for (size_t o = 0; o < plan.outputs().size(); ++o) {
    const Plan::Blob& blob = plan.outputs()[o];
    const int64_t size = row_size(blob.shape, net.row_axes[o], run_rows);
    for (int64_t i = 0; i < rows; ++i) {
      copy_row(blob, net.row_axes[o], run_rows, i, outputs[o] + (first + i) * size);
    }
  }
  return {};
}

template <class Row>
Status run_rows(cft_predictor* p, int64_t count, const Row& row, float* const* outputs) {
  const auto arrays = std::span(outputs, p->net->row_axes.size());
  if (count > 0 && std::ranges::count(arrays, nullptr) > 0) {
    return invalid_argument("one of the arrays of `outputs` is NULL");
  }
  const int64_t batch = p->net->batch;
  for (int64_t first = 0; first < count; first += batch) {
    CFT_TRY(run_batch(p, row, first, std::min(batch, count - first), outputs));
  }
  return {};
}

Status run(cft_predictor* p, int64_t count, const void* chunk, uint64_t bytes,
           float* const* outputs) {
  CFT_ASSIGN(const auto encoded, given_bytes(chunk, bytes, "chunk"));
  p->rows.clear();
  const auto keep = [p](std::span<const std::byte> row, auto) { p->rows.push_back(row); };
  CFT_TRY(for_each_row(p->net->schema, count, encoded, keep));
  return run_rows(
      p, count, [p](int64_t i) { return p->rows[size_t(i)]; }, outputs);
}

/// The floats a row of each column, after a check that they can be the schema's.
Status check_floats(const PredictedNet& net, int64_t count, const float* const* columns,
                    const uint64_t* floats, int32_t column_count) {
  if (count < 0) return invalid_argument(fmt::format("there cannot be {} rows", count));
  if (column_count < 0 || size_t(column_count) != net.schema.columns.size()) {
    return invalid_argument(fmt::format("{} columns are given, but the schema has {}", column_count,
                                        net.schema.columns.size()));
  }
  for (size_t c = 0; c < net.schema.columns.size(); ++c) {
    const Column& column = net.schema.columns[c];
    if (column.type != ColumnType::kF32) {
      return invalid_argument(
          fmt::format("column '{}' is of type {}: only columns of type f32 can be given as floats",
                      column.name, column_type_name(column.type)));
    }
    if (floats[c] > UINT32_MAX / sizeof(float)) {
      return invalid_argument(
          fmt::format("column '{}' cannot have {} floats a row", column.name, floats[c]));
    }
    if (!columns[c] && count > 0 && floats[c] > 0) {
      return invalid_argument(fmt::format("the floats of column '{}' are NULL", column.name));
    }
  }
  return {};
}

/// Each row is encoded when it is read, into memory that stays in the cache.
Status run_floats(cft_predictor* p, int64_t count, std::span<const float* const> columns,
                  const uint64_t* floats, float* const* outputs) {
  size_t bytes = 0;
  for (size_t c = 0; c < columns.size(); ++c) bytes += sizeof(uint32_t) + floats[c] * sizeof(float);
  p->row.resize(bytes);
  const auto row = [&](int64_t i) {
    std::byte* to = p->row.data();
    for (size_t c = 0; c < columns.size(); ++c) {
      const auto size = uint32_t(floats[c] * sizeof(float));
      std::memcpy(to, &size, sizeof size);
      if (size > 0) std::memcpy(to + sizeof size, columns[c] + uint64_t(i) * floats[c], size);
      to += sizeof size + size;
    }
    return std::span<const std::byte>(p->row);
  };
  return run_rows(p, count, row, outputs);
}

/// Whether the outputs of `count` rows fit.
Status check_room(const PredictedNet& net, int64_t count, const uint64_t* room, int32_t outputs) {
  if (outputs < 0 || size_t(outputs) != net.outputs.size()) {
    return invalid_argument(fmt::format("there is space for {} outputs, but there are {}", outputs,
                                        net.outputs.size()));
  }
  for (size_t o = 0; o < net.outputs.size(); ++o) {
    const auto size = uint64_t(row_size(net.shapes[o], net.row_axes[o], net.batch));
    if (count <= 0 || size == 0 || room[o] / size >= uint64_t(count)) continue;
    return invalid_argument(
        fmt::format("output '{}' has space for {} floats, but {} rows have {} each", net.outputs[o],
                    room[o], count, size));
  }
  return {};
}

Result<StoredWeights> given_weights(const std::string& path, const void* model, uint64_t bytes) {
  if (!path.empty()) return StoredWeights::open(path);
  CFT_ASSIGN(const auto given, given_bytes(model, bytes, "model"));
  CFT_ASSIGN(caffe::NetParameter weights, parse_weights(given));
  return StoredWeights(std::move(weights));
}

Status create(const char* options, const void* model, uint64_t bytes, cft_predictor** out) {
  CFT_ASSIGN(Options o, Options::parse(options));
  auto made = std::make_shared<PredictedNet>();
  const std::string net_text = o.text("net"), schema = o.object("schema");
  const std::string path = o.text("weights");
  InputBindings inputs = take_inputs(o);
  made->outputs = o.texts("outputs");
  made->batch = o.number("batch", 0, 0, 1 << 20);
  made->threads = int(o.number("threads", 1, 1, 1024));
  const std::string precision = o.text("precision", "float32");
  CFT_ASSIGN(made->precision, precision_of(precision));
  if (precision == "bf16x6" || precision == "auto_float32") {
    return invalid_argument(
        fmt::format("precision '{}' is for training: the scores of a row would depend on the "
                    "number of rows; use float32, bf16 or auto",
                    precision));
  }
  CFT_TRY(o.done());
  CFT_ASSIGN(const NetText net, parse_net(net_text, "net"));
  caffe::NetState state;
  state.set_phase(caffe::TEST);
  state.MergeFrom(net.param.state());
  CFT_ASSIGN(made->graph, Graph::build(net, state, {.types = layer_types(), .fed = {}}));
  if (schema == "{}") {
    CFT_ASSIGN(const std::string top, features_top({net, state, ""}));
    made->schema.columns = {{top, ColumnType::kF32}};  // one column of floats
    inputs.columns = {{top, top}};
  } else {
    CFT_ASSIGN(made->schema, RowSchema::parse(schema));
  }
  CFT_ASSIGN(FedTops fed, bind_rows(made->graph, made->schema, inputs, true));
  for (RowsInput& input : fed.inputs) {
    input.label_classes = 0;  // labels are not judged here
    if (input.transform) input.transform->set_mirror(false);
  }
  CFT_ASSIGN(RowReader reader, RowReader::make(made->schema, fed.inputs, false, 0));
  made->reader = std::move(reader);
  made->tops = fed.names();
  if (made->batch == 0) made->batch = fed.batch;
  if (made->outputs.empty()) made->outputs = predictions(made->graph);
  made->arena.assign(size_t(made->graph.arena_size()), 0.f);
  CFT_ASSIGN(const StoredWeights weights, given_weights(path, model, bytes));
  CFT_TRY(load_weights(made->graph, weights, made->arena, nullptr));
  auto p = std::make_unique<cft_predictor>(made);
  CFT_ASSIGN(const PredictorPlan* full, p->plan_for(made->batch));  // checks the outputs' names
  std::vector<int> blobs;
  for (const std::string& output : made->outputs) blobs.push_back(made->graph.find_blob(output));
  CFT_TRY(check_complete(made->graph, weights.net(), blobs));
  CFT_TRY(find_rows(made.get(), *full->plan));
  *out = p.release();
  return {};
}

std::string describe(const PredictedNet& net) {
  nlohmann::json list = nlohmann::json::array();
  for (size_t o = 0; o < net.outputs.size(); ++o) {
    const int axis = net.row_axes[o];
    std::vector<int64_t> dims = net.shapes[o].dims();
    if (axis >= 0) {
      dims[size_t(axis)] /= net.batch;  // find_rows() has checked that it can be divided
      if (dims[size_t(axis)] == 1) dims.erase(dims.begin() + axis);
    }
    list.push_back({{"name", net.outputs[o]},
                    {"shape", dims},
                    {"size", row_size(net.shapes[o], axis, net.batch)}});
  }
  return json_text({{"outputs", list}, {"batch", net.batch}});
}

}  // namespace
}  // namespace cafetiere::capi

using cafetiere::Status;
namespace capi = cafetiere::capi;

int cft_predictor_create(const char* options, const void* model, uint64_t model_bytes,
                         cft_predictor** out) {
  CFT_NOT_NULL(out);
  return capi::guarded([&] { return capi::create(options, model, model_bytes, out); });
}

int cft_predictor_share(const cft_predictor* p, cft_predictor** out) {
  CFT_NOT_NULL(p, out);
  return capi::guarded([&]() -> Status {
    *out = std::make_unique<cft_predictor>(p->net).release();
    return {};
  });
}

int cft_predictor_reset(cft_predictor* p) {
  CFT_NOT_NULL(p);
  return capi::guarded([&]() -> Status {
    p->reset();
    return {};
  });
}

int cft_predictor_describe(const cft_predictor* p, char** out) {
  CFT_NOT_NULL(p, out);
  return capi::guarded([&] { return capi::give_text(capi::describe(*p->net), out); });
}

int cft_predictor_run(cft_predictor* p, int64_t count, const void* chunk, uint64_t bytes,
                      float* const* outputs) {
  CFT_NOT_NULL(p, outputs);
  return capi::guarded([&] { return capi::run(p, count, chunk, bytes, outputs); });
}

int cft_predictor_fill(cft_predictor* p, int64_t count, const void* chunk, uint64_t bytes,
                       float* const* outputs, const uint64_t* room, int32_t output_count) {
  CFT_NOT_NULL(p, outputs, room);
  return capi::guarded([&]() -> Status {
    CFT_TRY(capi::check_room(*p->net, count, room, output_count));
    return capi::run(p, count, chunk, bytes, outputs);
  });
}

int cft_predictor_floats(cft_predictor* p, int64_t count, const float* const* columns,
                         const uint64_t* floats, int32_t column_count, float* const* outputs,
                         const uint64_t* room, int32_t output_count) {
  CFT_NOT_NULL(p, columns, floats, outputs, room);
  return capi::guarded([&]() -> Status {
    CFT_TRY(capi::check_floats(*p->net, count, columns, floats, column_count));
    CFT_TRY(capi::check_room(*p->net, count, room, output_count));
    return capi::run_floats(p, count, {columns, size_t(column_count)}, floats, outputs);
  });
}

int cft_predictor_row_size(const cft_predictor* p, int32_t output, int64_t* out) {
  CFT_NOT_NULL(p, out);
  return capi::guarded([&]() -> Status {
    const capi::PredictedNet& net = *p->net;
    if (output < 0 || size_t(output) >= net.outputs.size()) {
      return {cafetiere::ErrorCode::kNotFound,
              fmt::format("there is no output {}: there are {}", output, net.outputs.size())};
    }
    *out = capi::row_size(net.shapes[size_t(output)], net.row_axes[size_t(output)], net.batch);
    return {};
  });
}

void cft_predictor_destroy(cft_predictor* p) { delete p; }
