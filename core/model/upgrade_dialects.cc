// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "core/model/dialects.h"

namespace cafetiere {
namespace {

/// Converts ceil_mode, the forks' name for Caffe's `round_mode`.
Status read_ceil_mode(caffe::PoolingParameter* p) {
  if (!p->has_ceil_mode()) return {};
  const auto mode = p->ceil_mode() ? caffe::PoolingParameter::CEIL : caffe::PoolingParameter::FLOOR;
  if (p->has_round_mode() && p->round_mode() != mode) {
    return invalid_argument(
        "ceil_mode and round_mode contradict each other, and forks differ in which wins; keep one");
  }
  p->set_round_mode(mode);
  p->clear_ceil_mode();
  return {};
}

/// Converts hole, and hole or dilation with _h and _w, to dilation with one value or one per axis.
Status read_dilation(caffe::ConvolutionParameter* p) {
  const bool hole_hw = p->has_hole_h() || p->has_hole_w();
  const bool dilation_hw = p->has_dilation_h() || p->has_dilation_w();
  if (int(p->hole_size() > 0) + int(hole_hw) + int(dilation_hw) + int(p->dilation_size() > 0) > 1) {
    return invalid_argument("hole and dilation mean the same; keep one of them");
  }
  if (p->hole_size() > 0) p->mutable_dilation()->Swap(p->mutable_hole());
  if (hole_hw || dilation_hw) {
    p->add_dilation(hole_hw ? (p->has_hole_h() ? p->hole_h() : 1)
                            : (p->has_dilation_h() ? p->dilation_h() : 1));
    p->add_dilation(hole_hw ? (p->has_hole_w() ? p->hole_w() : 1)
                            : (p->has_dilation_w() ? p->dilation_w() : 1));
  }
  p->clear_hole(), p->clear_hole_h(), p->clear_hole_w();
  p->clear_dilation_h(), p->clear_dilation_w();
  return {};
}

/// The numbers after `key` in a Python layer's YAML: `'feat_stride': 16`, `"scales": [8, 16]`,
/// `scales: !!python/tuple [8, 16]`, or a list with dashes. Empty if the key is missing.
std::vector<float> yaml_numbers(std::string_view yaml, std::string_view key) {
  std::vector<float> numbers;
  size_t at = yaml.find(key);
  if (at == std::string_view::npos) return numbers;
  at = yaml.find(':', at);
  if (at == std::string_view::npos) return numbers;
  std::string_view value = yaml.substr(at + 1);
  const auto skip = [&](std::string_view characters) {
    value.remove_prefix(std::min(value.find_first_not_of(characters), value.size()));
  };
  skip(" \t\r\n");
  constexpr std::string_view kTag = "!!python/tuple";
  if (value.starts_with(kTag)) {
    value.remove_prefix(kTag.size());
    skip(" \t\r\n");
  }
  if (value.starts_with("[") || value.starts_with("(")) {
    value = value.substr(1, value.find_first_of("])") - 1);  // may span several lines
  } else if (value.starts_with("- ")) {
    value = value.substr(0, value.find_first_not_of("-.0123456789 \t\r\n"));
  } else {
    value = value.substr(0, value.find_first_of(",}\r\n"));
  }
  for (const char* p = value.data(); p < value.data() + value.size();) {
    float number = 0;
    const auto read = std::from_chars(p, value.data() + value.size(), number);
    if (read.ec == std::errc()) numbers.push_back(number);
    p = read.ec == std::errc() ? read.ptr : p + 1;
  }
  return numbers;
}

/// Replaces Faster R-CNN's ProposalLayer, a Python 2 module with compiled parts, by the engine's
/// Proposal.
void read_proposal(caffe::LayerParameter* layer) {
  const std::string yaml = layer->python_param().param_str();
  caffe::ProposalParameter* p = layer->mutable_proposal_param();
  if (const auto stride = yaml_numbers(yaml, "feat_stride"); !stride.empty() && stride[0] >= 1) {
    p->set_feat_stride(uint32_t(stride[0]));
  }
  for (const float scale : yaml_numbers(yaml, "scales")) p->add_scale(scale);
  layer->clear_python_param();
}

/// Caffe's name for a layer's type; the type itself if it has only one name.
std::string translated_type(caffe::LayerParameter* layer) {
  const std::string& type = layer->type();
  if (type == "DepthwiseConvolution") return "Convolution";
  if (type == "ConvolutionDepthwise") {
    layer->mutable_convolution_param()->set_depthwise(true);
    return "Convolution";
  }
  if (type == "PriorBoxClustered") return "PriorBox";
  const caffe::PythonParameter& python = layer->python_param();
  if (type == "Python" && python.module() == "rpn.proposal_layer" &&
      python.layer() == "ProposalLayer") {
    read_proposal(layer);
    return "Proposal";
  }
  return type;
}

}  // namespace

Status translate_dialects(caffe::NetParameter* net, NetUpgrade* upgrade) {
  std::set<std::string> notes;
  for (caffe::LayerParameter& layer : *net->mutable_layer()) {
    const std::string type = translated_type(&layer);
    if (type != layer.type()) {
      notes.insert(fmt::format("read {} as {}", layer.type(), type));
      layer.set_type(type);
    }
    Status status;
    if (layer.has_pooling_param()) status = read_ceil_mode(layer.mutable_pooling_param());
    if (status.ok() && layer.has_convolution_param()) {
      status = read_dilation(layer.mutable_convolution_param());
    }
    CFT_TRY(std::move(status).with_context(fmt::format("layer '{}'", layer.name())));
  }
  upgrade->notes.insert(upgrade->notes.end(), notes.begin(), notes.end());
  return {};
}

}  // namespace cafetiere
