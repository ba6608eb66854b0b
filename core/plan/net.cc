// SPDX-License-Identifier: Apache-2.0
#include "core/plan/net.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/device/isa.h"
#include "core/graph/arena.h"
#include "core/model/blob.h"
#include "core/plan/lower_node.h"

namespace cafetiere {

std::vector<int> blob_homes(const Graph& graph) {
  std::vector<int> homes;
  std::map<std::string, int> by_name;
  int count = 0;
  for (const std::string& name : graph.blob_names()) {
    const auto known = name == kAnonymousTop ? by_name.end() : by_name.find(name);
    homes.push_back(known == by_name.end() ? count++ : known->second);
    by_name[name] = homes.back();
  }
  return homes;
}

namespace {

/// Layers may compute their tops' sizes from anything, such as Python code or the values of
/// bottoms.
Status check_top(const Node& node, size_t i, const Shape& shape) {
  return check_blob_shape(shape).with_context(fmt::format("top '{}'", node.param.top(int(i))));
}

}  // namespace

Result<std::unique_ptr<Net>> Net::create(Graph graph, const Options& options) {
  std::unique_ptr<Net> net(new Net(std::move(graph)));
  CFT_TRY(net->build(options));
  return net;
}

Status Net::build(const Options& options) {
  if (options.threads < 1) return invalid_argument("threads must be at least 1");
  CFT_TRY(check_instruction_set());
  device_ = make_cpu_device();
  pool_ = std::make_unique<ThreadPool>(options.threads);
  context_ = {.seed = options.seed, .sub_step = -1, .accumulate = true};
  place_params();
  Random random{uint32_t(options.seed)};
  CFT_TRY(init_params(graph_, random, param_arena()));
  for (const Node& node : graph_.nodes()) {
    const auto* open = dynamic_cast<const ExternalLayer*>(node.layer.get());
    if (open) CFT_TRY(open->first_values(param_views(node)).with_context(node.where));
  }
  place_blobs();
  nodes_.resize(graph_.nodes().size());
  // The shapes that the graph was built with; from here on those of the source blobs apply.
  CFT_ASSIGN(const std::vector<Shape> shapes, graph_.infer(0));
  for (const Node& node : graph_.nodes()) {
    if (!node.type->source) continue;
    for (int top : node.tops) set_shape(blobs_[size_t(blob_index(top))], shapes[size_t(top)]);
  }
  CFT_TRY(reshape());
  for (size_t n = 0; n < nodes_.size(); ++n) {
    if (graph_.nodes()[n].layer->is_constant()) CFT_TRY(run_node(n));
  }
  return {};
}

void Net::place_params() {
  arena_ = zeroed_memory(graph_.arena_size());
  diff_arena_ = zeroed_memory(graph_.arena_size());
  for (const Param& p : graph_.params()) {
    params_.push_back({fmt::format("{}[{}]", p.layer, p.index), p.shape,
                       std::shared_ptr<float>(arena_, arena_.get() + p.offset),
                       std::shared_ptr<float>(diff_arena_, diff_arena_.get() + p.offset),
                       p.shape.count()});
  }
}

std::span<float> Net::param_arena() const { return {arena_.get(), size_t(graph_.arena_size())}; }
std::span<float> Net::diff_arena() const {
  return {diff_arena_.get(), size_t(graph_.arena_size())};
}

void Net::place_blobs() {
  blob_indices_ = blob_homes(graph_);
  for (size_t i = 0; i < blob_indices_.size(); ++i) {
    if (size_t(blob_indices_[i]) < blobs_.size()) continue;
    blobs_.push_back(
        {.name = graph_.blob_names()[i], .shape = {}, .data = nullptr, .diff = nullptr});
  }
  for (const Node& node : graph_.nodes()) {
    for (size_t i = 0; i < node.tops.size(); ++i) {
      if (node.loss_weights[i] == 0) continue;
      blobs_[size_t(blob_index(node.tops[i]))].loss_weight = node.loss_weights[i];
    }
  }
}

void Net::set_shape(Blob& blob, Shape shape) {
  const int64_t count = shape.count();
  const bool same = blob.data && shape == blob.shape;
  blob.shape = std::move(shape);
  if (same) return;
  if (!blob.data || count > blob.capacity) {
    blob.capacity = count;
    blob.data = zeroed_memory(count);
    blob.diff = zeroed_memory(count);
  }
  // Caffe's convention: the gradient of a loss is its weight, set before any pass.
  if (blob.loss_weight != 0) std::fill_n(blob.diff.get(), count, blob.loss_weight);
}

Status Net::reshape_blob(int blob, Shape shape) {
  if (blob < 0 || blob >= int(blobs_.size())) return not_found("no such blob");
  CFT_TRY(
      check_blob_shape(shape).with_context(fmt::format("blob '{}'", blobs_[size_t(blob)].name)));
  set_shape(blobs_[size_t(blob)], std::move(shape));
  return {};
}

Status Net::reshape() {
  for (size_t n = 0; n < graph_.nodes().size(); ++n) CFT_TRY(reshape_node(n));
  return {};
}

Status Net::reshape_node(size_t n) {
  const Node& node = graph_.nodes()[n];
  LayerShapes s;
  for (int bottom : node.bottoms) s.bottoms.push_back(blobs_[size_t(blob_index(bottom))].shape);
  s.tops.resize(node.tops.size());
  if (node.type->source) {
    for (int top : node.tops) s.fed.push_back(blobs_[size_t(blob_index(top))].shape);
  }
  CFT_TRY(node.layer->shape(s).with_context(node.where));
  CFT_TRY(check_params(node, s.params).with_context(node.where));
  for (size_t i = 0; i < s.tops.size(); ++i) {
    CFT_TRY(check_top(node, i, s.tops[i]).with_context(node.where));
    Blob& top = blobs_[size_t(blob_index(node.tops[i]))];
    if (node.type->identity) {
      // The tops share the bottom's memory: writes to it are visible after the split at once.
      top.data = blobs_[size_t(blob_index(node.bottoms[0]))].data;
      if (!top.diff || s.tops[i].count() > top.capacity) {
        top.capacity = s.tops[i].count();
        top.diff = zeroed_memory(top.capacity);
        // set_shape() may find that nothing changes: a scalar has the shape of a new blob.
        std::fill_n(top.diff.get(), top.capacity, top.loss_weight);
      }
    }
    set_shape(top, std::move(s.tops[i]));
  }
  return {};
}

Status Net::shape_by_values(const ExternalLayer& layer, const Node& node) {
  const NodeBlobs blobs = blobs_of(node);
  std::vector<Shape> shapes;
  for (const BlobView& top : blobs.tops) shapes.push_back(top.shape);
  CFT_TRY(layer.shape_by_values(blobs.bottoms, shapes));
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (shapes[i] == blobs.tops[i].shape) continue;
    CFT_TRY(check_top(node, i, shapes[i]));
    set_shape(blobs_[size_t(blob_index(node.tops[i]))], std::move(shapes[i]));
  }
  return {};
}

