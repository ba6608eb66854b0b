// SPDX-License-Identifier: Apache-2.0
#include "core/train/rows_net.h"

#include <memory>
#include <string>

#include "core/graph/phase_rules.h"
#include "core/layers/registry.h"

namespace cafetiere {
namespace {

/// The type of a layer that is fed from outside; null for another one, or an unknown type, which the
/// graph rejects.
const LayerType* source_type(const caffe::LayerParameter& layer) {
  const auto type = find_layer_type(layer_types(), layer.type());
  return type.ok() && (*type)->source ? *type : nullptr;
}

/// The layer, where it reads files.
std::unique_ptr<FileLayer> file_layer(const caffe::LayerParameter& param) {
  const LayerType* type = source_type(param);
  if (!type) return nullptr;
  std::unique_ptr<Layer> layer = type->create(param);
  std::unique_ptr<FileLayer> file(dynamic_cast<FileLayer*>(layer.get()));
  if (file) layer.release();
  return file;
}

bool is_input(const caffe::LayerParameter& layer) {
  const LayerType* type = source_type(layer);
  return type && type->inputs;
}

/// Whether two layers belong to the same states, and their batches are equal.
bool go_together(const caffe::LayerParameter& a, const caffe::LayerParameter& b) {
  const auto rules = [](const caffe::LayerParameter& layer) {
    caffe::LayerParameter only;
    *only.mutable_include() = layer.include();
    *only.mutable_exclude() = layer.exclude();
    return only.SerializeAsString();
  };
  const auto rows = [](const caffe::LayerParameter& layer) {
    const auto& shapes = layer.input_param().shape();
    return shapes.empty() || shapes[0].dim().empty() ? 0 : shapes[0].dim(0);
  };
  return is_input(a) && is_input(b) && rules(a) == rules(b) && rows(a) == rows(b);
}

/// Adds the tops of an Input layer to another; one shape may stand for all tops of a layer.
void add_tops(const caffe::LayerParameter& from, caffe::LayerParameter* to) {
  const auto spell_out = [](caffe::LayerParameter* layer) {
    caffe::InputParameter& p = *layer->mutable_input_param();
    while (p.shape_size() == 1 && layer->top_size() > p.shape_size()) {
      for (int i = 1; i < layer->top_size(); ++i) *p.add_shape() = p.shape(0);
    }
  };
  caffe::LayerParameter added = from;
  spell_out(&added);
  spell_out(to);
  to->mutable_top()->MergeFrom(added.top());
  to->mutable_input_param()->MergeFrom(added.input_param());
}

void join_inputs(NetText* net) {
  auto& layers = *net->param.mutable_layer();
  for (int i = 0; i < layers.size(); ++i) {
    for (int j = layers.size() - 1; j > i; --j) {
      if (!go_together(layers[i], layers[j])) continue;
      add_tops(layers[j], &layers[i]);
      layers.erase(layers.begin() + j);
      if (j < int(net->layer_lines.size())) net->layer_lines.erase(net->layer_lines.begin() + j);
    }
  }
}

}  // namespace

Result<std::vector<SourceOfNet>> source_layers(const NetChoice& net) {
  CFT_ASSIGN(const caffe::NetParameter filtered, filter_net(net.net.param, net.state, nullptr));
  std::vector<SourceOfNet> sources;
  for (const caffe::LayerParameter& layer : filtered.layer()) {
    if (!source_type(layer)) continue;
    SourceOfNet& source = sources.emplace_back(layer, std::nullopt, false);
    const std::unique_ptr<FileLayer> file = file_layer(layer);
    if (!file) continue;
    source.files = file->names();
    source.rows = file->takes_rows();
  }
  return sources;
}

Status take_rows(const RowForms& forms, NetText* net) {
  for (caffe::LayerParameter& layer : *net->param.mutable_layer()) {
    const std::unique_ptr<FileLayer> file = file_layer(layer);
    if (!file || !file->takes_rows() || layer.top().empty() || !forms.contains(layer.top(0))) {
      continue;
    }
    CFT_TRY(file->become_rows(forms, &layer).with_context(net->source));
  }
  join_inputs(net);
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
