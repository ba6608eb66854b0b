// SPDX-License-Identifier: Apache-2.0
// The part of the C interface that runs nets layer by layer.
#include <fmt/format.h>
#include <google/protobuf/descriptor.pb.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/capi/boundary.h"
#include "core/capi/eager_handles.h"
#include "core/capi/options.h"
#include "core/layers/registry.h"
#include "core/model/weights.h"

namespace cafetiere::capi {
namespace {

/// Rows of a caller's arrays, a batch at a time, over and over.
class MemoryFeed : public Source {
 public:
  MemoryFeed(const float* data, const float* labels, int64_t rows, Shape data_shape,
             Shape label_shape)
      : data_(data),
        labels_(labels),
        rows_(rows),
        data_shape_(std::move(data_shape)),
        label_shape_(std::move(label_shape)) {}

  std::vector<Shape> top_shapes() const override { return {data_shape_, label_shape_}; }
  int64_t rows(int, int64_t) const override { return data_shape_[0]; }
  Status fill(int, int64_t sub_step, std::span<float* const> tops) override {
    const int64_t batch = data_shape_[0], size = data_shape_.count(1);
    const int64_t first = sub_step * batch % rows_;
    std::copy_n(data_ + first * size, batch * size, tops[0]);
    if (tops.size() > 1) std::copy_n(labels_ + first, batch, tops[1]);
    return {};
  }

 private:
  const float *data_, *labels_;
  int64_t rows_;
  Shape data_shape_, label_shape_;
};

Status create(const char* text, const cft_host* host, cft_net** out) {
  CFT_ASSIGN(Options o, Options::parse(text));
  const std::string path = o.text("path"), net_text = o.text("text");
  const std::string phase = o.text("phase", "TEST"), weights = o.text("weights");
  const int64_t level = o.number("level", 0, INT32_MIN, INT32_MAX);
  const std::vector<std::string> stages = o.texts("stages");
  const int threads = int(o.number("threads", 1, 1, 1024));
  const uint64_t seed = uint64_t(o.number("seed", 1, 0, INT64_MAX));
  CFT_TRY(o.done());
  NetChoice choice;
  if (path.empty()) {
    CFT_ASSIGN(choice.net, parse_net(net_text, "net"));
  } else {
    CFT_ASSIGN(choice.net, read_net(path));
  }
  caffe::Phase value;
  if (!caffe::Phase_Parse(phase, &value)) return invalid_argument("phase must be TRAIN or TEST");
  choice.state = choice.net.param.state();
  choice.state.set_phase(value);
  choice.state.set_level(int32_t(level));
  for (const std::string& stage : stages) choice.state.add_stage(stage);
  CFT_ASSIGN(const cft_host callbacks, given_struct(host, "cft_host"));
  const EagerNetOptions options =
      eager_net_options(std::make_shared<cft_host>(callbacks), threads, seed);
  auto net = std::make_unique<cft_net>();
  net->log = options.log;
  for (const std::string& warning : choice.net.warnings) net->log.warning("{}", warning);
  CFT_ASSIGN(net->owned, EagerNet::create(choice, options));
  net->eager = net->owned.get();
  if (!weights.empty()) CFT_TRY(net->eager->copy_from(weights, net->log));
  *out = net.release();
  return {};
}

nlohmann::json describe(const Net& net) {
  const auto homes = [&](const std::vector<int>& ids) {
    std::vector<int> list;
    for (int id : ids) list.push_back(net.blob_index(id));
    return list;
  };
  nlohmann::json layers = nlohmann::json::array(), blobs = nlohmann::json::array();
  std::vector<int> inputs;
  for (const Node& node : net.graph().nodes()) {
    layers.push_back({{"name", node.param.name()},
                      {"type", node.param.type()},
                      {"bottoms", homes(node.bottoms)},
                      {"tops", homes(node.tops)},
                      {"params", node.params},
                      {"host_layer", host_layer_number(*node.layer)}});
    if (!node.type->inputs) continue;
    for (int top : node.tops) inputs.push_back(net.blob_index(top));
  }
  for (const Net::Blob& blob : net.blobs()) {
    blobs.push_back({{"name", blob.name}, {"loss_weight", blob.loss_weight}});
  }
  return {{"name", net.graph().name()},
          {"layers", layers},
          {"blobs", blobs},
          {"inputs", inputs},
          {"outputs", homes(net.graph().outputs())}};
}

Status give_blob(const std::vector<Net::Blob>& blobs, int32_t number, cft_blob* out,
                 cft_memory** memory) {
  if (number < 0 || size_t(number) >= blobs.size()) {
    return not_found(fmt::format("there is no number {} among {}", number, blobs.size()));
  }
  const Net::Blob& blob = blobs[size_t(number)];
  CFT_TRY(fill_blob({blob.shape, blob.data.get(), blob.diff.get()}, out).with_context(blob.name));
  if (memory) *memory = new cft_memory{blob.data, blob.diff};
  return {};
}

Status set_input(cft_net* handle, const std::string& layer, const float* data, const float* labels,
                 int64_t rows) {
  Net& net = handle->net();
  for (const Node& node : net.graph().nodes()) {
    if (node.param.name() != layer || !node.type->takes_arrays) continue;
    const Shape shape = net.blobs()[size_t(net.blob_index(node.tops[0]))].shape;
    if (shape.axes() == 0 || shape[0] == 0) {
      return invalid_argument(
          fmt::format("layer '{}': blob '{}' has shape {}, which has no rows; reshape it first",
                      layer, node.param.top(0), shape.str()));
    }
    if (!labels && node.tops.size() > 1) {
      return invalid_argument(
          fmt::format("labels is NULL, and layer '{}' has a top for labels", layer));
    }
    if (rows <= 0 || rows % shape[0] != 0) {
      return invalid_argument(fmt::format(
          "layer '{}': {} rows are not a multiple of its batch_size {}", layer, rows, shape[0]));
    }
    auto feed = std::make_unique<MemoryFeed>(data, labels, rows, shape, Shape{shape[0]});
    CFT_TRY(net.feed(layer, feed.get()));
    handle->fed[layer] = std::move(feed);
    return {};
  }
  return not_found(fmt::format("the net has no MemoryData layer '{}'", layer));
}

}  // namespace
}  // namespace cafetiere::capi

