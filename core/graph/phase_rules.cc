#include "core/graph/phase_rules.h"

#include <algorithm>

namespace cafetiere {
namespace {

bool has_stage(const caffe::NetState& state, const std::string& stage) {
  return std::find(state.stage().begin(), state.stage().end(), stage) != state.stage().end();
}

bool is_kept(const caffe::LayerParameter& layer, const caffe::NetState& state) {
  const auto met = [&](const caffe::NetStateRule& rule) { return rule_is_met(rule, state); };
  if (layer.include_size() > 0) {
    return std::any_of(layer.include().begin(), layer.include().end(), met);
  }
  return std::none_of(layer.exclude().begin(), layer.exclude().end(), met);
}

/// A copy of everything but the layers, which may hold hundreds of megabytes of weights.
caffe::NetParameter without_layers(const caffe::NetParameter& net) {
  caffe::NetParameter out;
  if (net.has_name()) out.set_name(net.name());
  if (net.has_force_backward()) out.set_force_backward(net.force_backward());
  if (net.has_state()) *out.mutable_state() = net.state();
  if (net.has_debug_info()) out.set_debug_info(net.debug_info());
  return out;
}

}  // namespace

bool rule_is_met(const caffe::NetStateRule& rule, const caffe::NetState& state) {
  if (rule.has_phase() && rule.phase() != state.phase()) return false;
  if (rule.has_min_level() && state.level() < rule.min_level()) return false;
  if (rule.has_max_level() && state.level() > rule.max_level()) return false;
  const auto in_state = [&](const std::string& stage) { return has_stage(state, stage); };
  return std::all_of(rule.stage().begin(), rule.stage().end(), in_state) &&
         std::none_of(rule.not_stage().begin(), rule.not_stage().end(), in_state);
}

Result<caffe::NetParameter> filter_net(const caffe::NetParameter& net, const caffe::NetState& state,
                                       std::vector<int>* kept) {
  caffe::NetParameter out = without_layers(net);
  if (kept != nullptr) kept->clear();
  for (int i = 0; i < net.layer_size(); ++i) {
    const caffe::LayerParameter& layer = net.layer(i);
    if (layer.include_size() > 0 && layer.exclude_size() > 0) {
      return invalid_argument("layer '" + layer.name() +
                              "' has both include and exclude rules; keep one kind");
    }
    if (!is_kept(layer, state)) continue;
    *out.add_layer() = layer;
    if (kept != nullptr) kept->push_back(i);
  }
  return out;
}

}  // namespace cafetiere
