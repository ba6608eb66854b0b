// SPDX-License-Identifier: Apache-2.0
#include "core/model/table_net.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/model/given_net.h"
#include "core/model/table_check.h"
#include "core/model/table_decay.h"
#include "core/model/table_outputs.h"

namespace cafetiere {
namespace {

using caffe::LayerParameter;
using TableColumn = caffe::TableDataParameter::Column;

constexpr int kReserved = 2;  // indices of a CATEGORY before its list

bool is_alone(const TableColumn& column) {
  return column.kind() == TableColumn::CATEGORY || column.kind() == TableColumn::IMAGE;
}

std::string image_blob(const TableColumn& column) { return "image/" + column.name(); }

/// The names of the layers and blobs around the hidden layers.
std::set<std::string> names_around(std::span<const TableColumn> features) {
  std::set<std::string> names{"table", "features", "label",       "input",     "score",
                              "loss",  "accuracy", "probability", "prediction"};
  for (const TableColumn& column : features) {
    const std::string embedding = "embedding/" + column.name();
    names.insert({"category/" + column.name(), embedding, embedding + "/flat"});
  }
  return names;
}

/// Builds a net layer by layer; `top_` is the input of the next layer.
class Builder {
 public:
  Builder(const TableNetOptions& options, GivenNet given)
      : options_(options), given_(std::move(given)) {
    net_.set_name("table");
  }

  caffe::NetParameter build(std::span<const TableColumn> features, const TableTarget& target) {
    add_table(features, target);
    look_at(features);
    add_parts(features, target);
    for (int64_t m = 1; m <= options_.members; ++m) {
      add_member(options_.members > 1 ? fmt::format("member{}/", m) : "", target.labels);
    }
    add_table_outputs(target.labels, options_, scores_, compared_, &net_);
    return std::move(net_);
  }

 private:
  LayerParameter& add(const std::string& name, const std::string& type,
                      const std::vector<std::string>& bottoms, const std::string& top) {
    return add_layer(&net_, name, type, bottoms, top);
  }

  void add_table(std::span<const TableColumn> features, const TableTarget& target) {
    LayerParameter& layer = *net_.add_layer();
    layer.set_name("table");
    layer.set_type("TableData");
    caffe::TableDataParameter& p = *layer.mutable_table_data_param();
    p.set_batch_size(uint32_t(options_.batch));
    caffe::TableDataParameter::TableTop numbers;
    for (const TableColumn& column : features) {
      if (!is_alone(column)) *numbers.add_column() = column;
    }
    if (numbers.column_size() > 0) {
      layer.add_top("features");
      *p.add_top() = numbers;
    }
    for (const TableColumn& column : features) {
      if (!is_alone(column)) continue;
      const bool is_image = column.kind() == TableColumn::IMAGE;
      layer.add_top(is_image ? image_blob(column) : "category/" + column.name());
      *p.add_top()->add_column() = column;
    }
    caffe::TableDataParameter::TableTop& labels = add_target("label", &layer);
    for (const TableColumn& label : target.labels) *labels.add_column() = label;
    std::vector<std::string> weights;
    for (const TableColumn& weight : target.weights) {
      // Row weights have at most one scale.
      const bool of_classes = weight.value_size() > 0 || weight.scale_size() > 1;
      weights.push_back(of_classes ? "class_weight" : "weight");
      *add_target(weights.back(), &layer).add_column() = weight;
    }
    compared_ = {"score", "label"};
    if (weights.empty()) return;
    if (weights.size() > 1) {
      std::ranges::reverse(weights);  // class weights first: FLAGS have one per label
      add("row_weight", "Scale", weights, "row_weight").mutable_scale_param()->set_axis(0);
    }
    compared_.push_back(weights.size() > 1 ? "row_weight" : weights.front());
  }

  static caffe::TableDataParameter::TableTop& add_target(const std::string& name,
                                                         LayerParameter* layer) {
    layer->add_top(name);
    caffe::TableDataParameter::TableTop& top = *layer->mutable_table_data_param()->add_top();
    top.set_target(true);
    return top;
  }

  /// Settings of the common layers that depend on the columns.
  void look_at(std::span<const TableColumn> features) {
    for (const TableColumn& column : features) {
      if (column.kind() != TableColumn::CATEGORY) continue;
      is_embedded_ = true;
      if (!has_own_layers(column, options_)) continue;
      const float decay = hidden_decay(column, options_);
      hidden_decay_ = std::min(hidden_decay_.value_or(decay), decay);
    }
  }

