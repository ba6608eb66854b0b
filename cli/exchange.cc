// SPDX-License-Identifier: Apache-2.0
// export_onnx, import_onnx and convert_weights: nets and weights in the forms of other programs.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/data_shapes.h"
#include "cli/flags.h"
#include "cli/glog.h"
#include "core/layers/registry.h"
#include "core/model/file.h"
#include "core/model/safetensors.h"
#include "core/model/weights.h"
#include "core/onnx/deploy.h"
#include "core/onnx/export.h"
#include "core/onnx/import.h"
#include "core/train/feeds.h"

namespace cafetiere {
namespace {

Result<caffe::NetParameter> read_any_weights(const std::string& path) {
  if (!is_safetensors_path(path)) return read_weights(path);
  CFT_ASSIGN(const std::string bytes, read_file(path));
  Result<caffe::NetParameter> weights = parse_safetensors(bytes);
  if (!weights.ok()) return weights.status().with_context(path);
  return weights;
}

Status write_any_weights(const caffe::NetParameter& net, const std::string& path) {
  if (!is_safetensors_path(path)) return write_weights(net, path, format_of_path(path));
  CFT_ASSIGN(const std::string bytes, serialize_safetensors(net));
  return write_file(path, bytes);
}

struct ExportFlags {
  std::string model, weights, output;
  std::vector<std::string> shapes;
  StateFlags state;
};

/// The shapes of data layers' tops: given, or found in what the layers name.
Result<Graph> open_graph(const NetText& net, const caffe::NetState& state, const Logger& log) {
  Result<NetFeeds> feeds = open_feeds({net, state, ""}, 1, log);
  if (!feeds.ok()) {
    return invalid_argument(
        feeds.status().message() +
        "\nTo export without the data, give the shape of its top: --shape data=1x3x227x227");
  }
  return Graph::build(net, state, {.types = layer_types(), .fed = feeds->shapes});
}

caffe::NetState state_of(const NetText& net, const ExportFlags& flags) {
  caffe::NetState state = net.param.state();
  state.set_phase(caffe::TEST);
  flags.state.apply(&state);
  return state;
}

/// The deploy form of the net that the flags name.
Result<DeployForm> deploy_net(const ExportFlags& flags, const Logger& log) {
  CFT_ASSIGN(const NetText all, read_net(flags.model));
  for (const std::string& note : all.notes) log.info("{}", note);
  std::map<std::string, Shape> shapes;
  for (const std::string& text : flags.shapes) {
    CFT_ASSIGN(auto named, parse_shape(text));
    shapes.insert(std::move(named));
  }
  const caffe::NetState state = state_of(all, flags);
  const auto build = [&](const NetText& net) { return open_graph(net, state, log); };
  CFT_ASSIGN(DeployForm form, deploy_form(all, state, shapes, build));
  for (const std::string& note : form.notes) log.info("{}", note);
  return form;
}

Status run_export(const ExportFlags& flags, const Logger& log) {
  CFT_ASSIGN(const DeployForm form, deploy_net(flags, log));
  CFT_ASSIGN(const Graph graph, Graph::build(form.net, state_of(form.net, flags),
                                             {.types = layer_types(), .fed = {}}));
  CFT_ASSIGN(const caffe::NetParameter from, read_any_weights(flags.weights));
  std::vector<std::string> ignored;
  const Result<std::string> bytes = export_onnx(graph, from, &ignored, {form.classes, {}});
  if (!bytes.ok()) return bytes.status().with_context(flags.weights);
  for (const std::string& layer : ignored) log.info("Ignoring source layer {}", layer);
  CFT_TRY(write_file(flags.output, *bytes));
  log.info("Wrote {}", flags.output);
  return {};
}

Status run_import(const std::string& input, const std::string& model, const std::string& weights,
                  int64_t batch, const Logger& log) {
  CFT_ASSIGN(const std::string bytes, read_file(input));
  Result<caffe::NetParameter> net = import_onnx(bytes, batch);
  if (!net.ok()) return net.status().with_context(input);
  CFT_TRY(write_file(model, to_text(structure_of(*net))));
  CFT_TRY(write_any_weights(*net, weights));
  log.info("Wrote {} layers to {} and {}", net->layer_size(), model, weights);
  return {};
}

}  // namespace

Action add_export_onnx(CLI::App& app) {
  const auto flags = std::make_shared<ExportFlags>();
  app.add_option("--model", flags->model, "prototxt of the training net or of its deploy form")
      ->required();
  app.add_option("--weights", flags->weights,
                 "weights: .caffemodel, .caffemodel.h5 or .safetensors")
      ->required();
  add_shape_option(app, &flags->shapes,
                   "NAME=NxCxHxW: shape of an input, instead of the one that the net or its data "
                   "gives");
  flags->state.add(app);
  app.add_option("OUTPUT", flags->output, "the .onnx file to write")->required();
  return [flags]() -> Status {
    Glog glog(stderr);
    return run_export(*flags, glog.logger());
  };
}

Action add_import_onnx(CLI::App& app) {
  struct Flags {
    std::string input, model, weights;
    int64_t batch = 1;
  };
  const auto flags = std::make_shared<Flags>();
  app.add_option("INPUT", flags->input, "the .onnx file")->required();
  app.add_option("MODEL", flags->model, "the prototxt to write")->required();
  app.add_option("WEIGHTS", flags->weights,
                 "weights file to write; the extension selects the format")
      ->required();
  app.add_option("--batch", flags->batch, "batch size, if the file does not fix it (default 1)")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20));
  return [flags]() -> Status {
    Glog glog(stderr);
    return run_import(flags->input, flags->model, flags->weights, flags->batch, glog.logger());
  };
}

Action add_convert_weights(CLI::App& app) {
  struct Flags {
    std::string input, output;
  };
  const auto flags = std::make_shared<Flags>();
  app.add_option("INPUT", flags->input, "a .caffemodel, .caffemodel.h5 or .safetensors")
      ->required();
  app.add_option("OUTPUT", flags->output, "file to write; the extension selects the format")
      ->required();
  return [flags]() -> Status {
    CFT_ASSIGN(const caffe::NetParameter net, read_any_weights(flags->input));
    return write_any_weights(net, flags->output);
  };
}

}  // namespace cafetiere