using cafetiere::Status;
namespace capi = cafetiere::capi;

int cft_net_create(const char* options, const cft_host* host, cft_net** out) {
  CFT_NOT_NULL(out);
  return capi::guarded([&] { return capi::create(options, host, out); });
}

int cft_net_describe(const cft_net* net, char** out) {
  CFT_NOT_NULL(net, out);
  return capi::guarded([&] { return capi::give_json(capi::describe(net->net()), out); });
}

int cft_net_blob(const cft_net* net, int32_t number, cft_blob* out, cft_memory** memory) {
  CFT_NOT_NULL(net, out);
  return capi::guarded([&] { return capi::give_blob(net->net().blobs(), number, out, memory); });
}

int cft_net_param(const cft_net* net, int32_t number, cft_blob* out, cft_memory** memory) {
  CFT_NOT_NULL(net, out);
  return capi::guarded([&] { return capi::give_blob(net->net().params(), number, out, memory); });
}

void cft_memory_release(cft_memory* memory) { delete memory; }

int cft_net_reshape_blob(cft_net* net, int32_t number, const int64_t* dims, int32_t axes) {
  CFT_NOT_NULL(net);
  return capi::guarded([&]() -> Status {
    if (axes < 0 || axes > CFT_MAX_AXES) {
      return cafetiere::invalid_argument(fmt::format("a blob has 0 to {} axes", CFT_MAX_AXES));
    }
    if (!dims && axes > 0) return cafetiere::invalid_argument("dims is NULL and axes is not 0");
    cafetiere::Shape shape(std::vector<int64_t>(dims, dims + axes));
    return net->net().reshape_blob(number, std::move(shape));
  });
}

int cft_net_reshape(cft_net* net) {
  CFT_NOT_NULL(net);
  return capi::guarded([&] { return net->net().reshape(); });
}

int cft_net_forward(cft_net* net, int32_t from, int32_t to, float* loss) {
  CFT_NOT_NULL(net);
  return capi::guarded([&]() -> Status {
    CFT_ASSIGN(const float sum, net->net().forward(from, to));
    if (loss) *loss = sum;
    return {};
  });
}

int cft_net_backward(cft_net* net, int32_t from, int32_t to) {
  CFT_NOT_NULL(net);
  return capi::guarded([&] { return net->net().backward(from, to); });
}

int cft_net_clear_param_diffs(cft_net* net) {
  CFT_NOT_NULL(net);
  return capi::guarded([&] { net->net().clear_param_diffs(); });
}

int cft_net_set_input(cft_net* net, const char* layer, const float* data, const float* labels,
                      int64_t rows) {
  CFT_NOT_NULL(net, layer, data);
  return capi::guarded([&] { return capi::set_input(net, layer, data, labels, rows); });
}

int cft_net_copy_from(cft_net* net, const char* path) {
  CFT_NOT_NULL(net, path);
  return capi::guarded([&] { return net->eager->copy_from(path, net->log); });
}

int cft_net_share_with(cft_net* net, const cft_net* other) {
  CFT_NOT_NULL(net, other);
  return capi::guarded([&]() -> Status {
    if (net->in_solver) {
      return cafetiere::invalid_argument(
          "a solver's training net keeps its own weights; let the other net share with it");
    }
    std::vector<std::string> ignored;
    CFT_TRY(net->net().share_with(other->net(), &ignored));
    for (const std::string& name : ignored) net->log.info("Ignoring source layer {}", name);
    return {};
  });
}

int cft_net_save(const cft_net* net, const char* path, int hdf5) {
  CFT_NOT_NULL(net, path);
  return capi::guarded([&] {
    using cafetiere::ModelFormat;
    return cafetiere::write_weights(net->net().weights(), path,
                                    hdf5 ? ModelFormat::kHdf5 : ModelFormat::kBinary);
  });
}

void cft_net_destroy(cft_net* net) { delete net; }

int cft_schema(void** out, uint64_t* bytes) {
  CFT_NOT_NULL(out);
  return capi::guarded([&] {
    google::protobuf::FileDescriptorProto file;
    caffe::NetParameter::descriptor()->file()->CopyTo(&file);
    return capi::give_bytes(file.SerializeAsString(), out, bytes);
  });
}

int cft_layer_types(char** out) {
  CFT_NOT_NULL(out);
  return capi::guarded([&] {
    std::vector<std::string> names;
    for (const cafetiere::LayerType* type : cafetiere::layer_types()) names.push_back(type->name);
    std::sort(names.begin(), names.end());
    return capi::give_json(nlohmann::json(names), out);
  });
}