  /// Whether the embedding of a column with its own layers ends as posterior means: if each row has
  /// one value of it, and a label whose probability is the softmax of the scores.
  bool has_posterior(const TableColumn& column, const TableTarget& target) const {
    return options_.posterior && column.size() == 1 && has_own_layers(column, options_) &&
           options_.members == 1 && target.weights.empty() &&
           target.labels.front().kind() == TableColumn::CLASS;
  }

  void add_posterior(const std::string& embedding, caffe::PosteriorParameter* p) const {
    constexpr int kPrototypes = 256;
    p->set_prototypes(kPrototypes);
    p->set_first(kReserved);
    p->set_output(fmt::format("{}/hidden{}", embedding, options_.layers.size()));
    p->set_scores("score");
    p->set_labels("label");
  }

  /// What members share: the columns' numbers, embeddings and convolutions.
  void add_parts(std::span<const TableColumn> features, const TableTarget& target) {
    if (net_.layer(0).top(0) == "features") parts_.push_back({"features", ""});
    for (const TableColumn& column : features) {
      if (column.kind() != TableColumn::CATEGORY) continue;
      const std::string name = "embedding/" + column.name();
      const int64_t places = column.value_size() + kReserved;
      LayerParameter& layer = add(name, "Embed", {"category/" + column.name()}, name);
      if (options_.step_rows > 0)
        layer.add_param()->set_decay_mult(embedding_decay(column, options_));
      caffe::EmbedParameter& p = *layer.mutable_embed_param();
      p.set_input_dim(uint32_t(places));
      p.set_num_output(uint32_t(std::min(50.0, std::ceil(1.6 * std::pow(double(places), 0.56)))));
      p.set_bias_term(false);
      p.mutable_weight_filler()->set_type("gaussian");
      p.mutable_weight_filler()->set_std(0.05f);
      if (has_posterior(column, target)) add_posterior(name, p.mutable_posterior());
      const std::string blob = column.size() > 1 ? add_pool(column, name) : name + "/flat";
      if (column.size() == 1) add(blob, "Flatten", {name}, blob);
      parts_.push_back({blob, has_own_layers(column, options_) ? name + "/" : ""});
    }
    for (const TableColumn& column : features) {
      if (column.kind() != TableColumn::IMAGE || is_read_by_given(image_blob(column))) continue;
      parts_.push_back(
          {is_given() && features.size() == 1 ? image_blob(column) : add_convolutions(column), ""});
    }
  }

  bool is_given() const { return options_.hidden.layer_size() > 0; }

  /// Hidden layers, the columns' own ones first, and scores.
  void add_member(const std::string& prefix, std::span<const TableColumn> labels) {
    join_parts(prefix);
    if (is_given())
      add_given();
    else
      add_hidden_layers(prefix);
    if (!given_.whole) {
      add_inner_product(prefix + options_.score, scores_of(labels, options_), true);
      net_.mutable_layer(net_.layer_size() - 1)->set_top(0, prefix + "score");
    }
    scores_.push_back(prefix + "score");
  }

  void join_parts(const std::string& prefix) {
    std::vector<std::string> bottoms;
    for (const Part& part : parts_) {
      top_ = part.blob;
      if (!part.own_layers.empty()) add_hidden_layers(prefix + part.own_layers);
      bottoms.push_back(top_);
    }
    // Given layers may read all columns by name.
    if (bottoms.empty() || (bottoms.size() == 1 && !is_given())) return;
    top_ = prefix + "input";
    add(top_, "Concat", bottoms, top_);
  }

  /// The sum of the embeddings of a cell's values over their number plus one: 0 if there are none.
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

  bool is_read_by_given(const std::string& blob) const {
    return std::ranges::any_of(given_.net.layer(), [&](const LayerParameter& layer) {
      return std::ranges::find(layer.bottom(), blob) != layer.bottom().end();
    });
  }

