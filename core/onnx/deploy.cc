// SPDX-License-Identifier: Apache-2.0
#include "core/onnx/deploy.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/graph/phase_rules.h"
#include "core/layers/registry.h"
#include "core/model/nearest.h"
#include "core/onnx/names.h"

namespace cafetiere {
namespace {

using LayerParam = caffe::LayerParameter;

/// DummyData makes its values itself, but stands for data where a net has it.
bool gives_data(const LayerParam& layer) {
  const Result<const LayerType*> type = find_layer_type(layer_types(), layer.type());
  return layer.type() == "DummyData" || (type.ok() && (*type)->source);
}

bool is_loss(const LayerParam& layer) {
  const Result<const LayerType*> type = find_layer_type(layer_types(), layer.type());
  return type.ok() && (*type)->loss;
}

/// An Input layer with these tops.
LayerParam input_layer(const std::string& name, const std::vector<std::string>& tops,
                       const std::vector<Shape>& shapes) {
  LayerParam input;
  input.set_name(name);
  input.set_type("Input");
  for (size_t i = 0; i < tops.size(); ++i) {
    input.add_top(tops[i]);
    caffe::BlobShape* shape = input.mutable_input_param()->add_shape();
    for (int64_t dim : shapes[i].dims()) shape->add_dim(dim);
  }
  return input;
}

/// The shape of a top that is not given: what the layer says itself, or one number a row.
Result<Shape> other_shape(const LayerParam& layer, int top, int64_t batch) {
  const auto& own = layer.input_param().shape();
  if (own.empty()) return Shape{batch};
  if (own.size() != 1 && own.size() != layer.top_size()) {
    return invalid_argument(fmt::format(
        "layer {} has {} tops and {} shapes: input_param needs no shape, one shape or one for each "
        "top",
        layer.name(), layer.top_size(), own.size()));
  }
  const auto& dims = own[own.size() == 1 ? 0 : top].dim();
  return Shape(std::vector<int64_t>(dims.begin(), dims.end()));
}

/// What a loss does to its first bottom before it judges it, as a layer; a layer without a type when
/// that is nothing.
LayerParam function_of(const LayerParam& loss) {
  LayerParam function;
  if (loss.type() == "SoftmaxWithLoss") {
    function.set_type("Softmax");
    if (loss.has_softmax_param()) *function.mutable_softmax_param() = loss.softmax_param();
  } else if (loss.type() == "InfogainLoss") {
    function.set_type("Softmax");
    function.mutable_softmax_param()->set_axis(loss.infogain_loss_param().axis());
  } else if (loss.type() == "SigmoidCrossEntropyLoss") {
    function.set_type("Sigmoid");
  }
  return function;
}

/// Goes over the layers forwards, to see what comes of labels and of losses, then backwards, keeping
/// what something kept reads.
class Deployment {
 public:
  Deployment(const NetText& net, const Graph& graph) : net_(net), layers_(net.param.layer()) {
    const Result<std::vector<Shape>> shapes = graph.infer(0);
    for (const Node& node : graph.nodes()) {
      if (!gives_data(node.param) || !shapes.ok()) continue;
      for (int top : node.tops) {
        shapes_[graph.blob_names()[size_t(top)]] = (*shapes)[size_t(top)];
      }
    }
    std::set<std::string> blobs;
    for (const LayerParam& layer : layers_) blobs.insert(layer.top().begin(), layer.top().end());
    names_ = UniqueNames(std::move(blobs));
  }

  DeployForm run() {
    mark();
    for (int i = layers_.size(); i-- > 0;) visit(i);
    std::reverse(kept_.begin(), kept_.end());
    std::reverse(form_.notes.begin(), form_.notes.end());
    NetText& out = form_.net;
    out.source = net_.source;
    out.param = net_.param;
    out.param.clear_layer();
    for (auto& [layer, line] : kept_) {
      *out.param.add_layer() = std::move(layer);
      out.layer_lines.push_back(line);
    }
    return std::move(form_);
  }

