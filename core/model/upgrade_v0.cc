// SPDX-License-Identifier: Apache-2.0
// V0, the oldest form: one message with the fields of all types, and separate padding layers.
#include <fmt/format.h>
#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "core/model/upgrade.h"

namespace cafetiere {
namespace {

namespace pb = google::protobuf;
using V0 = caffe::V0LayerParameter;
using V1 = caffe::V1LayerParameter;

struct TypeRule {
  std::string_view v0;
  V1::LayerType v1;
};
constexpr std::array kTypes = std::to_array<TypeRule>({
    {"accuracy", V1::ACCURACY},
    {"bnll", V1::BNLL},
    {"concat", V1::CONCAT},
    {"conv", V1::CONVOLUTION},
    {"data", V1::DATA},
    {"dropout", V1::DROPOUT},
    {"euclidean_loss", V1::EUCLIDEAN_LOSS},
    {"flatten", V1::FLATTEN},
    {"hdf5_data", V1::HDF5_DATA},
    {"hdf5_output", V1::HDF5_OUTPUT},
    {"im2col", V1::IM2COL},
    {"images", V1::IMAGE_DATA},
    {"infogain_loss", V1::INFOGAIN_LOSS},
    {"innerproduct", V1::INNER_PRODUCT},
    {"lrn", V1::LRN},
    {"multinomial_logistic_loss", V1::MULTINOMIAL_LOGISTIC_LOSS},
    {"pool", V1::POOLING},
    {"relu", V1::RELU},
    {"sigmoid", V1::SIGMOID},
    {"softmax", V1::SOFTMAX},
    {"softmax_loss", V1::SOFTMAX_LOSS},
    {"split", V1::SPLIT},
    {"tanh", V1::TANH},
    {"window_data", V1::WINDOW_DATA},
});

/// The V1 counterpart of a V0 field for layers of `type` ("" for any): a field of a message of the
/// V1 layer.
struct FieldRule {
  std::string_view field, type, message, target;
};
constexpr std::array kFields = std::to_array<FieldRule>({
    {"num_output", "conv", "convolution_param", "num_output"},
    {"num_output", "innerproduct", "inner_product_param", "num_output"},
    {"biasterm", "conv", "convolution_param", "bias_term"},
    {"biasterm", "innerproduct", "inner_product_param", "bias_term"},
    {"weight_filler", "conv", "convolution_param", "weight_filler"},
    {"weight_filler", "innerproduct", "inner_product_param", "weight_filler"},
    {"bias_filler", "conv", "convolution_param", "bias_filler"},
    {"bias_filler", "innerproduct", "inner_product_param", "bias_filler"},
    {"pad", "conv", "convolution_param", "pad"},
    {"pad", "pool", "pooling_param", "pad"},
    {"kernelsize", "conv", "convolution_param", "kernel_size"},
    {"kernelsize", "pool", "pooling_param", "kernel_size"},
    {"stride", "conv", "convolution_param", "stride"},
    {"stride", "pool", "pooling_param", "stride"},
    {"group", "conv", "convolution_param", "group"},
    {"pool", "pool", "pooling_param", "pool"},
    {"dropout_ratio", "dropout", "dropout_param", "dropout_ratio"},
    {"local_size", "lrn", "lrn_param", "local_size"},
    {"alpha", "lrn", "lrn_param", "alpha"},
    {"beta", "lrn", "lrn_param", "beta"},
    {"k", "lrn", "lrn_param", "k"},
    {"source", "data", "data_param", "source"},
    {"source", "hdf5_data", "hdf5_data_param", "source"},
    {"source", "images", "image_data_param", "source"},
    {"source", "window_data", "window_data_param", "source"},
    {"source", "infogain_loss", "infogain_loss_param", "source"},
    {"batchsize", "data", "data_param", "batch_size"},
    {"batchsize", "hdf5_data", "hdf5_data_param", "batch_size"},
    {"batchsize", "images", "image_data_param", "batch_size"},
    {"batchsize", "window_data", "window_data_param", "batch_size"},
    {"scale", "", "transform_param", "scale"},
    {"meanfile", "", "transform_param", "mean_file"},
    {"cropsize", "", "transform_param", "crop_size"},
    {"mirror", "", "transform_param", "mirror"},
    {"rand_skip", "data", "data_param", "rand_skip"},
    {"rand_skip", "images", "image_data_param", "rand_skip"},
    {"shuffle_images", "images", "image_data_param", "shuffle"},
    {"new_height", "images", "image_data_param", "new_height"},
    {"new_width", "images", "image_data_param", "new_width"},
    {"concat_dim", "concat", "concat_param", "concat_dim"},
    {"det_fg_threshold", "window_data", "window_data_param", "fg_threshold"},
    {"det_bg_threshold", "window_data", "window_data_param", "bg_threshold"},
    {"det_fg_fraction", "window_data", "window_data_param", "fg_fraction"},
    {"det_context_pad", "window_data", "window_data_param", "context_pad"},
    {"det_crop_mode", "window_data", "window_data_param", "crop_mode"},
});

/// Copies a V0 field to its V1 counterpart; false if the layer's type has no such field.
bool place_field(const V0& old, const pb::FieldDescriptor* field, V1* layer) {
  for (const FieldRule& rule : kFields) {
    if (rule.field != field->name() || (!rule.type.empty() && rule.type != old.type())) continue;
    const auto* message_field = V1::descriptor()->FindFieldByName(std::string(rule.message));
    pb::Message* message = layer->GetReflection()->MutableMessage(layer, message_field);
    copy_field(old, field, message,
               message->GetDescriptor()->FindFieldByName(std::string(rule.target)));
    return true;
  }
  return false;
}

/// Whether a field is in the outer V1 message for all types; these have been copied before.
bool is_common(std::string_view field) {
  return field == "name" || field == "type" || field == "blobs" || field == "blobs_lr" ||
         field == "weight_decay" || field == "hdf5_output_param";
}

Status upgrade_layer(V1* layer, NetUpgrade* upgrade) {
  V0 old;
  old.Swap(layer->mutable_layer());
  layer->clear_layer();
  const auto* type = std::find_if(kTypes.begin(), kTypes.end(),
                                  [&](const TypeRule& t) { return t.v0 == old.type(); });
  if (!old.type().empty() && type == kTypes.end()) {
    return invalid_argument(
        fmt::format("Unknown layer name: {} (layer '{}')", old.type(), old.name()));
  }
  if (type != kTypes.end()) layer->set_type(type->v1);
  if (old.has_name()) layer->set_name(old.name());
  layer->mutable_blobs()->Swap(old.mutable_blobs());
  layer->mutable_blobs_lr()->Swap(old.mutable_blobs_lr());
  layer->mutable_weight_decay()->Swap(old.mutable_weight_decay());
  if (old.has_hdf5_output_param()) {
    *layer->mutable_hdf5_output_param() = old.hdf5_output_param();
  }
  std::vector<const pb::FieldDescriptor*> fields;
  old.GetReflection()->ListFields(old, &fields);
  for (const pb::FieldDescriptor* field : fields) {
    if (is_common(field->name()) || place_field(old, field, layer)) continue;
    upgrade->notes.push_back(fmt::format("layer '{}': a {} layer has no {}; ignored", layer->name(),
                                         old.type(), field->name()));
    upgrade->complete = false;
  }
  return {};
}

/// Passes the pad of a padding layer to the layer that reads it as bottom `index`.
Status absorb_padding(const V1& padding, V1* reader, int index) {
  const std::string& type = reader->layer().type();
  if (type != "conv" && type != "pool") {
    return invalid_argument(fmt::format(
        "padding layer '{}' feeds layer '{}' of type {}; only conv and pool can take it",
        padding.layer().name(), reader->layer().name(), type));
  }
  if (padding.bottom_size() != 1 || padding.top_size() != 1 || reader->bottom_size() != 1) {
    return invalid_argument(fmt::format(
        "padding layer '{}' and its reader '{}' must have exactly one bottom, the former one top",
        padding.layer().name(), reader->layer().name()));
  }
  reader->mutable_layer()->set_pad(padding.layer().pad());
  reader->set_bottom(index, padding.bottom(0));
  return {};
}

}  // namespace

Status upgrade_v0(caffe::NetParameter* net, NetUpgrade* upgrade) {
  std::map<std::string, int> producers;  // blob -> index of the last layer with this top
  for (int i = 0; i < net->layers_size(); ++i) {
    V1* layer = net->mutable_layers(i);
    for (int b = 0; b < layer->bottom_size(); ++b) {
      const auto producer = producers.find(layer->bottom(b));
      if (producer == producers.end()) continue;  // a net input, or reported as unknown later
      const V1& source = net->layers(producer->second);
      if (source.layer().type() == "padding") CFT_TRY(absorb_padding(source, layer, b));
    }
    for (const std::string& top : layer->top()) producers[top] = i;
  }

  google::protobuf::RepeatedPtrField<V1> kept;
  upgrade->origin.clear();
  for (int i = 0; i < net->layers_size(); ++i) {
    if (net->layers(i).layer().type() == "padding") continue;
    V1* layer = kept.Add();
    layer->Swap(net->mutable_layers(i));
    if (layer->has_layer()) CFT_TRY(upgrade_layer(layer, upgrade));
    upgrade->origin.push_back(i);
  }
  net->mutable_layers()->Swap(&kept);
  return {};
}

}  // namespace cafetiere
