// SPDX-License-Identifier: Apache-2.0
// Layers that look at images.
#include <fmt/format.h>

#include "tests/layers/harness.h"
#include "tests/reference/cases.h"

namespace cafetiere {
namespace {

const char* const kVisionOneToOne = "bottom: 'x' top: 'y'";

std::string image(Draw& d, int channels, int smallest = 5) {
  return input("x", {d.integer(1, 4), channels, d.integer(smallest, smallest + 9),
                     d.integer(smallest, smallest + 9)});
}

/// Kernel, pad, stride and dilation in one of the ways to say them.
std::string window(Draw& d, bool dilate = true) {
  if (d.coin()) {
    return fmt::format("kernel_h: {} kernel_w: {} pad_h: {} pad_w: {} stride_h: {} stride_w: {}",
                       d.integer(1, 4), d.integer(1, 5), d.integer(0, 2), d.integer(0, 2),
                       d.integer(1, 3), d.integer(1, 2));
  }
  return fmt::format("kernel_size: {} pad: {} stride: {} dilation: {}", d.integer(1, 3),
                     d.integer(0, 2), d.integer(1, 3), dilate ? d.integer(1, 2) : 1);
}

ParityNet filters(Draw& d, const char* type) {
  const int groups = d.pick({1, 1, 2, 4}), each = d.integer(1, 5);
  const std::string text =
      image(d, groups * d.integer(1, 5)) +
      layer(type, kVisionOneToOne,
            fmt::format("convolution_param {{ num_output: {} group: {} bias_term: {} {} }}",
                        groups * each, groups, d.coin(), window(d)));
  return {.text = text};
}

ParityNet convolution(Draw& d) { return filters(d, "Convolution"); }
ParityNet deconvolution(Draw& d) { return filters(d, "Deconvolution"); }

ParityNet im2col(Draw& d) {
  return {.text = image(d, d.integer(1, 4)) +
                  layer("Im2col", kVisionOneToOne, "convolution_param { " + window(d) + " }")};
}

ParityNet pooling(Draw& d) {
  const bool maximum = d.coin();
  const int kernel = d.integer(2, 4);
  std::string fields = d.integer(0, 4) == 0
                           ? "global_pooling: true"
                           : fmt::format("kernel_size: {} stride: {} pad: {}", kernel,
                                         d.integer(1, kernel), d.integer(0, kernel - 1));
  fields += maximum ? " pool: MAX" : " pool: AVE";
  const std::string tops = maximum && d.coin() ? " top: 'mask'" : "";
  return {.text = image(d, d.integer(1, 5)) +
                  layer("Pooling", kVisionOneToOne + tops, "pooling_param { " + fields + " }")};
}

ParityNet lrn(Draw& d) {
  const bool within = d.coin();
  return {.text = image(d, d.integer(1, 9)) +
                  layer("LRN", kVisionOneToOne,
                        fmt::format("lrn_param {{ local_size: {} alpha: {} beta: {} k: {} "
                                    "norm_region: {} }}",
                                    d.pick({1, 3, 5}), d.real(0.1, 2), d.real(0.25, 1),
                                    within ? 1 : d.real(1, 3),
                                    within ? "WITHIN_CHANNEL" : "ACROSS_CHANNELS"))};
}

ParityNet spp(Draw& d) {
  return {.text = image(d, d.integer(1, 4), 8) +
                  layer("SPP", kVisionOneToOne,
                        fmt::format("spp_param {{ pyramid_height: {} pool: {} }}", d.integer(1, 3),
                                    d.pick({"MAX", "AVE"})))};
}

ParityNet crop(Draw& d) {
  const int axis = d.integer(1, 3), first = d.integer(0, 2), second = d.integer(0, 2);
  const std::string offsets = axis == 2 ? fmt::format("offset: {} offset: {}", first, second)
                                        : fmt::format("offset: {}", axis == 1 ? 0 : first);
  return {.text = input("x", {2, 4, 9, 8}) + input("like", {2, 3, 6, 5}) +
                  layer("Crop", "bottom: 'x' bottom: 'like' top: 'y'",
                        fmt::format("crop_param {{ axis: {} {} }}", axis, offsets))};
}

}  // namespace

std::vector<ParityCase> vision_cases() {
  return {{"Convolution", convolution, 12},
          {"Deconvolution", deconvolution, 12},
          {"Im2col", im2col},
          {"Pooling", pooling, 12},
          {"LRN", lrn},
          {"SPP", spp},
          {"Crop", crop}};
}

}  // namespace cafetiere
