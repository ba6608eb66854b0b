// SPDX-License-Identifier: Apache-2.0
// The forms of convolution in the order in which they are tried, chosen by measurement
// (docs/decisions/0005).
#include "core/device/cpu/convolution.h"

#include "core/device/cpu/cpu_device.h"
#include "core/device/cpu/forms.h"

namespace cafetiere {
namespace {

using ConvolutionForm = Form<ConvGeometry, TensorId /*src*/, TensorId /*weights*/,
                             TensorId /*bias*/, TensorId /*dst*/, bool /*relu*/>;
constexpr ConvolutionForm kBf16Convolution{"bfloat16", channels_last_bf16::declines,
                                           channels_last_bf16::convolution};
constexpr ConvolutionForm kConvolution[] = {
    {"depthwise", depthwise::declines, depthwise::convolution},
    {"Winograd", winograd::declines, winograd::convolution},
    {"channels last", channels_last::declines, channels_last::convolution},
    {"Winograd over images", winograd_images::declines, winograd_images::convolution},
    {"batch innermost", batch_innermost::declines, batch_innermost::convolution},
    reference_form<&RefDevice::convolution, ConvolutionForm>()};

using BackwardDataForm =
    Form<ConvGeometry, TensorId /*diff_dst*/, TensorId /*weights*/, TensorId /*diff_src*/>;
constexpr BackwardDataForm kBf16BackwardData{"bfloat16", channels_last_bf16::declines_backward_data,
                                             channels_last_bf16::backward_data};
constexpr BackwardDataForm kBackwardData[] = {
    {"depthwise", depthwise::declines, depthwise::backward_data},
    {"Winograd", winograd::declines_backward_data, winograd::backward_data},
    {"channels last", channels_last::declines_backward_data, channels_last::backward_data},
    {"batch innermost", batch_innermost::declines, batch_innermost::backward_data},
    reference_form<&RefDevice::convolution_backward_data, BackwardDataForm>()};

using BackwardWeightsForm =
    Form<ConvGeometry, TensorId /*src*/, TensorId /*diff_dst*/, Gradient /*diff_weights*/>;
constexpr BackwardWeightsForm kBf16BackwardWeights{"bfloat16",
                                                   channels_last_bf16::declines_backward_weights,
                                                   channels_last_bf16::backward_weights};
constexpr BackwardWeightsForm kBackwardWeights[] = {
    {"depthwise", depthwise::declines, depthwise::backward_weights},
    {"Winograd", winograd::declines_backward_weights, winograd::backward_weights},
    {"channels last", channels_last::declines, channels_last::backward_weights},
    {"Winograd over images", winograd_images::declines_backward_weights,
     winograd_images::backward_weights},
    {"dot products over images", image_dots::declines, image_dots::backward_weights},
    {"outputs innermost", batch_innermost::declines, batch_innermost::backward_weights},
    reference_form<&RefDevice::convolution_backward_weights, BackwardWeightsForm>()};

}  // namespace

void CpuDevice::convolution(Program& p, const std::string& name, const ConvGeometry& g,
                            TensorId src, TensorId weights, TensorId bias, TensorId dst,
                            bool relu) {
  emit_first(products_, kBf16Convolution, kConvolution, p, name, planar(g), src, weights, bias, dst,
             relu);
}

void CpuDevice::convolution_backward_data(Program& p, const std::string& name,
                                          const ConvGeometry& g, TensorId diff_dst,
                                          TensorId weights, TensorId diff_src) {
  emit_first(products_, kBf16BackwardData, kBackwardData, p, name, planar(g), diff_dst, weights,
             diff_src);
}

void CpuDevice::convolution_backward_weights(Program& p, const std::string& name,
                                             const ConvGeometry& g, TensorId src, TensorId diff_dst,
                                             Gradient diff_weights) {
  emit_first(products_, kBf16BackwardWeights, kBackwardWeights, p, name, planar(g), src, diff_dst,
             diff_weights);
}

}  // namespace cafetiere
