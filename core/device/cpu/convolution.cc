// SPDX-License-Identifier: Apache-2.0
// The forms of convolution in the order in which they are tried, chosen by measurement
// (docs/decisions/0005).
#include "core/device/cpu/convolution.h"

#include "core/device/cpu/bf16x6.h"
#include "core/device/cpu/cpu_device.h"
#include "core/device/cpu/forms.h"

namespace cafetiere {
namespace {

/// Kernels of 1 x 1 as inner products of pixels.
std::string declines_bf16x6(const ConvGeometry& g) {
  const auto product = bf16x6::of_pixels(g);
  return product ? bf16x6::declines(*product) : "not 1 x 1";
}
void pixel_product(Program& p, const std::string& name, const ConvGeometry& g, TensorId src,
                   TensorId weights, TensorId bias, TensorId dst, bool relu) {
  bf16x6::product(p, name, *bf16x6::of_pixels(g), src, weights, bias, dst, relu);
}
void pixel_backward_data(Program& p, const std::string& name, const ConvGeometry& g,
                         TensorId diff_dst, TensorId weights, TensorId diff_src) {
  bf16x6::backward_data(p, name, *bf16x6::of_pixels(g), diff_dst, weights, diff_src);
}
void pixel_backward_weights(Program& p, const std::string& name, const ConvGeometry& g,
                            TensorId src, TensorId diff_dst, Gradient diff_weights) {
  bf16x6::backward_weights(p, name, *bf16x6::of_pixels(g), src, diff_dst, diff_weights);
}

using ConvolutionForm = Form<ConvGeometry, TensorId /*src*/, TensorId /*weights*/,
                             TensorId /*bias*/, TensorId /*dst*/, bool /*relu*/>;
constexpr ConvolutionForm kBf16Convolution{"bfloat16", channels_last_bf16::declines,
                                           channels_last_bf16::convolution};
constexpr ConvolutionForm kBf16x6Convolution{"bf16x6", declines_bf16x6, pixel_product};
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
constexpr BackwardDataForm kBf16x6BackwardData{"bf16x6", declines_bf16x6, pixel_backward_data};
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
constexpr BackwardWeightsForm kBf16x6BackwardWeights{"bf16x6", declines_bf16x6,
                                                     pixel_backward_weights};
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
  emit_first(form_of(precision_, kBf16Convolution, &kBf16x6Convolution), kConvolution, p, name,
             planar(g), src, weights, bias, dst, relu);
}

void CpuDevice::convolution_backward_data(Program& p, const std::string& name,
                                          const ConvGeometry& g, TensorId diff_dst,
                                          TensorId weights, TensorId diff_src) {
  emit_first(form_of(precision_, kBf16BackwardData, &kBf16x6BackwardData), kBackwardData, p, name,
             planar(g), diff_dst, weights, diff_src);
}

void CpuDevice::convolution_backward_weights(Program& p, const std::string& name,
                                             const ConvGeometry& g, TensorId src, TensorId diff_dst,
                                             Gradient diff_weights) {
  emit_first(form_of(precision_, kBf16BackwardWeights, &kBf16x6BackwardWeights), kBackwardWeights,
             p, name, planar(g), src, diff_dst, diff_weights);
}

}  // namespace cafetiere
