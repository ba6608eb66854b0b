// SPDX-License-Identifier: Apache-2.0
// Which form of convolution a shape gets, by what was measured (docs/decisions/0005).
#include "core/device/cpu/convolution.h"

#include "core/device/cpu/channel_lanes.h"
#include "core/device/cpu/cpu_device.h"

namespace cafetiere {
namespace {

enum class Form { kReference, kImageLanes, kChannelLanes, kDepthwise };

/// With fewer images a vector of them would be part empty.
constexpr int64_t kImages = 8;

/// Whether channels fill vectors of 8, or are so many that the last one does not matter.
bool fills(int64_t channels) { return channels % 8 == 0 || channels >= 64; }

/// `g` must be planar.
Form choose(const ConvGeometry& g) {
  constexpr int64_t kMaxRows = 64, kMaxTaps = 256;
  if (g.spatial() != 2) return Form::kReference;
  if (g.group > 1 && g.group == g.channels && g.group == g.outputs) return Form::kDepthwise;
  const bool wide =
      fills(g.outputs / g.group) && (fills(g.channels / g.group) || channel_lanes::narrow(g));
  if ((wide || g.n < kImages) && g.kernel[0] <= kMaxRows) return Form::kChannelLanes;
  return g.kernel_size() <= kMaxTaps ? Form::kImageLanes : Form::kReference;
}

/// The data gradient of a narrow source has no channels to fill its lanes.
Form choose_backward_data(const ConvGeometry& g) {
  const Form form = choose(g);
  const bool swap = form == Form::kChannelLanes && channel_lanes::narrow(g) && g.n >= kImages &&
                    g.kernel_size() <= 256;
  return swap ? Form::kImageLanes : form;
}

}  // namespace

void CpuDevice::convolution(Program& p, const std::string& name, const ConvGeometry& geometry,
                            TensorId src, TensorId weights, TensorId bias, TensorId dst,
                            bool relu) {
  const ConvGeometry g = planar(geometry);
  switch (choose(g)) {
    case Form::kReference:
      return RefDevice::convolution(p, name, geometry, src, weights, bias, dst, relu);
    case Form::kImageLanes:
      return image_lanes::convolution(p, name, g, src, weights, bias, dst, relu);
    case Form::kChannelLanes:
      return channel_lanes::convolution(p, name, g, src, weights, bias, dst, relu);
    case Form::kDepthwise:
      return depthwise::convolution(p, name, g, src, weights, bias, dst, relu);
  }
}

void CpuDevice::convolution_backward_data(Program& p, const std::string& name,
                                          const ConvGeometry& geometry, TensorId diff_dst,
                                          TensorId weights, TensorId diff_src) {
  const ConvGeometry g = planar(geometry);
  switch (choose_backward_data(g)) {
    case Form::kReference:
      return RefDevice::convolution_backward_data(p, name, geometry, diff_dst, weights, diff_src);
    case Form::kImageLanes:
      return image_lanes::backward_data(p, name, g, diff_dst, weights, diff_src);
    case Form::kChannelLanes:
      return channel_lanes::backward_data(p, name, g, diff_dst, weights, diff_src);
    case Form::kDepthwise:
      return depthwise::backward_data(p, name, g, diff_dst, weights, diff_src);
  }
}

void CpuDevice::convolution_backward_weights(Program& p, const std::string& name,
                                             const ConvGeometry& geometry, TensorId src,
                                             TensorId diff_dst, Gradient diff_weights) {
  const ConvGeometry g = planar(geometry);
  switch (choose(g)) {
    case Form::kReference:
      return RefDevice::convolution_backward_weights(p, name, geometry, src, diff_dst,
                                                     diff_weights);
    case Form::kImageLanes:
      return image_lanes::backward_weights(p, name, g, src, diff_dst, diff_weights);
    case Form::kChannelLanes:
      return channel_lanes::backward_weights(p, name, g, src, diff_dst, diff_weights);
    case Form::kDepthwise:
      return depthwise::backward_weights(p, name, g, src, diff_dst, diff_weights);
  }
}

}  // namespace cafetiere
