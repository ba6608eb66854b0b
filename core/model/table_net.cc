// SPDX-License-Identifier: Apache-2.0
#include "core/model/table_net.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/model/given_net.h"

namespace cafetiere {
namespace {

using caffe::LayerParameter;
using TableColumn = caffe::TableDataParameter::Column;

constexpr int kReserved = 2;  // places of a CATEGORY before its list

bool is_label(const TableColumn& column) {
  return column.kind() == TableColumn::CLASS || column.kind() == TableColumn::NUMBER;
}

Status check(std::span<const TableColumn> features, const TableColumn& label,
             const TableNetOptions& options) {
  if (features.empty()) return invalid_argument("a table needs a column to learn from");
  for (const TableColumn& column : features) {
    if (column.kind() == TableColumn::CLASS) {
      return invalid_argument(
          fmt::format("column '{}': CLASS is for labels; use CATEGORY", column.name()));
    }
  }
  if (!is_label(label) || label.missing_flag()) {
    return invalid_argument(fmt::format(
        "the label '{}' must be a CLASS or a NUMBER without missing values", label.name()));
  }
  if (label.kind() == TableColumn::CLASS && label.value_size() < 2) {
    return invalid_argument(fmt::format("the label '{}' has {} values; at least two are needed",
                                        label.name(), label.value_size()));
  }
  if (std::ranges::any_of(options.layers, [](int64_t units) { return units < 1; })) {
    return invalid_argument("layers: a hidden layer needs at least one unit");
  }
  if (!(options.dropout >= 0 && options.dropout < 1)) {
    return invalid_argument("dropout must be at least 0 and below 1");
  }
  if (options.batch < 1) return invalid_argument("a batch needs at least one row");
  return {};
}

int64_t scores_of(const TableColumn& label) {
  return label.kind() == TableColumn::CLASS ? label.value_size() : label.size();
}

/// What the layers and blobs around hidden ones are called.
std::set<std::string> names_around(std::span<const TableColumn> features) {
  std::set<std::string> names{"table", "features", "label",       "input",     "score",
                              "loss",  "accuracy", "probability", "prediction"};
  for (const TableColumn& column : features) {
    const std::string embedding = "embedding/" + column.name();
    names.insert({"category/" + column.name(), embedding, embedding + "/flat"});
  }
  return names;
}

/// Builds a net layer by layer; `top_` is the blob that the next layer reads.
class Builder {
 public:
  Builder(const TableNetOptions& options, GivenNet given)
      : options_(options), given_(std::move(given)) {
    net_.set_name("table");
  }

  caffe::NetParameter build(std::span<const TableColumn> features, const TableColumn& label) {
    add_table(features, label);
    embed(features);
    if (given_.net.layer_size() > 0)
      add_given();
    else
      for (size_t i = 0; i < options_.layers.size(); ++i) add_hidden(i);
    const bool classes = label.kind() == TableColumn::CLASS;
    if (!given_.whole) add_inner_product("score", scores_of(label), true);
    classes ? add_softmax() : add_squares(label);
    return std::move(net_);
  }

 private:
  LayerParameter& add(const std::string& name, const std::string& type,
                      const std::vector<std::string>& bottoms, const std::string& top) {
    LayerParameter& layer = *net_.add_layer();
    layer.set_name(name);
    layer.set_type(type);
    for (const std::string& bottom : bottoms) layer.add_bottom(bottom);
    layer.add_top(top);
    return layer;
  }

  void add_table(std::span<const TableColumn> features, const TableColumn& label) {
    LayerParameter& layer = *net_.add_layer();
    layer.set_name("table");
    layer.set_type("TableData");
    caffe::TableDataParameter& p = *layer.mutable_table_data_param();
    p.set_batch_size(uint32_t(options_.batch));
    caffe::TableDataParameter::TableTop numbers;
    for (const TableColumn& column : features) {
      if (column.kind() != TableColumn::CATEGORY) *numbers.add_column() = column;
    }
    if (numbers.column_size() > 0) {
      layer.add_top("features");
      *p.add_top() = numbers;
    }
    for (const TableColumn& column : features) {
      if (column.kind() != TableColumn::CATEGORY) continue;
      layer.add_top("category/" + column.name());
      *p.add_top()->add_column() = column;
    }
    layer.add_top("label");
    *p.add_top()->add_column() = label;
  }

  void embed(std::span<const TableColumn> features) {
    std::vector<std::string> parts;
    if (net_.layer(0).top(0) == "features") parts.push_back("features");
    for (const TableColumn& column : features) {
      if (column.kind() != TableColumn::CATEGORY) continue;
      const std::string name = "embedding/" + column.name();
      const int64_t places = column.value_size() + kReserved;
      LayerParameter& layer = add(name, "Embed", {"category/" + column.name()}, name);
      if (options_.embedding_decay != 1) {
        layer.add_param()->set_decay_mult(options_.embedding_decay);
      }
      caffe::EmbedParameter& p = *layer.mutable_embed_param();
      p.set_input_dim(uint32_t(places));
      p.set_num_output(uint32_t(std::min(50.0, std::ceil(1.6 * std::pow(double(places), 0.56)))));
      p.set_bias_term(false);
      p.mutable_weight_filler()->set_type("gaussian");
      p.mutable_weight_filler()->set_std(0.05f);
      parts.push_back(column.size() > 1 ? add_pool(column, name) : name + "/flat");
      if (column.size() == 1) add(parts.back(), "Flatten", {name}, parts.back());
    }
    top_ = parts.front();
    if (parts.size() == 1 && options_.hidden.layer_size() == 0) return;
    add("input", "Concat", parts, "input");
    top_ = "input";
  }

