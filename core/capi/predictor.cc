// SPDX-License-Identifier: Apache-2.0
// The predictor's part of the C interface.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/capi/boundary.h"
#include "core/capi/handles.h"
#include "core/capi/options.h"
#include "core/capi/row_axes.h"
#include "core/graph/arena.h"
#include "core/layers/registry.h"
#include "core/model/weights.h"
#include "core/train/plan_set.h"

struct cft_predictor {
  cafetiere::Graph graph;
  cafetiere::RowSchema schema;
  std::optional<cafetiere::RowReader> reader;
  std::vector<std::string> outputs;
  std::vector<float> arena;
  std::unique_ptr<cafetiere::Device> device = cafetiere::make_cpu_device();
  std::unique_ptr<cafetiere::ThreadPool> pool;
  std::map<int64_t, std::unique_ptr<cafetiere::Plan>> plans;  // by rows
  int64_t batch = 0;
  std::vector<int> row_axes;  ///< along which the rows lie, of each output; -1: it is of all rows
  bool rows_alone = false;    ///< a row's outputs depend on no other row

  cafetiere::Result<cafetiere::Plan*> plan_for(int64_t rows) {
    auto& plan = plans[rows];
    if (!plan) {
      CFT_ASSIGN(plan, cafetiere::Plan::compile(
                           graph, *device, cafetiere::param_pointers(graph, arena.data(), nullptr),
                           {.batch = rows, .outputs = outputs}));
    }
    return plan.get();
  }
};

