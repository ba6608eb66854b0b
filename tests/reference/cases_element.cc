// SPDX-License-Identifier: Apache-2.0
// Layers that work element by element.
#include <fmt/format.h>

#include "tests/layers/harness.h"
#include "tests/reference/cases.h"

namespace cafetiere {
namespace {

/// An input of two to four axes.
std::string any_input(Draw& d, const std::string& name = "x") {
  std::vector<int64_t> dims;
  for (int axes = d.integer(2, 4); axes > 0; --axes) dims.push_back(d.integer(1, 7));
  return input(name, dims);
}

ParityNet element(Draw& d, const char* type, const std::string& fields = "",
                  const std::string& from = "x") {
  return {.text =
              any_input(d, from) + layer(type, fmt::format("bottom: '{}' top: 'y'", from), fields)};
}

ParityNet abs_val(Draw& d) { return element(d, "AbsVal"); }
ParityNet bnll(Draw& d) { return element(d, "BNLL"); }
ParityNet sigmoid(Draw& d) { return element(d, "Sigmoid"); }
ParityNet tanh(Draw& d) { return element(d, "TanH"); }

ParityNet relu(Draw& d) {
  return element(d, "ReLU",
                 fmt::format("relu_param {{ negative_slope: {} }}", d.coin() ? 0 : d.real(0, 1)));
}

ParityNet elu(Draw& d) {
  return element(d, "ELU", fmt::format("elu_param {{ alpha: {} }}", d.real(0.1, 2)));
}

ParityNet prelu(Draw& d) {
  return element(d, "PReLU", fmt::format("prelu_param {{ channel_shared: {} }}", d.coin()));
}

ParityNet power(Draw& d) {
  return element(d, "Power",
                 fmt::format("power_param {{ power: {} scale: {} shift: {} }}",
                             d.pick({0.0, 1.0, 2.0, -1.0, 0.75}), d.pick({0.0, 0.5, 1.0, 2.0}),
                             d.real(0.1, 1)),
                 "x_prob");
}

std::string base(Draw& d) { return d.coin() ? "" : fmt::format("base: {}", d.real(1.5, 4)); }

ParityNet exp(Draw& d) {
  return element(
      d, "Exp",
      fmt::format("exp_param {{ {} scale: {} shift: {} }}", base(d), d.real(-1, 1), d.real(-1, 1)));
}

ParityNet log(Draw& d) {
  return element(
      d, "Log",
      fmt::format("log_param {{ {} scale: {} shift: {} }}", base(d), d.real(0.5, 2), d.real(0, 1)),
      "x_prob");
}

ParityNet threshold(Draw& d) {
  ParityNet net =
      element(d, "Threshold", fmt::format("threshold_param {{ threshold: {} }}", d.real(-1, 1)));
  net.backward = false;
  return net;
}

/// Without its random mask: as in testing.
ParityNet dropout(Draw& d) {
  ParityNet net =
      element(d, "Dropout", fmt::format("dropout_param {{ dropout_ratio: {} }}", d.real(0.1, 0.9)));
  net.phase = caffe::TEST;
  return net;
}

ParityNet eltwise(Draw& d) {
  const int bottoms = d.integer(2, 4), kind = d.integer(0, 3);
  const std::vector<int64_t> dims = {d.integer(1, 4), d.integer(1, 6), d.integer(1, 7)};
  std::string text, wires, fields = kind == 0 ? "operation: PROD" : "operation: SUM";
  if (kind == 1) fields = "operation: MAX";
  if (kind == 0) fields += fmt::format(" stable_prod_grad: {}", d.coin());
  for (int i = 0; i < bottoms; ++i) {
    text += input(fmt::format("x{}", i), dims);
    wires += fmt::format("bottom: 'x{}' ", i);
    if (kind == 2) fields += fmt::format(" coeff: {}", d.real(-2, 2));
  }
  return {.text = text + layer("Eltwise", wires + "top: 'y'", "eltwise_param { " + fields + " }")};
}

/// Scale or Bias: learned over some axes, or by a second bottom.
ParityNet by_channels(Draw& d, const char* type, const std::string& message, const char* more) {
  const std::vector<int64_t> dims = {d.integer(1, 4), d.integer(1, 6), d.integer(1, 5),
                                     d.integer(1, 5)};
  const int axis = d.integer(0, 3), axes = d.integer(1, 4 - axis);
  std::string text = input("x", dims), wires = "bottom: 'x' ";
  if (d.coin()) {
    text += input("x_factor", {dims.begin() + axis, dims.begin() + axis + axes});
    wires += "bottom: 'x_factor' ";
  }
  return {.text = text + layer(type, wires + "top: 'y'",
                               fmt::format("{} {{ axis: {} num_axes: {} {} }}", message, axis, axes,
                                           more))};
}

ParityNet scale(Draw& d) {
  return by_channels(d, "Scale", "scale_param", d.coin() ? "bias_term: true" : "");
}
ParityNet bias(Draw& d) { return by_channels(d, "Bias", "bias_param", ""); }

}  // namespace

std::vector<ParityCase> element_cases() {
  return {{"AbsVal", abs_val},
          {"BNLL", bnll},
          {"Sigmoid", sigmoid},
          {"TanH", tanh},
          {"ReLU", relu},
          {"ELU", elu},
          {"PReLU", prelu},
          {"Power", power, 12},
          {"Exp", exp},
          {"Log", log},
          {"Threshold", threshold},
          {"Dropout", dropout},
          {"Eltwise", eltwise, 12},
          {"Scale", scale, 12},
          {"Bias", bias}};
}

}  // namespace cafetiere