  /// 3 x 3 convolutions, each followed by 2 x 2 pooling, until a side is below 8.
  std::string add_convolutions(const TableColumn& column) {
    constexpr uint32_t kFirst = 16, kMost = 64, kSmall = 8;
    const std::string image = image_blob(column);
    std::string top = image;
    uint32_t side = std::min(column.shape(1), column.shape(2)), channels = kFirst;
    for (int i = 1; i == 1 || side >= kSmall; ++i) {
      const std::string name = fmt::format("{}/conv{}", image, i);
      LayerParameter& layer = add(name, "Convolution", {top}, name);
      add_rates(&layer);
      caffe::ConvolutionParameter& p = *layer.mutable_convolution_param();
      p.set_num_output(channels);
      p.add_kernel_size(3);
      p.add_pad(1);
      p.mutable_weight_filler()->set_type("msra");
      add_activation(name);
      top = fmt::format("{}/pool{}", image, i);
      caffe::PoolingParameter& pool = *add(top, "Pooling", {name}, top).mutable_pooling_param();
      pool.set_kernel_size(2);
      pool.set_stride(2);
      side = (side + 1) / 2;
      channels = std::min(kMost, 2 * channels);
    }
    add(image + "/flat", "Flatten", {top}, image + "/flat");
    return image + "/flat";
  }

  void add_given() {
    for (const LayerParameter& layer : given_.net.layer()) *net_.add_layer() = layer;
    top_ = given_.top;
    if (given_.whole) net_.mutable_layer(net_.layer_size() - 1)->set_top(0, "score");
  }

  /// The hidden layers, common ones or, with a prefix, those of a column.
  void add_hidden_layers(const std::string& prefix) {
    for (size_t i = 0; i < options_.layers.size(); ++i) {
      const std::string name = fmt::format("{}hidden{}", prefix, i + 1);
      add_inner_product(name, options_.layers[i], false);
      add_activation(name);
      if (options_.dropout > 0) {
        add(name + "/dropout", "Dropout", {name}, name)
            .mutable_dropout_param()
            ->set_dropout_ratio(options_.dropout);
      }
    }
  }

  void add_activation(const std::string& name) {
    if (options_.batch_norm) {
      add(name + "/norm", "BatchNorm", {name}, name);
      add(name + "/scale", "Scale", {name}, name).mutable_scale_param()->set_bias_term(true);
    }
    add(name + "/activation", options_.activation, {name}, name);
  }

  /// Biases do not decay.
  static void add_rates(LayerParameter* layer) {
    layer->add_param()->set_lr_mult(1);
    caffe::ParamSpec& bias = *layer->add_param();
    bias.set_lr_mult(1);
    bias.set_decay_mult(0);
  }

  /// Hidden layers use Glorot's initial weights, which are better than He's for numbers alone, or
  /// He's if columns are embedded: embeddings start near 0, and larger weights make them effective
  /// sooner (docs/accuracy.md). Scores are scaled by fan-in only, like Caffe's xavier.
  void add_inner_product(const std::string& name, int64_t outputs, bool scores) {
    LayerParameter& layer = add(name, "InnerProduct", {top_}, name);
    add_rates(&layer);
    if (hidden_decay_) layer.mutable_param(0)->set_decay_mult(*hidden_decay_);
    caffe::InnerProductParameter& p = *layer.mutable_inner_product_param();
    p.set_num_output(uint32_t(outputs));
    caffe::FillerParameter& filler = *p.mutable_weight_filler();
    filler.set_type(scores || !is_embedded_ ? "xavier" : "msra");
    if (!scores && !is_embedded_) filler.set_variance_norm(caffe::FillerParameter::AVERAGE);
    top_ = name;
  }

  /// An input of the hidden layers, and the prefix of the column's own layers, if any.
  struct Part {
    std::string blob, own_layers;
  };

  const TableNetOptions& options_;
  GivenNet given_;
  caffe::NetParameter net_;
  std::string top_;
  std::vector<Part> parts_;
  std::vector<std::string> scores_;    // of the members
  bool is_embedded_ = false;           // whether any column is embedded
  std::optional<float> hidden_decay_;  // for inner products, unless it is the default
  std::vector<std::string> compared_;  // bottoms of the loss
};

}  // namespace

Result<caffe::NetParameter> table_net(std::span<const TableColumn> features,
                                      const TableTarget& target, const TableNetOptions& options) {
  CFT_TRY(check_table_net(features, target, options));
  GivenNet given;
  if (options.hidden.layer_size() > 0) {
    CFT_ASSIGN(given, given_net(options.hidden, scores_of(target.labels, options),
                                names_around(features)));
  }
  return Builder(options, std::move(given)).build(features, target);
}

}  // namespace cafetiere
