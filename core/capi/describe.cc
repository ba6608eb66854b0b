// SPDX-License-Identifier: Apache-2.0
// Checking a solver and net without running them.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/capi/boundary.h"
#include "core/capi/options.h"
#include "core/capi/predictions.h"
#include "core/device/precision.h"
#include "core/graph/graph.h"
#include "core/layers/registry.h"
#include "core/plan/lower.h"
#include "core/solver/lr_policy.h"
#include "core/solver/update_rule.h"
#include "core/sync/sync.h"
#include "core/train/immediate_update.h"
#include "core/train/label_range.h"
#include "core/train/memory_estimate.h"
#include "core/train/nets.h"
#include "core/train/rows_net.h"

namespace cafetiere::capi {
namespace {

using nlohmann::json;

/// What a solver means for a net's work.
struct Solving {
  int history = 0;         ///< values that its rule keeps for a weight
  bool immediate = false;  ///< whether a rank alone steps each parameter within backward
  std::string precision;
  caffe::SyncParameter sync;
  int shards = 1;  ///< of the rank
};

/// Memory as estimated for a rank among others, and for one alone; operations and bytes of a pass over a
/// batch.
Result<json> predicted_work(const Graph& graph, const Solving& solving) {
  const bool train = graph.phase() == caffe::TRAIN;
  CFT_ASSIGN(const Precision precision, precision_of(solving.precision));
  const auto device = make_cpu_device(precision);
  CFT_ASSIGN(const PlanOutline plan,
             PlanOutline::make(graph, *device, {.backward = train, .outputs = {}}));
  double forward = 0, backward = 0;
  int64_t bytes = 0;
  for (const StepInfo& step : plan.steps) {
    (step.backward ? backward : forward) += step.flops;
    bytes += step.bytes;
  }
  int64_t memory = estimate_scoring(graph, plan).total(), alone = memory;
  if (train) {
    const int64_t rank = estimate_training(graph, plan, solving.history).total();
    const auto mode = [&](bool is_alone) {
      return sync_bytes(graph, solving.sync, solving.history, solving.shards, is_alone);
    };
    memory = rank + mode(false);
    alone = rank + mode(true);
  }
  if (train && solving.immediate) {
    const PlanOptions options{.backward = true, .outputs = {}, .updates = true};
    CFT_ASSIGN(const PlanOutline own, PlanOutline::make(graph, *device, options));
    alone = estimate_training(graph, own, solving.history).total();
  }
  return json{{"memory_bytes", memory},
              {"memory_alone_bytes", alone},
              {"flops_forward", forward},
              {"flops_backward", backward},
              {"pass_bytes", bytes}};
}

json solver_json(const caffe::SolverParameter& p) {
  return {{"type", p.type()},
          {"base_lr", p.base_lr()},
          {"lr_policy", p.lr_policy()},
          {"max_iter", p.max_iter()},
          {"test_interval", p.test_interval()},
          {"test_iter", std::vector<int>(p.test_iter().begin(), p.test_iter().end())},
          {"snapshot", p.snapshot()},
          {"snapshot_prefix", p.snapshot_prefix()},
          {"snapshot_format", caffe::SolverParameter::SnapshotFormat_Name(p.snapshot_format())},
          {"iter_size", p.iter_size()},
          {"random_seed", p.random_seed()},
          {"display", p.display()},
          {"sync", p.sync().mode()},
          {"sync_period", p.sync().period()},
          {"has_test_nets", has_test_nets(p)},
          {"has_test_state", p.test_state_size() > 0},
          {"solver_mode",  // Caffe's default is GPU, but its tools use one only where it is written
           p.has_solver_mode() && p.solver_mode() == caffe::SolverParameter::GPU ? "GPU" : "CPU"}};
}

/// The net with the level and the stages that the solver adds to its own: the same layers for a
/// predictor, which knows no solver.
caffe::NetParameter with_state(const NetChoice& choice) {
  caffe::NetParameter net = choice.net.param;
  const caffe::NetState &own = net.state(), &used = choice.state;
  if (own.level() == used.level() && own.stage_size() == used.stage_size()) return net;
  net.mutable_state()->set_level(used.level());
  *net.mutable_state()->mutable_stage() = used.stage();
  return net;
}

const char* role_name(TopRole role) {
  switch (role) {
    case TopRole::kFeatures:
      return "features";
    case TopRole::kLabel:
      return "label";
    case TopRole::kOther:
      break;
  }
  return "";
}

/// A top of a data layer.
Result<json> top_json(const Graph& graph, const Node& node, size_t i,
                      const std::vector<Shape>& shapes, TopRole role) {
  const Shape& shape = shapes[size_t(node.tops[i])];
  const LabelRange labels = label_range(graph, shapes, node.tops[i]);
  json top{{"name", node.param.top(int(i))},
           {"layer", node.param.name()},
           {"role", role_name(role)},
           {"shape", shape.dims()},
           {"classes", labels.classes}};
  if (labels.ignored) top["ignore_label"] = *labels.ignored;
  RowsInput input;
  if (node.type->rows_input) {
    CFT_TRY(node.type->rows_input(node.param, int(i), &input).with_context(node.where));
    top["column"] = input.column;
  }
  if (input.table) {
    json& columns = top["columns"] = json::array();
    json& kinds = top["kinds"] = json::array();
    for (const auto& column : input.table->column()) {
      columns.push_back(column.name());
      kinds.push_back(caffe::TableDataParameter::Column::Kind_Name(column.kind()));
    }
    top["target"] = input.table->target();
    const auto& first = input.table->column(0);
    if (first.kind() == caffe::TableDataParameter::Column::CLASS) {
      top["values"] = std::vector<std::string>(first.value().begin(), first.value().end());
    }
  }
  const int batch_axis = input.transpose ? 1 : 0;
  if (shape.axes() > batch_axis) top["batch"] = shape[batch_axis];
  return top;
}

/// What a data layer names.
json layer_json(const Node& node) {
  const SourceTable table = node.type->table ? node.type->table(node.param) : SourceTable{};
  return json{{"name", node.param.name()},
              {"type", node.param.type()},
              {"source", table.source},
              {"dataframe_format", table.format},
              {"dataframe_column_select", table.columns},
              {"source_class", node.param.source_class()}};
}

/// The data layer with the features, beside it the others, and the tops of all in the net's order.
Result<json> data_json(const Graph& graph, const std::vector<Shape>& shapes,
                       const std::vector<SourceOfNet>& sources) {
  json data = json::object(), others = json::array(), tops = json::array();
  size_t next = 0;
  for (const Node& node : graph.nodes()) {
    if (!node.type->source) continue;
    const std::vector<TopRole>& roles = sources[next++].roles;
    for (size_t i = 0; i < node.tops.size(); ++i) {
      CFT_ASSIGN(json top, top_json(graph, node, i, shapes, roles[i]));
      tops.push_back(std::move(top));
    }
    const bool is_main = std::ranges::count(roles, TopRole::kFeatures) > 0;
    (is_main ? data : others.emplace_back()) = layer_json(node);
  }
  if (next > 0) data.update({{"tops", tops}, {"others", others}});
  return data;
}

Result<json> describe(const Graph& graph, const std::vector<SourceOfNet>& sources,
                      const Solving& solving) {
  CFT_ASSIGN(const std::vector<Shape> shapes, graph.infer(0));
  CFT_ASSIGN(json described, predicted_work(graph, solving));
  json blobs = json::array(), outputs = json::array();
  for (size_t i = 0; i < shapes.size(); ++i) {
    blobs.push_back({{"name", graph.blob_names()[i]}, {"shape", shapes[i].dims()}});
  }
  for (int blob : graph.outputs()) outputs.push_back(graph.written_name(blob));
  CFT_ASSIGN(const json data, data_json(graph, shapes, sources));
  const json tops = data.value("tops", json::array());
  const int64_t batch = tops.empty() ? 0 : tops[0].value("batch", int64_t{0});
  described.update({{"name", graph.name()},
                    {"batch_size", batch},
                    {"parameters", graph.parameter_count()},
                    {"data_layer", data},
                    {"outputs", outputs},
                    {"predictions", predictions(graph)},
                    {"blobs", blobs}});
  return described;
}

/// The layers that are fed from outside, with what those that read files say of them.
Result<json> sources_json(const NetChoice& net) {
  CFT_ASSIGN(const std::vector<SourceOfNet> layers, source_layers(net));
  json sources = json::array();
  for (const SourceOfNet& source : layers) {
    const caffe::LayerParameter& layer = source.layer;
    json one = {{"name", layer.name()},
                {"type", layer.type()},
                {"tops", std::vector<std::string>(layer.top().begin(), layer.top().end())},
                {"roles", json::array()},
                {"rows", source.rows}};
    for (TopRole role : source.roles) one["roles"].push_back(role_name(role));
    if (source.files) {
      one.update({{"source", source.files->source},
                  {"backend", source.files->backend},
                  {"root_folder", source.files->root_folder},
                  {"channels", source.files->channels},
                  {"height", source.files->height},
                  {"width", source.files->width}});
    }
    sources.push_back(std::move(one));
  }
  return json{{"sources", sources}};
}

/// {"data": {"shape": [1, 28, 28], "encoded": true}}, by top.
Result<RowForms> row_forms(const std::string& text) {
  const json given = json::parse(text, nullptr, false);
  RowForms forms;
  for (const auto& [top, form] : given.items()) {
    const json shape = form.is_object() ? form.value("shape", json()) : json();
    const bool good =
        shape.is_array() && shape.size() <= 31 && std::ranges::all_of(shape, [](const json& dim) {
          return dim.is_number_unsigned() && dim >= 1 && dim <= INT32_MAX;
        });
    if (!good) {
      return invalid_argument("option \"rows\" must give each top a \"shape\" of numbers above 0");
    }
    const auto encoded = form.find("encoded");
    forms[top] = {Shape(shape.get<std::vector<int64_t>>()),
                  encoded != form.end() && *encoded == true};
  }
  return forms;
}

/// The nets with layers that rows feed.
Status take_rows(const std::string& text, TrainingText* training) {
  CFT_ASSIGN(const RowForms forms, row_forms(text));
  if (training->has_net) return cafetiere::take_rows(forms, &training->net);
  return cafetiere::take_rows(forms, &training->solver);
}

}  // namespace
}  // namespace cafetiere::capi