 private:
  void mark() {
    for (const LayerParam& layer : layers_) {
      const auto any_in = [&](const std::set<std::string>& set) {
        return std::ranges::any_of(layer.bottom(), [&](auto& name) { return set.contains(name); });
      };
      const bool of_labels =
          layer.bottom_size() > 0 &&
          std::ranges::all_of(layer.bottom(), [&](auto& name) { return labels_.contains(name); });
      const bool judges = is_loss(layer) || layer.type() == "Accuracy" || any_in(judgements_);
      of_labels_.push_back(of_labels);
      judges_.push_back(judges);
      if (!judges && layer.bottom_size()) functions_.insert({layer.type(), layer.bottom(0)});
      for (int t = 0; t < layer.top_size(); ++t) {
        const bool label = of_labels || (gives_data(layer) && t > 0);
        const bool judgement = judges && !(t == 1 && !function_of(layer).type().empty());
        labels_.erase(layer.top(t));
        if (label) labels_.insert(layer.top(t));
        if (judgement) judgements_.insert(layer.top(t));
        if (gives_data(layer)) data_.insert(layer.top(t));
      }
    }
  }

  void visit(int i) {
    const LayerParam& layer = layers_[i];
    const auto is_read = [this](const std::string& top) { return read_.contains(top); };
    if (layer.type() == "TableData") return put_table(i);
    if (gives_data(layer)) return put_input(i);
    if (layer.type() == "Silence") return keep_silence(i);
    if (layer.type() == "HDF5Output" || judges_[size_t(i)]) return replace(i);
    if (of_labels_[size_t(i)] && std::ranges::none_of(layer.top(), is_read)) return;
    keep(layer, i);
  }

  /// What is silenced and is still there must not become an output.
  void keep_silence(int i) {
    LayerParam layer = layers_[i];
    layer.clear_bottom();
    for (const std::string& name : layers_[i].bottom()) {
      const auto has = [&](const std::set<std::string>& set) { return set.contains(name); };
      if (!has(data_) && !has(labels_) && !has(judgements_)) layer.add_bottom(name);
    }
    if (layer.bottom_size()) keep(std::move(layer), i);
  }

  void keep(LayerParam layer, int i) {
    for (const std::string& top : layer.top()) read_.erase(top);
    for (const std::string& bottom : layer.bottom()) read_.insert(bottom);
    kept_.emplace_back(std::move(layer), line_of(i));
  }

  /// A loss becomes what it applies; other layers that judge go, and a loss whose function is there.
  void replace(int i) {
    const LayerParam& layer = layers_[i];
    LayerParam function = function_of(layer);
    const bool named = layer.top_size() > 1;
    if (function.type().empty() ||
        (!named && functions_.contains({function.type(), layer.bottom(0)}))) {
      note("Leaving out layer {} ({})", layer.name(), layer.type());
      return;
    }
    const std::string top = named ? layer.top(1) : names_.make("prob");
    note("Layer {} ({}) becomes {} '{}'", layer.name(), layer.type(), function.type(), top);
    functions_.insert({function.type(), layer.bottom(0)});
    function.set_name(top);
    function.add_bottom(layer.bottom(0));
    function.add_top(top);
    keep(std::move(function), i);
  }

  /// Columns of tables are read as they are in other runtimes too: the layer stays, without labels.
  void put_table(int i) {
    LayerParam layer = layers_[i];
    layer.clear_top();
    layer.mutable_table_data_param()->clear_top();
    for (int t = 0; t < layers_[i].top_size(); ++t) {
      const auto& top = layers_[i].table_data_param().top(t);
      if (!read_.contains(layers_[i].top(t))) {
        const auto& values = top.column(0).value();
        if (top.column(0).kind() != caffe::TableDataParameter::Column::CLASS) continue;
        form_.classes.assign(values.begin(), values.end());
        continue;
      }
      layer.add_top(layers_[i].top(t));
      *layer.mutable_table_data_param()->add_top() = top;
    }
    if (layer.top_size()) keep(std::move(layer), i);
  }