Status Net::check_params(const Node& node, const std::vector<ParamRequest>& requests) const {
  for (size_t i = 0; i < requests.size() && i < node.params.size(); ++i) {
    const Shape& have = params_[size_t(node.params[i])].shape;
    if (have.count() == requests[i].shape.count()) continue;
    return invalid_argument(
        fmt::format("its inputs now need a parameter {} of shape {}, but it has {}; only axes that "
                    "the parameters do not depend on can change",
                    i, requests[i].shape.str(), have.str()));
  }
  return {};
}

Status Net::feed(const std::string& layer, Source* source) {
  for (const Node& node : graph_.nodes()) {
    if (node.param.name() != layer) continue;
    if (!node.type->source) break;
    const std::vector<Shape> shapes = source->top_shapes();
    std::vector<Shape> before;
    for (size_t i = 0; i < node.tops.size() && i < shapes.size(); ++i) {
      Blob& top = blobs_[size_t(blob_index(node.tops[i]))];
      before.push_back(top.shape);
      set_shape(top, shapes[i]);
    }
    const Status fits = reshape();
    if (fits.ok()) {
      sources_[layer] = {source, 0};
      return {};
    }
    for (size_t i = 0; i < before.size(); ++i) {
      set_shape(blobs_[size_t(blob_index(node.tops[i]))], before[i]);
    }
    (void)reshape();  // report the first failure only
    return fits;
  }
  return not_found(fmt::format("net '{}' has no layer '{}' that can be fed", graph_.name(), layer));
}

std::vector<BlobView> Net::param_views(const Node& node) const {
  std::vector<BlobView> views;
  for (int p : node.params) views.push_back(params_[size_t(p)].view());
  return views;
}

NodeBlobs Net::blobs_of(const Node& node) const {
  NodeBlobs blobs;
  for (int bottom : node.bottoms)
    blobs.bottoms.push_back(blobs_[size_t(blob_index(bottom))].view());
  for (int top : node.tops) blobs.tops.push_back(blobs_[size_t(blob_index(top))].view());
  blobs.params = param_views(node);
  return blobs;
}

Status Net::check_range(int from, int to) const {
  const int end = int(graph_.nodes().size());
  if (from >= 0 && from < end && to >= 0 && to < end) return {};
  return invalid_argument(fmt::format("layers {} to {} are not within 0 to {}", from, to, end - 1));
}

