// SPDX-License-Identifier: Apache-2.0
#include "core/model/table_outputs.h"

#include <fmt/format.h>

#include <utility>

namespace cafetiere {
namespace {

using caffe::LayerParameter;
using TableColumn = caffe::TableDataParameter::Column;

class Outputs {
 public:
  Outputs(const TableNetOptions& options, const std::vector<std::string>& scores,
          const std::vector<std::string>& compared, caffe::NetParameter* net)
      : options_(options), scores_(scores), compared_(compared), net_(*net) {}

  void add(std::span<const TableColumn> labels) {
    if (scores_.size() > 1) add_mean();
    const TableColumn::Kind kind = labels.front().kind();
    if (kind == TableColumn::CLASS) return add_softmax();
    if (kind == TableColumn::FLAGS) return add_sigmoid();
    add_distance();
    add_prediction(labels);
  }

 private:
  /// In TRAIN, what the loss compares, of all members, one below the other; in TEST, the mean score.
  void add_mean() {
    for (const std::string& name : compared_) {
      all_compared_.push_back("members/" + name);
      LayerParameter& layer =
          add(all_compared_.back(), "Concat",
              name == "score" ? scores_ : std::vector(scores_.size(), name), all_compared_.back());
      layer.mutable_concat_param()->set_axis(0);
      layer.add_include()->set_phase(caffe::TRAIN);
    }
    LayerParameter& mean = add("score", "Eltwise", scores_, "score");
    mean.add_include()->set_phase(caffe::TEST);
    for (size_t m = 0; m < scores_.size(); ++m) {
      mean.mutable_eltwise_param()->add_coeff(1 / float(scores_.size()));
    }
  }

  void add_softmax() {
    add_loss("SoftmaxWithLoss");
    add("accuracy", "Accuracy", {"score", "label"}, "accuracy")
        .add_include()
        ->set_phase(caffe::TEST);
    only_to_predict(add("probability", "Softmax", {"score"}, "probability"));
  }

  void add_sigmoid() {
    add_loss("SigmoidCrossEntropyLoss");
    only_to_predict(add("probability", "Sigmoid", {"score"}, "probability"));
  }

  void add_distance() {
    if (options_.loss == "squared") return add_loss("EuclideanLoss");
    add_loss(options_.loss == "huber" ? "HuberLoss" : "QuantileLoss");
  }

  void add_loss(const std::string& type) {
    if (scores_.size() == 1) return void(add_loss_of(type, compared_));
    add_loss_of(type, all_compared_).add_include()->set_phase(caffe::TRAIN);
    add_loss_of(type, compared_).add_include()->set_phase(caffe::TEST);
  }

  LayerParameter& add_loss_of(const std::string& type, const std::vector<std::string>& compared) {
    LayerParameter& layer = add("loss", type, compared, "loss");
    if (type == "HuberLoss") layer.mutable_huber_loss_param()->set_delta(options_.delta);
    if (type == "QuantileLoss") {
      for (float q : options_.quantiles) layer.mutable_quantile_loss_param()->add_quantile(q);
    }
    return layer;
  }

  /// Scores in the units of the labels, each of which has a mean and a scale.
  void add_prediction(std::span<const TableColumn> labels) {
    std::vector<std::pair<double, double>> units;  // mean and scale
    for (const TableColumn& label : labels) {
      for (int i = 0; i < label.mean_size(); ++i) units.emplace_back(label.mean(i), label.scale(i));
    }
    if (units.size() == 1) return add_units("prediction", "score", units[0]);
    LayerParameter& slice = add("outputs", "Slice", {"score"}, "output0");
    only_to_predict(slice);
    for (size_t i = 1; i < units.size(); ++i) {
      slice.add_top(fmt::format("output{}", i));
      slice.mutable_slice_param()->add_slice_point(uint32_t(i));
    }
    std::vector<std::string> parts;
    for (size_t i = 0; i < units.size(); ++i) {
      parts.push_back(fmt::format("prediction{}", i));
      add_units(parts.back(), fmt::format("output{}", i), units[i]);
    }
    only_to_predict(add("prediction", "Concat", parts, "prediction"));
  }

  void add_units(const std::string& name, const std::string& bottom,
                 const std::pair<double, double>& unit) {
    LayerParameter& layer = add(name, "Power", {bottom}, name);
    only_to_predict(layer);
    const auto [mean, scale] = unit;
    layer.mutable_power_param()->set_scale(scale > 0 ? float(1 / scale) : 0.f);
    layer.mutable_power_param()->set_shift(float(mean));
  }

  static void only_to_predict(LayerParameter& layer) { layer.add_include()->add_stage("predict"); }

  LayerParameter& add(const std::string& name, const std::string& type,
                      const std::vector<std::string>& bottoms, const std::string& top) {
    return add_layer(&net_, name, type, bottoms, top);
  }

  const TableNetOptions& options_;
  const std::vector<std::string>& scores_;    // of the members
  const std::vector<std::string>& compared_;  // bottoms of the loss
  std::vector<std::string> all_compared_;     // in TRAIN, of several members
  caffe::NetParameter& net_;
};

}  // namespace

LayerParameter& add_layer(caffe::NetParameter* net, const std::string& name,
                          const std::string& type, const std::vector<std::string>& bottoms,
                          const std::string& top) {
  LayerParameter& layer = *net->add_layer();
  layer.set_name(name);
  layer.set_type(type);
  for (const std::string& bottom : bottoms) layer.add_bottom(bottom);
  layer.add_top(top);
  return layer;
}

void add_table_outputs(std::span<const TableColumn> labels, const TableNetOptions& options,
                       const std::vector<std::string>& scores,
                       const std::vector<std::string>& compared, caffe::NetParameter* net) {
  Outputs(options, scores, compared, net).add(labels);
}

}  // namespace cafetiere
