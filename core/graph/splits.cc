// SPDX-License-Identifier: Apache-2.0
#include "core/graph/splits.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "core/model/nearest.h"

namespace cafetiere {
namespace {

/// A top of a layer, and its uses.
struct Top {
  int layer = 0;
  int index = 0;
  std::string blob;
  int uses = 0;  // number of bottoms that read it, plus one if it is weighted as a loss
  float loss_weight = 0;
  int next_split = 0;  // index of the Split's top for the next reader

  bool is_split() const { return uses > 1; }
};

/// The tops of a net and, for each bottom of each layer, the top that it reads.
struct Uses {
  std::vector<std::vector<Top>> tops;
  std::vector<std::vector<std::pair<int, int>>> bottoms;  // (layer, top index)
};

using Producers = std::map<std::string, std::pair<int, int>>;  // blob -> its most recent producer

Status unknown_bottom(const caffe::LayerParameter& layer, int index, const Producers& known) {
  std::vector<std::string> names;
  for (const auto& entry : known) names.push_back(entry.first);
  return invalid_argument(fmt::format("Unknown bottom blob '{}' (layer '{}', bottom index {}){}",
                                      layer.bottom(index), layer.name(), index,
                                      did_you_mean(layer.bottom(index), names)));
}

/// `faulty` is the layer examined last.
Result<Uses> find_uses(const caffe::NetParameter& net, int* faulty) {
  Uses uses;
  Producers producers;
  for (int i = 0; i < net.layer_size(); ++i) {
    *faulty = i;
    const caffe::LayerParameter& layer = net.layer(i);
    auto& bottoms = uses.bottoms.emplace_back();
    for (int b = 0; b < layer.bottom_size(); ++b) {
      const auto producer = producers.find(layer.bottom(b));
      if (producer == producers.end()) return unknown_bottom(layer, b, producers);
      const auto [from, top] = bottoms.emplace_back(producer->second);
      ++uses.tops[static_cast<size_t>(from)][static_cast<size_t>(top)].uses;
    }
    auto& tops = uses.tops.emplace_back();
    for (int t = 0; t < layer.top_size(); ++t) {
      const float weight = t < layer.loss_weight_size() ? layer.loss_weight(t) : 0;
      tops.push_back({i, t, layer.top(t), weight != 0 ? 1 : 0, weight, 0});
      producers[layer.top(t)] = {i, t};
    }
  }
  return uses;
}

void add_split(const std::string& producer, const std::string& type, const Top& top,
               caffe::LayerParameter* split) {
  split->set_name(split_layer_name(producer, top.blob, top.index));
  split->set_type(type);
  split->add_bottom(top.blob);
  for (int k = 0; k < top.uses; ++k) {
    split->add_top(split_blob_name(producer, top.blob, top.index, k));
    if (top.loss_weight != 0) split->add_loss_weight(k == 0 ? top.loss_weight : 0);
  }
}

/// The Split takes over the loss weight of its blob; those of the producer's other tops stay.
void take_loss_weight(Top* top, caffe::LayerParameter* producer) {
  top->next_split = 1;  // the first top carries the loss weight
  producer->set_loss_weight(top->index, 0);
  const auto& weights = producer->loss_weight();
  if (std::all_of(weights.begin(), weights.end(), [](float w) { return w == 0; })) {
    producer->clear_loss_weight();
  }
}

}  // namespace

std::string split_layer_name(const std::string& layer, const std::string& blob, int top) {
  return fmt::format("{}_{}_{}_split", blob, layer, top);
}

std::string split_blob_name(const std::string& layer, const std::string& blob, int top, int k) {
  return fmt::format("{}_{}", split_layer_name(layer, blob, top), k);
}

Result<caffe::NetParameter> insert_splits(const caffe::NetParameter& net, const std::string& type,
                                          std::vector<int>* origin) {
  int faulty = 0;
  Result<Uses> found = find_uses(net, &faulty);
  if (!found.ok()) {
    if (origin != nullptr) *origin = {faulty};
    return found.status();
  }
  Uses uses = std::move(found).value();
  caffe::NetParameter out = net;
  google::protobuf::RepeatedPtrField<caffe::LayerParameter> layers;
  std::vector<int> from;
  for (int i = 0; i < out.layer_size(); ++i) {
    const size_t at = static_cast<size_t>(i);
    caffe::LayerParameter* layer = layers.Add();
    layer->Swap(out.mutable_layer(i));
    from.push_back(i);
    for (int b = 0; b < layer->bottom_size(); ++b) {
      const auto [source, index] = uses.bottoms[at][static_cast<size_t>(b)];
      Top& top = uses.tops[static_cast<size_t>(source)][static_cast<size_t>(index)];
      if (!top.is_split()) continue;
      layer->set_bottom(
          b, split_blob_name(net.layer(source).name(), top.blob, top.index, top.next_split++));
    }
    for (Top& top : uses.tops[at]) {
      if (!top.is_split()) continue;
      add_split(layer->name(), type, top, layers.Add());
      from.push_back(i);
      if (top.loss_weight != 0) take_loss_weight(&top, layer);
    }
  }
  out.mutable_layer()->Swap(&layers);
  if (origin != nullptr) *origin = std::move(from);
  return out;
}

}  // namespace cafetiere