Result<float> Net::forward(int from, int to) {
  CFT_TRY(check_range(from, to));
  ++context_.sub_step;
  float loss = 0;
  for (int n = from; n <= to; ++n) {
    CFT_TRY(forward_node(size_t(n)));
    loss += loss_of(graph_.nodes()[size_t(n)]);
  }
  return loss;
}

Status Net::forward_node(size_t n) {
  const Node& node = graph_.nodes()[n];
  CFT_TRY(reshape_node(n));
  if (const auto* open = dynamic_cast<const ExternalLayer*>(node.layer.get())) {
    CFT_TRY(shape_by_values(*open, node).with_context(node.where));
  }
  if (node.layer->is_constant()) return {};
  if (!node.type->source) return run_node(n);
  for (int top : node.tops) {
    const Blob& blob = blobs_[size_t(blob_index(top))];
    CFT_TRY(check_blob(blob.name, blob.shape).with_context(node.where));
  }
  const auto fed = sources_.find(node.param.name());
  if (fed == sources_.end()) return {};
  std::vector<float*> tops;
  for (int top : node.tops) tops.push_back(blobs_[size_t(blob_index(top))].data.get());
  return fed->second.source->fill(0, fed->second.batches++, tops).with_context(node.where);
}

Status Net::run_node(size_t n) {
  const Node& node = graph_.nodes()[n];
  return nodes_[n].forward(node, graph_, *device_, *pool_, blobs_of(node), context_);
}

float Net::loss_of(const Node& node) const {
  float loss = 0;
  for (size_t i = 0; i < node.tops.size(); ++i) {
    if (node.loss_weights[i] == 0) continue;
    const Blob& top = blobs_[size_t(blob_index(node.tops[i]))];
    const float* data = top.data.get();
    for (int64_t k = 0; k < top.shape.count(); ++k) loss += node.loss_weights[i] * data[k];
  }
  return loss;
}

Status Net::backward(int from, int to) {
  CFT_TRY(check_range(to, from));
  for (int n = from; n >= to; --n) {
    const Node& node = graph_.nodes()[size_t(n)];
    if (!node.needs_backward || node.type->source) continue;
    CFT_TRY(nodes_[size_t(n)].backward(node, graph_, *device_, *pool_, blobs_of(node)));
  }
  return {};
}

void Net::clear_param_diffs() {
  for (const Blob& p : params_) std::fill_n(p.diff.get(), p.shape.count(), 0.f);
}

/// Copies between the parameters, wherever they are stored, and an arena of all of them.
void Net::copy_params(std::span<float> arena, bool out) const {
  for (size_t i = 0; i < params_.size(); ++i) {
    float* const here = params_[i].data.get();
    float* const there = arena.data() + graph_.params()[i].offset;
    const size_t bytes = size_t(params_[i].shape.count()) * sizeof(float);
    std::memcpy(out ? there : here, out ? here : there, bytes);
  }
}

Status Net::copy_from(const StoredWeights& weights, std::vector<std::string>* ignored) {
  if (!shares_params_) return load_weights(graph_, weights, param_arena(), ignored);
  std::vector<float> arena(size_t(graph_.arena_size()));
  copy_params(arena, true);
  CFT_TRY(load_weights(graph_, weights, arena, ignored));
  copy_params(arena, false);
  return {};
}

caffe::NetParameter Net::weights() const {
  if (!shares_params_) return to_weights(graph_, param_arena());
  std::vector<float> arena(size_t(graph_.arena_size()));
  copy_params(arena, true);
  return to_weights(graph_, arena);
}

Status Net::share_with(const Net& other, std::vector<std::string>* ignored) {
  std::map<std::string, const Node*> mine;
  for (const Node& node : graph_.nodes()) mine[node.param.name()] = &node;
  std::vector<Blob> shared = params_;
  for (const Node& theirs : other.graph().nodes()) {
    const auto node = mine.find(theirs.param.name());
    if (node == mine.end()) {
      if (ignored) ignored->push_back(theirs.param.name());
      continue;
    }
    const std::vector<int>& ids = node->second->params;
    if (ids.size() != theirs.params.size()) {
      return invalid_argument(
          fmt::format("layer '{}' has {} parameter(s) here, {} in the other net",
                      theirs.param.name(), ids.size(), theirs.params.size()));
    }
    for (size_t i = 0; i < ids.size(); ++i) {
      Blob& to = shared[size_t(ids[i])];
      const Blob& from = other.params()[size_t(theirs.params[i])];
      if (!(to.shape == from.shape)) {
        return invalid_argument(
            fmt::format("layer '{}', parameter {}: shape {} here, {} in the other net",
                        theirs.param.name(), i, to.shape.str(), from.shape.str()));
      }
      to.data = from.data;
    }
  }
  params_ = std::move(shared);
  shares_params_ = true;
  return {};
}

}  // namespace cafetiere
