// SPDX-License-Identifier: Apache-2.0
#include "core/model/upgrade.h"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "core/model/dialects.h"

namespace cafetiere {
namespace {

namespace pb = google::protobuf;
using V1 = caffe::V1LayerParameter;

constexpr std::array<std::pair<V1::LayerType, const char*>, 47> kTypeNames = {{
    {V1::NONE, ""},
    {V1::ABSVAL, "AbsVal"},
    {V1::ACCURACY, "Accuracy"},
    {V1::ARGMAX, "ArgMax"},
    {V1::BNLL, "BNLL"},
    {V1::CONCAT, "Concat"},
    {V1::CONTRASTIVE_LOSS, "ContrastiveLoss"},
    {V1::CONVOLUTION, "Convolution"},
    {V1::DATA, "Data"},
    {V1::DECONVOLUTION, "Deconvolution"},
    {V1::DROPOUT, "Dropout"},
    {V1::DUMMY_DATA, "DummyData"},
    {V1::EUCLIDEAN_LOSS, "EuclideanLoss"},
    {V1::ELTWISE, "Eltwise"},
    {V1::EXP, "Exp"},
    {V1::FLATTEN, "Flatten"},
    {V1::HDF5_DATA, "HDF5Data"},
    {V1::HDF5_OUTPUT, "HDF5Output"},
    {V1::HINGE_LOSS, "HingeLoss"},
    {V1::IM2COL, "Im2col"},
    {V1::IMAGE_DATA, "ImageData"},
    {V1::INFOGAIN_LOSS, "InfogainLoss"},
    {V1::INNER_PRODUCT, "InnerProduct"},
    {V1::LRN, "LRN"},
    {V1::MEMORY_DATA, "MemoryData"},
    {V1::MULTINOMIAL_LOGISTIC_LOSS, "MultinomialLogisticLoss"},
    {V1::MVN, "MVN"},
    {V1::POOLING, "Pooling"},
    {V1::POWER, "Power"},
    {V1::RELU, "ReLU"},
    {V1::SIGMOID, "Sigmoid"},
    {V1::SIGMOID_CROSS_ENTROPY_LOSS, "SigmoidCrossEntropyLoss"},
    {V1::SILENCE, "Silence"},
    {V1::SOFTMAX, "Softmax"},
    {V1::SOFTMAX_LOSS, "SoftmaxWithLoss"},
    {V1::SPLIT, "Split"},
    {V1::SLICE, "Slice"},
    {V1::TANH, "TanH"},
    {V1::WINDOW_DATA, "WindowData"},
    {V1::THRESHOLD, "Threshold"},
    {V1::CROP, "Crop"},
    {V1::INTERP, "Interp"},
    {V1::IMAGE_SEG_DATA, "ImageSegData"},
    {V1::SEG_ACCURACY, "SegAccuracy"},
    {V1::BN, "BN"},
    {V1::UPSAMPLE, "Upsample"},
    {V1::DENSE_IMAGE_DATA, "DenseImageData"},
}};

const char* type_name(V1::LayerType type) {
  const auto* entry = std::find_if(kTypeNames.begin(), kTypeNames.end(),
                                   [&](const auto& e) { return e.first == type; });
  return entry == kTypeNames.end() ? "" : entry->second;
}

/// Moves image fields of old data messages to the layer's transform_param.
template <class DataMessage>
void move_transform(DataMessage* data, V1* layer) {
  if (data->has_scale()) layer->mutable_transform_param()->set_scale(data->scale());
  if (data->has_mean_file()) layer->mutable_transform_param()->set_mean_file(data->mean_file());
  if (data->has_crop_size()) layer->mutable_transform_param()->set_crop_size(data->crop_size());
  if (data->has_mirror()) layer->mutable_transform_param()->set_mirror(data->mirror());
  data->clear_scale();
  data->clear_mean_file();
  data->clear_crop_size();
  data->clear_mirror();
}

void upgrade_transform(V1* layer) {
  if (layer->type() == V1::DATA) move_transform(layer->mutable_data_param(), layer);
  if (layer->type() == V1::IMAGE_DATA) move_transform(layer->mutable_image_data_param(), layer);
  if (layer->type() == V1::WINDOW_DATA) move_transform(layer->mutable_window_data_param(), layer);
}

caffe::ParamSpec* param_spec(caffe::LayerParameter* layer, int index) {
  while (layer->param_size() <= index) layer->add_param();
  return layer->mutable_param(index);
}

/// Merges names, share modes and multipliers, four parallel lists in V1, into a list of ParamSpec.
void upgrade_params(const V1& old, caffe::LayerParameter* layer) {
  for (int i = 0; i < old.param_size(); ++i) param_spec(layer, i)->set_name(old.param(i));
  for (int i = 0; i < old.blob_share_mode_size(); ++i) {
    const bool strict = old.blob_share_mode(i) == V1::STRICT;
    param_spec(layer, i)->set_share_mode(strict ? caffe::ParamSpec::STRICT
                                                : caffe::ParamSpec::PERMISSIVE);
  }
  for (int i = 0; i < old.blobs_lr_size(); ++i) param_spec(layer, i)->set_lr_mult(old.blobs_lr(i));
  for (int i = 0; i < old.weight_decay_size(); ++i) {
    param_spec(layer, i)->set_decay_mult(old.weight_decay(i));
  }
}

void upgrade_v1_layer(V1* old, caffe::LayerParameter* layer) {
  upgrade_transform(old);
  layer->set_type(type_name(old->type()));
  upgrade_params(*old, layer);
  layer->mutable_blobs()->Swap(old->mutable_blobs());  // move the weights instead of copying them

  std::vector<const pb::FieldDescriptor*> fields;
  old->GetReflection()->ListFields(*old, &fields);
  for (const pb::FieldDescriptor* field : fields) {
    const pb::FieldDescriptor* same =
        caffe::LayerParameter::descriptor()->FindFieldByName(field->name());
    if (same != nullptr && same->type() == field->type() &&
        same->message_type() == field->message_type()) {
      copy_field(*old, field, layer, same);
    }
  }
}

/// Replaces `input` fields with shapes by an Input layer at the front; drops them if there are no
/// shapes.
bool upgrade_input(caffe::NetParameter* net) {
  const bool has_shape = net->input_shape_size() > 0 || net->input_dim_size() > 0;
  if (net->input_size() > 0 && has_shape) {
    caffe::LayerParameter* layer = net->add_layer();
    layer->set_name("input");
    layer->set_type("Input");
    for (int i = 0; i < net->input_size(); ++i) {
      layer->add_top(net->input(i));
      caffe::BlobShape* shape = layer->mutable_input_param()->add_shape();
      if (net->input_shape_size() > 0) {
        *shape = net->input_shape(i);
      } else {
        for (int d = 0; d < 4; ++d) shape->add_dim(net->input_dim(4 * i + d));
      }
    }
    auto* layers = net->mutable_layer();
    for (int i = layers->size() - 1; i > 0; --i) layers->SwapElements(i, i - 1);
  }
  net->clear_input();
  net->clear_input_shape();
  net->clear_input_dim();
  return has_shape;
}

Status check_input(const caffe::NetParameter& net) {
  const int inputs = net.input_size();
  if (net.input_shape_size() > 0 && net.input_shape_size() != inputs) {
    return invalid_argument(fmt::format("{} input fields but {} input_shape; give one for each",
                                        inputs, net.input_shape_size()));
  }
  // If input_shape is set, input_dim is ignored.
  if (net.input_shape_size() == 0 && net.input_dim_size() > 0 &&
      net.input_dim_size() != 4 * inputs) {
    return invalid_argument(fmt::format("{} input fields but {} input_dim; give four for each",
                                        inputs, net.input_dim_size()));
  }
  return {};
}

/// Marks BatchNorm's first three blobs as not learned: they are statistics, whatever the net says.
void freeze_batch_norm(caffe::NetParameter* net) {
  for (caffe::LayerParameter& layer : *net->mutable_layer()) {
    if (layer.type() != "BatchNorm" || layer.param_size() < 3) continue;
    for (int i = 0; i < 3; ++i) {
      layer.mutable_param(i)->set_lr_mult(0);
      layer.mutable_param(i)->set_decay_mult(0);
    }
  }
}

Status upgrade_layers(caffe::NetParameter* net, NetUpgrade* upgrade) {
  if (net->layer_size() > 0) {
    return invalid_argument(
        "the net has both \"layer\" and \"layers\" entries; write all of them as \"layer\"");
  }
  const bool v0 = std::any_of(net->layers().begin(), net->layers().end(),
                              [](const V1& layer) { return layer.has_layer(); });
  if (v0) CFT_TRY(upgrade_v0(net, upgrade));
  for (V1& layer : *net->mutable_layers()) upgrade_v1_layer(&layer, net->add_layer());
  net->clear_layers();
  upgrade->notes.push_back(v0 ? "upgraded from the V0 form of layers"
                              : "upgraded from the V1 form of layers");
  return {};
}

}  // namespace

void copy_field(const pb::Message& from, const pb::FieldDescriptor* field, pb::Message* to,
                const pb::FieldDescriptor* target) {
  const pb::Reflection* source = from.GetReflection();
  const pb::Reflection* sink = to->GetReflection();
  const int values = field->is_repeated() ? source->FieldSize(from, field) : 1;
  for (int i = 0; i < values; ++i) {
    if (field->message_type() != nullptr) {
      const pb::Message& value = field->is_repeated() ? source->GetRepeatedMessage(from, field, i)
                                                      : source->GetMessage(from, field);
      (target->is_repeated() ? sink->AddMessage(to, target) : sink->MutableMessage(to, target))
          ->CopyFrom(value);
    } else {  // via text, which is exact and converts between number types and enums
      std::string text;
      pb::TextFormat::PrintFieldValueToString(from, field, field->is_repeated() ? i : -1, &text);
      pb::TextFormat::Parser().ParseFieldValueFromString(text, target, to);
    }
  }
}

Result<NetUpgrade> upgrade_net(caffe::NetParameter* net) {
  NetUpgrade upgrade;
  CFT_TRY(check_input(*net));
  upgrade.origin.resize(static_cast<size_t>(std::max(net->layer_size(), net->layers_size())));
  std::iota(upgrade.origin.begin(), upgrade.origin.end(), 0);
  if (net->layers_size() > 0) CFT_TRY(upgrade_layers(net, &upgrade));
  if (net->input_size() > 0) {
    const bool made = upgrade_input(net);
    if (made) upgrade.origin.insert(upgrade.origin.begin(), -1);
    upgrade.notes.push_back(made ? "turned the input fields into an Input layer"
                                 : "dropped the input fields, which have no shape");
  }
  CFT_TRY(translate_dialects(net, &upgrade));
  freeze_batch_norm(net);
  return upgrade;
}

Status upgrade_solver(caffe::SolverParameter* solver) {
  if (!solver->has_solver_type()) return {};
  if (solver->has_type()) {
    return invalid_argument("both solver_type and type are given; keep type");
  }
  constexpr std::array kNames = {"SGD", "Nesterov", "AdaGrad", "RMSProp", "AdaDelta", "Adam"};
  solver->set_type(kNames[static_cast<size_t>(solver->solver_type())]);
  solver->clear_solver_type();
  return {};
}

}  // namespace cafetiere
