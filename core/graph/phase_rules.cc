// SPDX-License-Identifier: Apache-2.0
#include "core/graph/phase_rules.h"

#include <fmt/format.h>

#include <algorithm>

namespace cafetiere {
namespace {

bool has_stage(const caffe::NetState& state, const std::string& stage) {
  return std::find(state.stage().begin(), state.stage().end(), stage) != state.stage().end();
}

/// Why `state` does not meet a rule; "" if it does.
std::string why_unmet(const caffe::NetStateRule& rule, const caffe::NetState& state) {
  const auto numbers = [&](const char* what, int have, const char* how, const char* bound,
                           int rule) {
    return fmt::format("The NetState {} ({}) {} the {} ({})", what, have, how, bound, rule);
  };
  if (rule.has_phase() && rule.phase() != state.phase()) {
    return numbers("phase", state.phase(), "differed from", "phase", rule.phase());
  }
  if (rule.has_min_level() && state.level() < rule.min_level()) {
    return numbers("level", state.level(), "is above", "min_level", rule.min_level());
  }
  if (rule.has_max_level() && state.level() > rule.max_level()) {
    return numbers("level", state.level(), "is above", "max_level", rule.max_level());
  }
  for (const std::string& stage : rule.stage()) {
    if (!has_stage(state, stage)) {
      return fmt::format("The NetState did not contain stage '{}'", stage);
    }
  }
  for (const std::string& stage : rule.not_stage()) {
    if (has_stage(state, stage)) {
      return fmt::format("The NetState contained a not_stage '{}'", stage);
    }
  }
  return "";
}

bool is_kept(const caffe::LayerParameter& layer, const caffe::NetState& state,
             std::vector<std::string>* notes) {
  const auto met = [&](const caffe::NetStateRule& rule) {
    const std::string why = why_unmet(rule, state);
    if (notes && !why.empty()) {
      notes->push_back(fmt::format("{} specified by a rule in layer {}", why, layer.name()));
    }
    return why.empty();
  };
  if (layer.include_size() > 0) {
    return std::any_of(layer.include().begin(), layer.include().end(), met);
  }
  return std::none_of(layer.exclude().begin(), layer.exclude().end(), met);
}

/// A copy of all fields but the layers, which may hold hundreds of megabytes of weights.
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
  return why_unmet(rule, state).empty();
}

Result<caffe::NetParameter> filter_net(const caffe::NetParameter& net, const caffe::NetState& state,
                                       std::vector<int>* kept, std::vector<std::string>* notes) {
  caffe::NetParameter out = without_layers(net);
  if (kept != nullptr) kept->clear();
  for (int i = 0; i < net.layer_size(); ++i) {
    const caffe::LayerParameter& layer = net.layer(i);
    if (layer.include_size() > 0 && layer.exclude_size() > 0) {
      return invalid_argument("layer '" + layer.name() +
                              "' has both include and exclude rules; keep one kind");
    }
    if (!is_kept(layer, state, notes)) continue;
    *out.add_layer() = layer;
    if (kept != nullptr) kept->push_back(i);
  }
  return out;
}

}  // namespace cafetiere