namespace cafetiere::capi {
namespace {

/// Floats a row of an output: those of one item, or all of a blob that is of all rows.
int64_t row_size(const Plan::Blob& blob, int axis, int64_t rows) {
  return axis < 0 ? blob.shape.count() : blob.shape.count() / rows;
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

/// What a net gives when nobody says what to compute: the blobs that only losses, scores and layers
/// without tops read.
std::vector<std::string> predictions(const Graph& graph) {
  std::vector<bool> used(graph.blob_names().size(), false);  // by more than losses and scores
  std::vector<std::string> names;
  for (size_t n = graph.nodes().size(); n-- > 0;) {
    const Node& node = graph.nodes()[n];
    const auto is_used = [&](int top) { return used[size_t(top)]; };
    const bool end = std::none_of(node.tops.begin(), node.tops.end(), is_used);
    if (node.type->loss || node.type->score || node.tops.empty()) continue;
    if (node.type->identity && end) continue;
    for (int bottom : node.bottoms) used[size_t(bottom)] = true;
    for (size_t i = 0; i < node.tops.size() && !node.type->source; ++i) {
      if (!is_used(node.tops[i])) names.push_back(graph.blob_names()[size_t(node.tops[i])]);
    }
  }
  std::reverse(names.begin(), names.end());
  return names;
}

/// Finds out along which axis the rows of each output lie, and whether they are alone.
Status find_rows(cft_predictor* p) {
  CFT_ASSIGN(const std::vector<Shape> shapes, p->graph.infer(p->batch));
  const std::vector<int> axes = row_axes(p->graph, p->batch, shapes);
  CFT_ASSIGN(const Plan* plan, p->plan_for(p->batch));  // which checks the outputs' names
  for (const Plan::Blob& blob : plan->outputs()) {
    const int axis = axes[size_t(p->graph.find_blob(blob.name))];
    if (axis >= 0 && blob.shape[axis] % p->batch) {
      return invalid_argument(
          fmt::format("output '{}' has shape {} for {} rows, which cannot be divided among the "
                      "rows: request another output",
                      blob.name, blob.shape.str(), p->batch));
    }
    p->row_axes.push_back(axis);
  }
  p->rows_alone = rows_are_apart(p->graph, shapes, axes, p->outputs);
  return {};
}

/// A tail runs as a full batch whose last rows nobody reads, where that is possible: kernels and
/// layouts go by the number of rows, and what a row gives must not depend on where it stands.
Status run_batch(cft_predictor* p, const RowTable& table, int64_t first, int64_t rows,
                 float* const* outputs) {
  const int64_t run_rows = p->rows_alone ? p->batch : rows;
  CFT_ASSIGN(Plan * plan, p->plan_for(run_rows));
  std::vector<float*> tops;
  for (const Plan::Blob& input : plan->inputs()) {
    tops.push_back(input.data);
    if (rows < run_rows) std::fill_n(input.data, input.shape.count(), 0.f);
  }
  std::vector<float> scratch;
  for (int64_t i = 0; i < rows; ++i) {
    CFT_TRY(p->reader->read(table.row(first + i), {0, 0, first + i}, tops, i, run_rows, scratch));
  }
  CFT_TRY(plan->run(*p->pool, {}));
  for (size_t o = 0; o < plan->outputs().size(); ++o) {
    const Plan::Blob& blob = plan->outputs()[o];
    const int64_t size = row_size(blob, p->row_axes[o], run_rows);
    for (int64_t i = 0; i < rows; ++i) {
      copy_row(blob, p->row_axes[o], run_rows, i, outputs[o] + (first + i) * size);
    }
  }
  return {};
}

Status run(cft_predictor* p, int64_t count, const void* chunk, uint64_t bytes,
           float* const* outputs) {
  CFT_ASSIGN(const auto encoded, given_bytes(chunk, bytes, "chunk"));
  if (std::ranges::count(std::span(outputs, p->row_axes.size()), nullptr) > 0) {
    return invalid_argument("one of the arrays of `outputs` is NULL");
  }
  RowTable table(p->schema);
  CFT_TRY(table.append(count, encoded));
  for (int64_t first = 0; first < count; first += p->batch) {
    CFT_TRY(run_batch(p, table, first, std::min(p->batch, count - first), outputs));
  }
  return {};
}

/// Whether the outputs of `count` rows fit.
Status check_room(const cft_predictor& p, int64_t count, const uint64_t* room, int32_t outputs) {
  const std::vector<Plan::Blob>& blobs = p.plans.at(p.batch)->outputs();
  if (outputs < 0 || size_t(outputs) != blobs.size()) {
    return invalid_argument(
        fmt::format("there is space for {} outputs, but there are {}", outputs, blobs.size()));
  }
  for (size_t o = 0; o < blobs.size(); ++o) {
    const auto size = uint64_t(row_size(blobs[o], p.row_axes[o], p.batch));
    if (count <= 0 || size == 0 || room[o] / size >= uint64_t(count)) continue;
    return invalid_argument(
        fmt::format("output '{}' has space for {} floats, but {} rows have {} each", blobs[o].name,
                    room[o], count, size));
  }
  return {};
}

Status create(const char* options, const void* model, uint64_t bytes, cft_predictor** out) {
  CFT_ASSIGN(Options o, Options::parse(options));
  auto p = std::make_unique<cft_predictor>();
  const std::string net_text = o.text("net"), schema = o.object("schema");
  const InputBindings inputs = o.pairs("inputs", "top", "column");
  p->outputs = o.texts("outputs");
  p->batch = o.number("batch", 0, 0, 1 << 20);
  p->pool = std::make_unique<ThreadPool>(int(o.number("threads", 1, 1, 1024)));
  CFT_TRY(o.done());
  CFT_ASSIGN(const NetText net, parse_net(net_text, "net"));
  caffe::NetState state;
  state.set_phase(caffe::TEST);
  state.MergeFrom(net.param.state());
  CFT_ASSIGN(p->graph, Graph::build(net, state, {.types = layer_types(), .fed = {}}));
  CFT_ASSIGN(p->schema, RowSchema::parse(schema));
  CFT_ASSIGN(FedLayer fed, bind_rows(p->graph, p->schema, inputs, true));
  for (RowsInput& input : fed.inputs) input.label_classes = 0;  // labels are not judged here
  CFT_ASSIGN(RowReader reader, RowReader::make(p->schema, fed.inputs, false, 0));
  p->reader = std::move(reader);
  if (p->batch == 0) p->batch = fed.batch;
  if (p->outputs.empty()) p->outputs = predictions(p->graph);
  p->arena.assign(size_t(p->graph.arena_size()), 0.f);
  CFT_ASSIGN(const auto given, given_bytes(model, bytes, "model"));
  CFT_ASSIGN(const caffe::NetParameter weights, parse_weights(given));
  CFT_TRY(load_weights(p->graph, weights, p->arena, nullptr));
  CFT_TRY(find_rows(p.get()));
  *out = p.release();
  return {};
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

int cft_predictor_describe(const cft_predictor* p, char** out) {
  CFT_NOT_NULL(p, out);
  return capi::guarded([&] {
    const cafetiere::Plan& plan = *p->plans.at(p->batch);
    nlohmann::json list = nlohmann::json::array();
    for (size_t o = 0; o < plan.outputs().size(); ++o) {
      const cafetiere::Plan::Blob& blob = plan.outputs()[o];
      std::vector<int64_t> dims = blob.shape.dims();
      const int axis = p->row_axes[o];
      if (axis >= 0 && dims[size_t(axis)] == p->batch) dims.erase(dims.begin() + axis);
      list.push_back(
          {{"name", blob.name}, {"shape", dims}, {"size", capi::row_size(blob, axis, p->batch)}});
    }
    return capi::give_text(nlohmann::json{{"outputs", list}}.dump(), out);
  });
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
    CFT_TRY(capi::check_room(*p, count, room, output_count));
    return capi::run(p, count, chunk, bytes, outputs);
  });
}

void cft_predictor_destroy(cft_predictor* p) { delete p; }