  /// The sum of the embeddings of a cell's values over one more than their number: 0 where there are none.
  std::string add_pool(const TableColumn& column, const std::string& name) {
    const std::string are = name + "/are", sum = name + "/sum", share = name + "/share";
    add(are, "Threshold", {"category/" + column.name()}, are)
        .mutable_threshold_param()
        ->set_threshold(0.5f);
    const auto scale = [&](const std::string& of, const std::string& by, const std::string& top) {
      add(top, "Scale", {of, by}, top).mutable_scale_param()->set_axis(0);
    };
    scale(name, are, name + "/kept");
    caffe::PermuteParameter& turned =
        *add(name + "/turned", "Permute", {name + "/kept"}, name + "/turned")
             .mutable_permute_param();
    for (int axis : {0, 2, 1}) turned.add_order(axis);
    add(sum, "Reduction", {name + "/turned"}, sum).mutable_reduction_param()->set_axis(2);
    add(name + "/count", "Reduction", {are}, name + "/count")
        .mutable_reduction_param()
        ->set_axis(1);
    caffe::PowerParameter& inverse =
        *add(share, "Power", {name + "/count"}, share).mutable_power_param();
    inverse.set_power(-1);
    inverse.set_shift(1);
    scale(sum, share, name + "/mean");
    return name + "/mean";
  }

  void add_given() {
    for (const LayerParameter& layer : given_.net.layer()) *net_.add_layer() = layer;
    top_ = given_.top;
    if (given_.whole) net_.mutable_layer(net_.layer_size() - 1)->set_top(0, "score");
  }

  void add_hidden(size_t i) {
    const std::string name = fmt::format("hidden{}", i + 1);
    add_inner_product(name, options_.layers[i], false);
    if (options_.batch_norm) {
      add(name + "/norm", "BatchNorm", {name}, name);
      add(name + "/scale", "Scale", {name}, name).mutable_scale_param()->set_bias_term(true);
    }
    add(name + "/activation", options_.activation, {name}, name);
    if (options_.dropout > 0) {
      add(name + "/dropout", "Dropout", {name}, name)
          .mutable_dropout_param()
          ->set_dropout_ratio(options_.dropout);
    }
  }

  /// He's initialisation for layers with a ReLU behind them, Glorot's for scores.
  void add_inner_product(const std::string& name, int64_t outputs, bool scores) {
    LayerParameter& layer = add(name, "InnerProduct", {top_}, name);
    layer.add_param()->set_lr_mult(1);
    caffe::ParamSpec& bias = *layer.add_param();
    bias.set_lr_mult(1);
    bias.set_decay_mult(0);
    caffe::InnerProductParameter& p = *layer.mutable_inner_product_param();
    p.set_num_output(uint32_t(outputs));
    p.mutable_weight_filler()->set_type(scores ? "xavier" : "msra");
    top_ = name;
  }

  void add_softmax() {
    add("loss", "SoftmaxWithLoss", {"score", "label"}, "loss");
    add("accuracy", "Accuracy", {"score", "label"}, "accuracy")
        .add_include()
        ->set_phase(caffe::TEST);
    only_to_predict(add("probability", "Softmax", {"score"}, "probability"));
  }

  void add_squares(const TableColumn& label) {
    add("loss", "EuclideanLoss", {"score", "label"}, "loss");
    if (label.mean_size() != 1) return;
    LayerParameter& layer = add("prediction", "Power", {"score"}, "prediction");
    only_to_predict(layer);
    const double scale = label.scale(0);
    layer.mutable_power_param()->set_scale(scale > 0 ? float(1 / scale) : 0.f);
    layer.mutable_power_param()->set_shift(float(label.mean(0)));
  }

  static void only_to_predict(LayerParameter& layer) { layer.add_include()->add_stage("predict"); }

  const TableNetOptions& options_;
  GivenNet given_;
  caffe::NetParameter net_;
  std::string top_;
};

}  // namespace

Result<caffe::NetParameter> table_net(std::span<const TableColumn> features,
                                      const TableColumn& label, const TableNetOptions& options) {
  CFT_TRY(check(features, label, options));
  GivenNet given;
  if (options.hidden.layer_size() > 0) {
    CFT_ASSIGN(given, given_net(options.hidden, scores_of(label), names_around(features)));
  }
  return Builder(options, std::move(given)).build(features, label);
}

}  // namespace cafetiere
