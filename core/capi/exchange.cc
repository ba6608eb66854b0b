// SPDX-License-Identifier: Apache-2.0
// Nets and weights in the forms of other programs: ONNX and safetensors.
#include <map>

#include "core/capi/boundary.h"
#include "core/capi/options.h"
#include "core/layers/registry.h"
#include "core/model/safetensors.h"
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
  CFT_ASSIGN(const DeployForm form, deploy_form(net, state, shapes, build));
  CFT_ASSIGN(const Graph graph, build(form.net));
  std::vector<std::string> ignored;
  return export_onnx(graph, weights, &ignored);
}

}  // namespace
}  // namespace cafetiere::capi

using cafetiere::Status;
namespace capi = cafetiere::capi;

int cft_onnx_export(const char* options, const void* model, uint64_t model_bytes, void** out,
                    uint64_t* bytes) {
  CFT_NOT_NULL(out, bytes);
  return capi::guarded([&]() -> Status {
    CFT_ASSIGN(const auto given, capi::given_bytes(model, model_bytes, "model"));
    CFT_ASSIGN(const std::string file, capi::onnx_of(options, given));
    return capi::give_bytes(file, out, bytes);
  });
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
    CFT_ASSIGN(const std::string weights,
               cafetiere::serialize_weights(read, cafetiere::ModelFormat::kBinary));
    const std::string text = cafetiere::to_text(cafetiere::structure_of(read));
    CFT_TRY(capi::give_bytes(weights, model, model_bytes));
    return capi::give_text(text, net);
  });
}

int cft_weights_safetensors(const void* model, uint64_t model_bytes, void** out, uint64_t* bytes) {
  CFT_NOT_NULL(out, bytes);
  return capi::guarded([&]() -> Status {
    CFT_ASSIGN(const auto given, capi::given_bytes(model, model_bytes, "model"));
    CFT_ASSIGN(const caffe::NetParameter weights, cafetiere::parse_weights(given));
    CFT_ASSIGN(const std::string file, cafetiere::serialize_safetensors(weights));
    return capi::give_bytes(file, out, bytes);
  });
}

int cft_safetensors_weights(const void* file, uint64_t file_bytes, void** out, uint64_t* bytes) {
  CFT_NOT_NULL(out, bytes);
  return capi::guarded([&]() -> Status {
    CFT_ASSIGN(const auto given, capi::given_bytes(file, file_bytes, "file"));
    CFT_ASSIGN(const caffe::NetParameter weights,
               cafetiere::parse_safetensors(capi::text_of(given)));
    CFT_ASSIGN(const std::string model,
               cafetiere::serialize_weights(weights, cafetiere::ModelFormat::kBinary));
    return capi::give_bytes(model, out, bytes);
  });
}
