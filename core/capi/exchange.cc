// SPDX-License-Identifier: Apache-2.0
// Nets, weights and states in other forms: HDF5, ONNX and safetensors.
#include <map>
#include <nlohmann/json.hpp>

#include "core/capi/boundary.h"
#include "core/capi/options.h"
#include "core/layers/registry.h"
#include "core/model/safetensors.h"
#include "core/model/solver_state.h"
#include "core/model/weights.h"
#include "core/onnx/deploy.h"
#include "core/onnx/export.h"
#include "core/onnx/import.h"

namespace cafetiere::capi {
namespace {

Result<std::string> onnx_of(const char* text, std::span<const std::byte> model) {
  CFT_ASSIGN(Options o, Options::parse(text));
  const std::string net_text = o.text("net");
  const auto dims = o.shapes("shapes");
  const int64_t level = o.number("level", 0, INT32_MIN, INT32_MAX);
  const std::vector<std::string> stages = o.texts("stages");
  const std::string thresholds = o.list("thresholds");
  CFT_TRY(o.done());
  CFT_ASSIGN(const NetText net, parse_net(net_text, "net"));
  CFT_ASSIGN(const caffe::NetParameter weights, parse_weights(model));
  caffe::NetState state = net.param.state();
  state.set_phase(caffe::TEST);
  state.set_level(int32_t(level));
  for (const std::string& stage : stages) state.add_stage(stage);
  std::map<std::string, Shape> shapes;
  for (const auto& [name, sizes] : dims) shapes.emplace(name, Shape(sizes));
  const auto build = [&](const NetText& of) {
    return Graph::build(of, state, {.types = layer_types(), .fed = {}});
  };
  CFT_ASSIGN(DeployForm form, deploy_form(net, state, shapes, build));
  CFT_ASSIGN(const Graph graph, build(form.net));
  std::vector<std::string> ignored;
  OnnxClasses classes{std::move(form.classes), {}};
  for (const auto& number : nlohmann::json::parse(thresholds, nullptr, false)) {
    if (!number.is_number()) return invalid_argument("\"thresholds\" must be numbers");
    classes.thresholds.push_back(number.get<double>());
  }
  return export_onnx(graph, weights, &ignored, classes);
}

/// Hands out what `convert` makes of the caller's bytes, which the caller calls `name`.
template <class Convert>
int convert_bytes(const void* from, uint64_t size, const char* name, const Convert& convert,
                  void** out, uint64_t* bytes) {
  return guarded([&]() -> Status {
    CFT_ASSIGN(const std::span<const std::byte> given, given_bytes(from, size, name));
    CFT_ASSIGN(const std::string converted, convert(given));
    return give_bytes(converted, out, bytes);
  });
}

}  // namespace
}  // namespace cafetiere::capi

using cafetiere::ModelFormat;
using cafetiere::Result;
using cafetiere::Status;
namespace capi = cafetiere::capi;
using Given = std::span<const std::byte>;

int cft_onnx_export(const char* options, const void* model, uint64_t model_bytes, void** out,
                    uint64_t* bytes) {
  CFT_NOT_NULL(out, bytes);
  const auto convert = [&](Given given) { return capi::onnx_of(options, given); };
  return capi::convert_bytes(model, model_bytes, "model", convert, out, bytes);
}

int cft_onnx_import(const void* onnx, uint64_t onnx_bytes, int64_t batch, char** net, void** model,
                    uint64_t* model_bytes) {
  CFT_NOT_NULL(net, model, model_bytes);
  return capi::guarded([&]() -> Status {
    if (batch < 1 || batch > 1 << 20) {
      return cafetiere::invalid_argument("batch must be 1 to 1048576");
    }
    CFT_ASSIGN(const auto given, capi::given_bytes(onnx, onnx_bytes, "onnx"));
    CFT_ASSIGN(const caffe::NetParameter read, cafetiere::import_onnx(capi::text_of(given), batch));
    CFT_ASSIGN(const std::string weights, cafetiere::serialize_weights(read, ModelFormat::kBinary));
    const std::string text = cafetiere::to_text(cafetiere::structure_of(read));
    CFT_TRY(capi::give_bytes(weights, model, model_bytes));
    return capi::give_text(text, net);
  });
}

int cft_weights_hdf5(const void* model, uint64_t model_bytes, void** out, uint64_t* bytes) {
  CFT_NOT_NULL(out, bytes);
  const auto convert = [](Given given) -> Result<std::string> {
    CFT_ASSIGN(const caffe::NetParameter weights, cafetiere::parse_weights(given));
    return cafetiere::serialize_weights(weights, ModelFormat::kHdf5);
  };
  return capi::convert_bytes(model, model_bytes, "model", convert, out, bytes);
}

int cft_state_hdf5(const void* state, uint64_t state_bytes, const char* learned_net, void** out,
                   uint64_t* bytes) {
  CFT_NOT_NULL(learned_net, out, bytes);
  const auto convert = [&](Given given) -> Result<std::string> {
    CFT_ASSIGN(cafetiere::SolverState parsed, cafetiere::parse_solver_state(given));
    parsed.learned_net = learned_net;
    return cafetiere::serialize_solver_state(parsed, ModelFormat::kHdf5);
  };
  return capi::convert_bytes(state, state_bytes, "state", convert, out, bytes);
}

int cft_weights_safetensors(const void* model, uint64_t model_bytes, void** out, uint64_t* bytes) {
  CFT_NOT_NULL(out, bytes);
  const auto convert = [](Given given) -> Result<std::string> {
    CFT_ASSIGN(const caffe::NetParameter weights, cafetiere::parse_weights(given));
    return cafetiere::serialize_safetensors(weights);
  };
  return capi::convert_bytes(model, model_bytes, "model", convert, out, bytes);
}

int cft_safetensors_weights(const void* file, uint64_t file_bytes, void** out, uint64_t* bytes) {
  CFT_NOT_NULL(out, bytes);
  const auto convert = [](Given given) -> Result<std::string> {
    CFT_ASSIGN(const caffe::NetParameter weights,
               cafetiere::parse_safetensors(capi::text_of(given)));
    return cafetiere::serialize_weights(weights, ModelFormat::kBinary);
  };
  return capi::convert_bytes(file, file_bytes, "file", convert, out, bytes);
}
