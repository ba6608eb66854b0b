// SPDX-License-Identifier: Apache-2.0
#include "core/train/rows_net.h"

#include <algorithm>
#include <memory>
#include <string>

#include "core/graph/phase_rules.h"
#include "core/layers/registry.h"

namespace cafetiere {
namespace {

/// The type of a layer that is fed from outside; null for other layers and for unknown types, which
/// the graph rejects.
const LayerType* source_type(const caffe::LayerParameter& layer) {
  const auto type = find_layer_type(layer_types(), layer.type());
  return type.ok() && (*type)->source ? *type : nullptr;
}

/// The layer as a FileLayer; null if it does not read files.
std::unique_ptr<FileLayer> file_layer(const caffe::LayerParameter& param) {
  const LayerType* type = source_type(param);
  if (!type) return nullptr;
  std::unique_ptr<Layer> layer = type->create(param);
  std::unique_ptr<FileLayer> file(dynamic_cast<FileLayer*>(layer.get()));
  if (file) layer.release();
  return file;
}

/// Whether a blob is read only by losses and scores.
bool is_target(const caffe::NetParameter& net, const std::string& blob) {
  return std::ranges::all_of(net.layer(), [&](const caffe::LayerParameter& layer) {
    if (std::ranges::find(layer.bottom(), blob) == layer.bottom().end()) return true;
    const auto type = find_layer_type(layer_types(), layer.type());
    return type.ok() && ((*type)->loss || (*type)->score);
  });
}

/// For layers with one top each: the first that is not only a target, and the first target besides
/// it.
void find_roles_alone(const caffe::NetParameter& net, std::vector<SourceOfNet>& sources) {
  const auto is_features = [&](const SourceOfNet& source) {
    return !source.roles.empty() && !is_target(net, source.layer.top(0));
  };
  auto features = std::ranges::find_if(sources, is_features);
  if (features == sources.end()) features = sources.begin();
  if (features == sources.end() || features->roles.empty()) return;
  features->roles[0] = TopRole::kFeatures;
  for (SourceOfNet& source : sources) {
    if (&source == &*features || source.roles.empty() || is_features(source)) continue;
    source.roles[0] = TopRole::kLabel;
    return;
  }
}

void find_roles(const caffe::NetParameter& net, std::vector<SourceOfNet>& sources) {
  for (SourceOfNet& source : sources) source.roles.resize(size_t(source.layer.top_size()));
  for (SourceOfNet& source : sources) {
    if (source.roles.size() < 2) continue;
    source.roles[0] = TopRole::kFeatures;
    source.roles[1] = TopRole::kLabel;
    return;
  }
  find_roles_alone(net, sources);
}

}  // namespace

Result<std::vector<SourceOfNet>> source_layers(const NetChoice& net) {
  CFT_ASSIGN(const caffe::NetParameter filtered, filter_net(net.net.param, net.state, nullptr));
  std::vector<SourceOfNet> sources;
  for (const caffe::LayerParameter& layer : filtered.layer()) {
    if (!source_type(layer)) continue;
    SourceOfNet& source = sources.emplace_back(layer);
    const std::unique_ptr<FileLayer> file = file_layer(layer);
    if (!file) continue;
    source.files = file->names();
    source.rows = file->takes_rows();
  }
  find_roles(filtered, sources);
  return sources;
}

Result<std::string> features_top(const NetChoice& net) {
  CFT_ASSIGN(const std::vector<SourceOfNet> sources, source_layers(net));
  for (const SourceOfNet& source : sources) {
    for (size_t i = 0; i < source.roles.size(); ++i) {
      if (source.roles[i] == TopRole::kFeatures) return source.layer.top(int(i));
    }
  }
  return std::string();
}

Status take_rows(const RowForms& forms, NetText* net) {
  for (caffe::LayerParameter& layer : *net->param.mutable_layer()) {
    const std::unique_ptr<FileLayer> file = file_layer(layer);
    if (!file || !file->takes_rows() || layer.top().empty() || !forms.contains(layer.top(0))) {
      continue;
    }
    CFT_TRY(file->become_rows(forms, &layer).with_context(net->source));
  }
  return {};
}

Status take_rows(const RowForms& forms, SolverText* solver) {
  CFT_ASSIGN(solver->param, with_nets_inside(*solver));
  caffe::SolverParameter& p = solver->param;
  const auto change = [&](caffe::NetParameter* net) -> Status {
    NetText text{*net, solver->source, {}, {}};
    CFT_TRY(take_rows(forms, &text));
    *net = std::move(text.param);
    return {};
  };
  if (p.has_net_param()) CFT_TRY(change(p.mutable_net_param()));
  if (p.has_train_net_param()) CFT_TRY(change(p.mutable_train_net_param()));
  for (caffe::NetParameter& net : *p.mutable_test_net_param()) CFT_TRY(change(&net));
  return {};
}

}  // namespace cafetiere
