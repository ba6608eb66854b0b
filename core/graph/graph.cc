// SPDX-License-Identifier: Apache-2.0
#include "core/graph/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/arena_block.h"
#include "core/graph/phase_rules.h"
#include "core/graph/splits.h"
#include "core/model/blob.h"

namespace cafetiere {
namespace {

constexpr int64_t kAlign = 16;       // floats
constexpr int kMaxLayers = 1 << 16;  // about ten times the deepest published net
constexpr int kConsumed = -1;        // replaces a blob's index once its only reader is known

Status check_count(const char* what, int have, int min, int max) {
  if (have >= min && (max < 0 || have <= max)) return {};
  const std::string wanted = min == max ? fmt::format("exactly {}", min)
                             : max < 0  ? fmt::format("at least {}", min)
                                        : fmt::format("{} to {}", min, max);
  return invalid_argument(fmt::format("has {} {}(s) but takes {}", have, what, wanted));
}

/// The name of the layer type whose tops are copies of its bottom.
std::string split_type(LayerTypes types) {
  const auto found = std::ranges::find_if(types, [](const LayerType* t) { return t->identity; });
  return found == types.end() ? "" : (*found)->name;
}

}  // namespace

Result<Graph> Graph::build(const NetText& net, const caffe::NetState& state,
                           const GraphOptions& options) {
  if (net.param.layer_size() > kMaxLayers) {
    return invalid_argument(fmt::format("{}: has {} layers; at most {} are supported", net.source,
                                        net.param.layer_size(), kMaxLayers));
  }
  std::vector<int> kept, origin;
  CFT_ASSIGN(const caffe::NetParameter filtered, filter_net(net.param, state, &kept));
  Result<caffe::NetParameter> with_splits =
      insert_splits(filtered, split_type(options.types), &origin);
  const auto place = [&](int i) {
    const size_t source = size_t(kept[size_t(origin[size_t(i)])]);
    return fmt::format("{}:{}", net.source,
                       source < net.layer_lines.size() ? net.layer_lines[source] : 0);
  };
  if (!with_splits.ok()) return with_splits.status().with_context(place(0));
  caffe::NetParameter split = std::move(with_splits).value();
  Graph graph;
  graph.name_ = net.param.name();
  graph.phase_ = state.phase();
  graph.fed_ = options.fed;
  std::map<std::string, int> available;
  std::vector<Shape> shapes;
  for (int i = 0; i < split.layer_size(); ++i) {
    caffe::LayerParameter& param = *split.mutable_layer(i);
    if (!param.has_phase()) param.set_phase(state.phase());
    std::string where = fmt::format("{}: layer '{}'", place(i), param.name());
    CFT_TRY(graph.add_node(options, std::move(param), where, available).with_context(where));
    Node& node = graph.nodes_.back();
    node.inserted = i > 0 && origin[size_t(i)] == origin[size_t(i) - 1];
    std::vector<ParamRequest> requests;
    CFT_TRY(graph.shape_node(node, 0, shapes, &requests));
    CFT_TRY(graph.place_params(node, requests).with_context(where));
  }
  for (const auto& [name, blob] : available) {
    if (blob != kConsumed) graph.outputs_.push_back(blob);
  }
  graph.lay_out_arena();
  graph.force_backward_ = net.param.force_backward();
  graph.want_gradients();
  CFT_TRY(graph.keep_paths_to_losses());
  return graph;
}

int Graph::find_blob(const std::string& name) const {
  for (size_t i = blob_names_.size(); i-- > 0;) {
    if (blob_names_[i] == name) return int(i);
  }
  return -1;
}

int64_t Graph::parameter_count() const {
  int64_t count = 0;
  for (const Param& p : params_) count += p.shape.count();
  return count;
}

const std::string& Graph::written_name(int blob) const {
  for (const Node& node : nodes_) {
    if (node.inserted && std::ranges::find(node.tops, blob) != node.tops.end()) {
      return blob_names_[size_t(node.bottoms[0])];
    }
  }
  return blob_names_[size_t(blob)];
}

Status Graph::add_node(const GraphOptions& options, caffe::LayerParameter param, std::string where,
                       std::map<std::string, int>& available) {
  Node node;
  CFT_ASSIGN(node.type, find_layer_type(options.types, param.type()));
  CFT_TRY(
      check_count("bottom", param.bottom_size(), node.type->min_bottoms, node.type->max_bottoms));
  if (node.type->loss && param.top_size() == 0) param.add_top(kAnonymousTop);
  CFT_TRY(check_count("top", param.top_size(), node.type->min_tops, node.type->max_tops));
  if (param.propagate_down_size() != 0 && param.propagate_down_size() != param.bottom_size()) {
    return invalid_argument(fmt::format(
        "propagate_down is given {} time(s) for {} bottom(s); give one for each or none",
        param.propagate_down_size(), param.bottom_size()));
  }
  if (node.type->foreign && options.make_foreign) {
    CFT_ASSIGN(node.layer, options.make_foreign(param));
  } else {
    node.layer = node.type->create(param);
  }
  node.param = std::move(param);
  node.where = std::move(where);
  CFT_TRY(wire(node, available));
  CFT_TRY(set_loss_weights(node));
  nodes_.push_back(std::move(node));
  return {};
}

Status Graph::wire(Node& node, std::map<std::string, int>& available) {
  const caffe::LayerParameter& param = node.param;
  for (int i = 0; i < param.bottom_size(); ++i) {
    const auto found = available.find(param.bottom(i));
    if (found == available.end() || found->second == kConsumed) {
      return invalid_argument(
          fmt::format("Unknown bottom blob '{}' (bottom index {})", param.bottom(i), i));
    }
    node.bottoms.push_back(std::exchange(found->second, kConsumed));
  }
  for (int i = 0; i < param.top_size(); ++i) {
    const bool in_place = i < param.bottom_size() && param.bottom(i) == param.top(i);
    if (!in_place && available.contains(param.top(i))) {
      return invalid_argument(
          fmt::format("Top blob '{}' produced by multiple sources.", param.top(i)));
    }
    node.tops.push_back(int(blob_names_.size()));
    blob_names_.push_back(param.top(i));
    if (param.top(i) != kAnonymousTop) available[param.top(i)] = node.tops.back();
  }
  return {};
}

Status Graph::set_loss_weights(Node& node) {
  const int given = node.param.loss_weight_size();
  if (given != 0 && given != node.param.top_size()) {
    return invalid_argument(
        fmt::format("loss_weight is given {} time(s) for {} top(s); give one for each top or none",
                    given, node.param.top_size()));
  }
  if (given == 0 && node.type->loss) {
    node.param.add_loss_weight(1);
    for (int i = 1; i < node.param.top_size(); ++i) node.param.add_loss_weight(0);
  }
  for (int i = 0; i < node.param.top_size(); ++i) {
    node.loss_weights.push_back(node.param.loss_weight_size() ? node.param.loss_weight(i) : 0.f);
  }
  return {};
}

Status Graph::shape_node(const Node& node, int64_t batch, std::vector<Shape>& shapes,
                         std::vector<ParamRequest>* requests) const {
  LayerShapes s;
  for (int blob : node.bottoms) s.bottoms.push_back(shapes[size_t(blob)]);
  s.tops.resize(node.tops.size());
  s.batch = batch;
  if (const auto fed = fed_.find(node.param.name()); fed != fed_.end()) s.fed = fed->second;
  CFT_TRY(node.layer->shape(s).with_context(node.where));
  for (size_t i = 0; i < s.tops.size(); ++i) {
    CFT_TRY(check_blob_shape(s.tops[i]).with_context(
        fmt::format("{}: top '{}'", node.where, node.param.top(int(i)))));
    shapes.resize(std::max(shapes.size(), size_t(node.tops[i]) + 1));
    shapes[size_t(node.tops[i])] = std::move(s.tops[i]);
  }
  if (requests) *requests = std::move(s.params);
  return {};
}

Status Graph::place_params(Node& node, const std::vector<ParamRequest>& requests) {
  const int specs = node.param.param_size();
  if (specs > int(requests.size())) {
    return invalid_argument(fmt::format("Too many params specified: {} param entries for {} blobs",
                                        specs, requests.size()));
  }
  for (size_t i = 0; i < requests.size(); ++i) {
    const ParamRequest& r = requests[i];
    CFT_TRY(check_blob_shape(r.shape).with_context(fmt::format("parameter {}", i)));
    node.param_shapes.push_back(r.shape);
    const caffe::ParamSpec& spec =
        int(i) < specs ? node.param.param(int(i)) : caffe::ParamSpec::default_instance();
    Param p{.layer = node.param.name(),
            .index = int(i),
            .shared_name = spec.name(),
            .shape = r.shape,
            .filler = r.filler,
            .kind = r.kind,
            .fraction = r.fraction,
            .lr_mult = spec.lr_mult(),
            .decay_mult = spec.decay_mult(),
            .lr_given = spec.has_lr_mult(),
            .decay_given = spec.has_decay_mult()};
    if (r.kind == ParamKind::kStatistic) {
      if (int(i) < specs && spec.has_lr_mult() && spec.lr_mult() != 0) {
        return invalid_argument(
            "Cannot configure batch normalization statistics as layer parameters: set lr_mult: 0");
      }
      p.lr_mult = p.decay_mult = 0;
    }
    CFT_TRY(share_param(node, p, spec));
  }
  return {};
}

Status Graph::share_param(Node& node, Param& candidate, const caffe::ParamSpec& spec) {
  const auto owner = spec.name().empty()
                         ? params_.end()
                         : std::ranges::find(params_, spec.name(), &Param::shared_name);
  if (owner == params_.end()) {
    node.params.push_back(int(params_.size()));
    params_.push_back(std::move(candidate));
    return {};
  }
  const bool permissive = spec.share_mode() == caffe::ParamSpec::PERMISSIVE;
  const bool fits = permissive ? owner->shape.count() == candidate.shape.count()
                               : owner->shape == candidate.shape;
  if (!fits || owner->kind != candidate.kind) {
    return invalid_argument(fmt::format(
        "Cannot share param '{}' owned by layer '{}' with layer '{}'; {} mismatch. The owner has "
        "{}, this layer wants {}{}",
        spec.name(), owner->layer, candidate.layer, permissive ? "count" : "shape",
        owner->shape.str(), candidate.shape.str(),
        !permissive && owner->shape.count() == candidate.shape.count()
            ? "; share_mode: PERMISSIVE accepts equal counts"
            : ""));
  }
  const auto merge = [&](bool given, float value, bool& owner_given, float& owned,
                         const char* what) -> Status {
    if (given && owner_given && owned != value) {
      return invalid_argument(fmt::format("Shared param '{}' has mismatched {}: {} and {}",
                                          spec.name(), what, owned, value));
    }
    if (given) owned = value;
    owner_given = owner_given || given;
    return {};
  };
  CFT_TRY(merge(candidate.lr_given, candidate.lr_mult, owner->lr_given, owner->lr_mult, "lr_mult"));
  CFT_TRY(merge(candidate.decay_given, candidate.decay_mult, owner->decay_given, owner->decay_mult,
                "decay_mult"));
  owner->fraction *= candidate.fraction;
  node.params.push_back(int(owner - params_.begin()));
  return {};
}

void Graph::lay_out_arena() {
  const auto place = [&](ParamKind kind) {
    for (Param& p : params_) {
      if (p.kind != kind) continue;
      p.offset = arena_size_;
      arena_size_ += (p.shape.count() + kAlign - 1) / kAlign * kAlign;
    }
  };
  place(ParamKind::kLearned);
  learned_size_ = arena_size_;
  const bool statistics = std::any_of(params_.begin(), params_.end(), [](const Param& p) {
    return p.kind == ParamKind::kStatistic;
  });
  constexpr auto kBlock = static_cast<int64_t>(kArenaBlock);
  if (statistics) arena_size_ = (arena_size_ + kBlock - 1) / kBlock * kBlock;
  place(ParamKind::kStatistic);
}

Result<std::vector<Shape>> Graph::infer(int64_t batch) const {
  std::vector<Shape> shapes;
  for (const Node& node : nodes_) CFT_TRY(shape_node(node, batch, shapes, nullptr));
  return shapes;
}

/// A layer needs a gradient if one of its bottoms or parameters does.
void Graph::want_gradients() {
  std::vector<bool> wanted(blob_names_.size(), false);
  for (Node& node : nodes_) {
    bool needs = false;
    for (int p : node.params) needs = needs || params_[size_t(p)].lr_mult != 0;
    for (size_t i = 0; i < node.bottoms.size(); ++i) {
      const bool label = node.type->no_label && i > 0;
      const bool explicitly = node.param.propagate_down_size() > 0;
      bool down = explicitly ? node.param.propagate_down(int(i)) : wanted[size_t(node.bottoms[i])];
      if (label && !node.type->loss) down = false;
      node.propagate_down.push_back(down || (force_backward_ && !label));
      needs = needs || down;
    }
    node.needs_backward = (needs || force_backward_) && !node.type->source;
    // A layer that runs backward only because it is forced does not make its tops need a gradient:
    // they may be labels.
    for (int top : node.tops) wanted[size_t(top)] = needs && !node.type->source;
  }
}

/// Layers that lead to no loss, or only to bottoms without a gradient, need no gradient themselves.
Status Graph::keep_paths_to_losses() {
  std::vector<bool> under_loss(blob_names_.size(), false), cut(blob_names_.size(), false);
  for (size_t n = nodes_.size(); n-- > 0;) {
    Node& node = nodes_[n];
    bool contributes = false, open = false;
    for (size_t i = 0; i < node.tops.size(); ++i) {
      const size_t top = size_t(node.tops[i]);
      contributes = contributes || node.loss_weights[i] != 0 || under_loss[top];
      open = open || !cut[top];
    }
    const bool alive = force_backward_ || (contributes && open);
    node.needs_backward = node.needs_backward && alive;
    for (size_t i = 0; i < node.bottoms.size(); ++i) {
      const bool down = node.propagate_down[i] && node.needs_backward;
      if (down && node.type->loss && node.type->no_label && i > 0) {
        return invalid_argument(
            fmt::format("{}: a {} layer has no gradient for its bottom {} ('{}'); set "
                        "propagate_down: false for "
                        "that bottom",
                        node.where, node.type->name, i, node.param.bottom(int(i))));
      }
      node.propagate_down[i] = down;
      under_loss[size_t(node.bottoms[i])] = contributes;
      cut[size_t(node.bottoms[i])] = !down;
    }
  }
  return {};
}

}  // namespace cafetiere
