// export_onnx, import_onnx and convert_weights: nets and weights in the forms of other programs.
#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/glog.h"
#include "core/graph/arena.h"
#include "core/layers/registry.h"
#include "core/model/file.h"
#include "core/model/safetensors.h"
#include "core/model/weights.h"
#include "core/onnx/export.h"
#include "core/onnx/import.h"

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

Status run_export(const std::string& model, const std::string& weights, const std::string& output,
                  const Logger& log) {
  CFT_ASSIGN(const NetText net, read_net(model));
  caffe::NetState state = net.param.state();
  state.set_phase(caffe::TEST);
  CFT_ASSIGN(const Graph graph, Graph::build(net, state, {.types = layer_types()}));
  CFT_ASSIGN(const caffe::NetParameter from, read_any_weights(weights));
  std::vector<float> arena(size_t(graph.arena_size()));
  std::vector<std::string> ignored;
  CFT_TRY(load_weights(graph, from, arena, &ignored).with_context(weights));
  for (const std::string& layer : ignored) log.info("Ignoring source layer {}", layer);
  CFT_ASSIGN(const std::string bytes, export_onnx(graph, arena));
  CFT_TRY(write_file(output, bytes));
  log.info("Wrote {}", output);
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
  struct Flags {
    std::string model, weights, output;
  };
  const auto flags = std::make_shared<Flags>();
  app.add_option("--model", flags->model, "the net's deploy form")->required();
  app.add_option("--weights", flags->weights, "its .caffemodel, .caffemodel.h5 or .safetensors")
      ->required();
  app.add_option("OUTPUT", flags->output, "the .onnx file to write")->required();
  return [flags]() -> Status {
    Glog glog(stderr);
    return run_export(flags->model, flags->weights, flags->output, glog.logger());
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
  app.add_option("WEIGHTS", flags->weights, "the weights to write, in the form its name says")
      ->required();
  app.add_option("--batch", flags->batch,
                 "the batch size, where the file leaves it open (default 1)")
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
  app.add_option("OUTPUT", flags->output, "the file to write, in the form its name says")
      ->required();
  return [flags]() -> Status {
    CFT_ASSIGN(const caffe::NetParameter net, read_any_weights(flags->input));
    return write_any_weights(net, flags->output);
  };
}

}  // namespace cafetiere