  void put_input(int i) {
    const LayerParam& layer = layers_[i];
    std::vector<std::string> tops;
    std::vector<Shape> shapes;
    for (const std::string& top : layer.top()) {
      if (!read_.contains(top)) {
        note("Leaving out top '{}' of layer {}: nothing that is left reads it", top, layer.name());
        continue;
      }
      tops.push_back(top);
      shapes.push_back(shapes_[top]);
      if (layer.type() == "Input") continue;
      note("Input '{}' of shape {} in place of layer {} ({})", tops.back(), shapes.back().str(),
           layer.name(), layer.type());
    }
    if (!tops.empty()) keep(input_layer(layer.name(), tops, shapes), i);
  }

  int line_of(int i) const {
    return size_t(i) < net_.layer_lines.size() ? net_.layer_lines[size_t(i)] : 0;
  }

  template <class... Args>
  void note(fmt::format_string<Args...> format, Args&&... args) {
    form_.notes.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  const NetText& net_;
  const google::protobuf::RepeatedPtrField<LayerParam>& layers_;
  std::map<std::string, Shape> shapes_;  // of what data layers give
  UniqueNames names_;
  std::set<std::string> data_, labels_, judgements_;  // blobs
  std::vector<bool> of_labels_, judges_;              // by layer
  std::set<std::string> read_;                        // by the layers kept so far
  std::set<std::pair<std::string, std::string>>
      functions_;                                 // that are there: type and first bottom
  std::vector<std::pair<LayerParam, int>> kept_;  // from the last to the first
  DeployForm form_;
};

}  // namespace

Result<NetText> in_state(const NetText& net, const caffe::NetState& state) {
  NetText out;
  out.source = net.source;
  std::vector<int> kept;
  CFT_ASSIGN(out.param, filter_net(net.param, state, &kept));
  for (int i : kept) {
    out.layer_lines.push_back(size_t(i) < net.layer_lines.size() ? net.layer_lines[size_t(i)] : 0);
  }
  return out;
}

Status set_input_shapes(const std::map<std::string, Shape>& shapes, NetText* net) {
  std::vector<std::string> known;
  for (LayerParam& layer : *net->param.mutable_layer()) {
    if (!gives_data(layer)) continue;
    const std::vector<std::string> tops(layer.top().begin(), layer.top().end());
    known.insert(known.end(), tops.begin(), tops.end());
    const auto given =
        std::ranges::find_if(tops, [&](const std::string& top) { return shapes.contains(top); });
    if (given == tops.end()) continue;
    const Shape& first = shapes.at(*given);
    std::vector<Shape> all;
    for (size_t i = 0; i < tops.size(); ++i) {
      if (const auto own = shapes.find(tops[i]); own != shapes.end()) {
        all.push_back(own->second);
        continue;
      }
      CFT_ASSIGN(Shape other, other_shape(layer, int(i), first.axes() ? first[0] : 1));
      all.push_back(std::move(other));
    }
    layer = input_layer(layer.name(), tops, all);
  }
  for (const auto& [name, shape] : shapes) {
    if (std::ranges::find(known, name) != known.end()) continue;
    return invalid_argument(fmt::format("'{}' has a shape, but no data layer gives it{}", name,
                                        did_you_mean(name, known)));
  }
  return {};
}

DeployForm deploy_form(const NetText& net, const Graph& graph) {
  return Deployment(net, graph).run();
}

Result<DeployForm> deploy_form(const NetText& all, const caffe::NetState& state,
                               const std::map<std::string, Shape>& shapes,
                               const std::function<Result<Graph>(const NetText&)>& build) {
  CFT_ASSIGN(NetText net, in_state(all, state));
  CFT_TRY(set_input_shapes(shapes, &net).with_context("shape"));
  CFT_ASSIGN(const Graph graph, build(net));
  return deploy_form(net, graph);
}

}  // namespace cafetiere