int cft_describe(const char* options, char** out) {
  CFT_NOT_NULL(out);
  using namespace cafetiere;  // NOLINT: the whole body is the library's
  return capi::guarded([&]() -> Status {
    CFT_ASSIGN(capi::Options o, capi::Options::parse(options));
    const std::string given_phase = o.text("phase");
    const bool has_rows = o.has("rows");
    const std::string rows = o.object("rows");
    const bool sources = o.number("sources", 0, 0, 1) != 0;
    const int max_iter = int(o.number("max_iter", 0, 0, INT32_MAX));
    const int shards = int(o.number("rank_shards", 1, 1, 1 << 20));
    CFT_ASSIGN(capi::TrainingText training, capi::take_training(o));
    if (has_rows) CFT_TRY(capi::take_rows(rows, &training));
    const SolverText& solver = training.solver;
    const std::string phase =
        !given_phase.empty() ? given_phase : (training.has_solver ? "TRAIN" : "TEST");
    if (phase != "TRAIN" && phase != "TEST") {
      return invalid_argument("option \"phase\" must be TRAIN or TEST");
    }
    nlohmann::json extra;
    capi::Solving solving{
        .precision = solver.param.precision(), .sync = solver.param.sync(), .shards = shards};
    if (training.has_solver) {
      caffe::SolverParameter run = solver.param;
      if (max_iter > 0) run.set_max_iter(max_iter);
      CFT_TRY(LrPolicy::create(run).status());
      CFT_ASSIGN(const auto rule, make_update_rule(solver.param));
      solving.history = rule->history_per_param();
      solving.immediate = shards == 1 && ImmediateUpdate::suits(solver.param, *rule);
      extra = capi::solver_json(solver.param);
    }
    CFT_ASSIGN(const NetChoice choice, capi::chosen_net(training, phase));
    if (sources) {
      CFT_ASSIGN(const nlohmann::json json, capi::sources_json(choice));
      return capi::give_json(json, out);
    }
    CFT_ASSIGN(const Graph graph,
               Graph::build(choice.net, choice.state, {.types = layer_types(), .fed = {}}));
    CFT_ASSIGN(const std::vector<SourceOfNet> data, source_layers(choice));
    CFT_ASSIGN(nlohmann::json json, capi::describe(graph, data, solving));
    json["net_path"] = solver.param.net();
    if (has_rows && training.has_net) json["rows_net_text"] = to_text(training.net.param);
    json["net_text"] = to_text(phase == "TEST" ? capi::with_state(choice) : choice.net.param);
    if (!training.has_net) {
      CFT_ASSIGN(const caffe::SolverParameter whole, with_nets_inside(solver));
      json["solver_text"] = to_text(whole);
    }
    if (!extra.is_null()) json["solver"] = extra;
    return capi::give_json(json, out);
  });
}
