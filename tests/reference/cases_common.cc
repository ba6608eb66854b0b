// SPDX-License-Identifier: Apache-2.0
// Layers that rearrange, multiply, normalise or remember.
#include <fmt/format.h>

#include "tests/layers/harness.h"
#include "tests/reference/cases.h"

namespace cafetiere {
namespace {

const char* const kOneToOne = "bottom: 'x' top: 'y'";

std::string block(Draw& d) {
  return input("x", {d.integer(1, 5), d.integer(1, 6), d.integer(1, 6), d.integer(2, 6)});
}

ParityNet inner_product(Draw& d) {
  return {.text =
              block(d) + layer("InnerProduct", kOneToOne,
                               fmt::format("inner_product_param {{ num_output: {} axis: {} "
                                           "bias_term: {} transpose: {} }}",
                                           d.integer(1, 20), d.integer(0, 3), d.coin(), d.coin()))};
}

ParityNet embed(Draw& d) {
  const int rows = d.integer(2, 9);
  return {.text = input("label", {d.integer(1, 5), d.integer(1, 5)}) +
                  layer("Embed", "bottom: 'label' top: 'y' propagate_down: false loss_weight: 1",
                        fmt::format("embed_param {{ num_output: {} input_dim: {} bias_term: {} }}",
                                    d.integer(1, 9), rows, d.coin())),
          .classes = rows};
}

ParityNet concat(Draw& d) {
  const int axis = d.integer(0, 3), bottoms = d.integer(1, 4);
  std::string text, wires;
  for (int i = 0; i < bottoms; ++i) {
    std::vector<int64_t> dims = {3, 4, 2, 5};
    dims[size_t(axis)] = d.integer(1, 6);
    text += input(fmt::format("x{}", i), dims);
    wires += fmt::format("bottom: 'x{}' ", i);
  }
  return {.text =
              text + layer("Concat", wires + "top: 'y'",
                           fmt::format("concat_param {{ axis: {} }}", d.coin() ? axis : axis - 4))};
}

ParityNet slice(Draw& d) {
  const int axis = d.integer(0, 2);
  const std::string points = d.coin() ? "slice_point: 1 slice_point: 4" : "";
  return {.text = input("x", {6, 6, 6}) +
                  layer("Slice", "bottom: 'x' top: 'y0' top: 'y1' top: 'y2'",
                        fmt::format("slice_param {{ axis: {} {} }}", axis, points))};
}

ParityNet split(Draw& d) {
  return {.text = block(d) + layer("Split", "bottom: 'x' top: 'y0' top: 'y1' top: 'y2'")};
}

ParityNet flatten(Draw& d) {
  const int axis = d.integer(0, 3);
  return {.text = block(d) + layer("Flatten", kOneToOne,
                                   fmt::format("flatten_param {{ axis: {} end_axis: {} }}", axis,
                                               d.integer(axis, 3)))};
}

ParityNet reshape(Draw& d) {
  return {.text = input("x", {4, 6, 3, 2}) +
                  layer("Reshape", kOneToOne,
                        fmt::format("reshape_param {{ {} }}",
                                    d.pick({"shape { dim: 0 dim: -1 }",
                                            "shape { dim: 2 dim: 3 dim: -1 } axis: 1",
                                            "shape { dim: 3 dim: -1 } axis: 1 num_axes: 1",
                                            "shape { dim: 1 } axis: -1 num_axes: 0",
                                            "shape { dim: 0 dim: 0 dim: 6 }"})))};
}

ParityNet tile(Draw& d) {
  return {.text = block(d) + layer("Tile", kOneToOne,
                                   fmt::format("tile_param {{ axis: {} tiles: {} }}",
                                               d.integer(0, 3), d.integer(1, 4)))};
}

ParityNet arg_max(Draw& d) {
  const std::string axis = d.coin() ? fmt::format("axis: {}", d.integer(0, 2)) : "";
  return {.text = input("x", {5, 6, 7}) +
                  layer("ArgMax", kOneToOne,
                        fmt::format("argmax_param {{ {} top_k: {} out_max_val: {} }}", axis,
                                    d.integer(1, 4), d.coin())),
          .backward = false};
}

ParityNet reduction(Draw& d) {
  return {.text = block(d) + layer("Reduction", kOneToOne,
                                   fmt::format("reduction_param {{ operation: {} axis: {} "
                                               "coeff: {} }}",
                                               d.pick({"SUM", "ASUM", "SUMSQ", "MEAN"}),
                                               d.integer(0, 3), d.real(0.25, 2)))};
}

ParityNet softmax(Draw& d) {
  return {.text = block(d) + layer("Softmax", kOneToOne,
                                   fmt::format("softmax_param {{ axis: {} }}", d.integer(0, 3)))};
}

ParityNet batch_norm(Draw& d) {
  const std::string stored = d.coin() ? "" : fmt::format("use_global_stats: {}", d.coin());
  return {.text = input("x", {d.integer(3, 6), d.integer(1, 6), d.integer(2, 6), d.integer(2, 6)}) +
                  layer("BatchNorm", kOneToOne,
                        fmt::format("batch_norm_param {{ {} eps: {} moving_average_fraction: {} }}",
                                    stored, d.real(1e-3, 1e-1), d.real(0.5, 1))),
          .phase = d.coin() ? caffe::TRAIN : caffe::TEST};
}

ParityNet mvn(Draw& d) {
  return {.text = input("x", {d.integer(1, 4), d.integer(1, 4), d.integer(3, 7), d.integer(3, 7)}) +
                  layer("MVN", kOneToOne,
                        fmt::format("mvn_param {{ normalize_variance: {} across_channels: {} }}",
                                    d.coin(), d.coin()))};
}

ParityNet batch_reindex(Draw& d) {
  const int rows = d.integer(2, 6);
  return {.text = learned("x", {rows, d.integer(1, 5), d.integer(1, 5)}) +
                  input("label", {d.integer(1, 9)}) +
                  layer("BatchReindex",
                        "bottom: 'x' bottom: 'label' top: 'y' propagate_down: true "
                        "propagate_down: false loss_weight: 1"),
          .classes = rows};
}

ParityNet parameter(Draw& d) {
  return {.text = input("x", {2, 4}) + learned("p", {2, 4}) +
                  layer("Eltwise", "bottom: 'x' bottom: 'p' top: 'y'",
                        d.coin() ? "eltwise_param { operation: PROD }" : "")};
}

ParityNet just_input(Draw& d) {
  return {.text = block(d) + layer("Power", kOneToOne, "power_param { scale: 2 }")};
}

ParityNet silence(Draw& d) {
  return {.text = block(d) +
                  layer("Slice", "name: 'S' bottom: 'x' top: 'y' top: 'unused'",
                        "slice_param { axis: 3 slice_point: 1 }") +
                  layer("Silence", "bottom: 'unused'")};
}

/// Several steps of several streams, some of which begin anew.
ParityNet recurrent(Draw& d, const char* type) {
  const int steps = d.integer(1, 5), streams = d.integer(1, 4);
  std::string text =
      input("x", {steps, streams, d.integer(1, 7)}) + input("flag", {steps, streams});
  std::string wires = "bottom: 'x' bottom: 'flag' ";
  if (d.coin()) {
    text += input("x_static", {streams, d.integer(1, 5)});
    wires += "bottom: 'x_static' ";
  }
  return {.text =
              text + layer(type, wires + "top: 'y'",
                           fmt::format("recurrent_param {{ num_output: {} }}", d.integer(1, 6)))};
}

ParityNet lstm(Draw& d) { return recurrent(d, "LSTM"); }
ParityNet rnn(Draw& d) { return recurrent(d, "RNN"); }

ParityNet lstm_unit(Draw& d) {
  const int streams = d.integer(1, 5), size = d.integer(1, 7);
  return {.text = input("x_cell", {1, streams, size}) + input("x_gates", {1, streams, 4 * size}) +
                  input("flag", {1, streams}) +
                  layer("LSTMUnit",
                        "bottom: 'x_cell' bottom: 'x_gates' bottom: 'flag' "
                        "top: 'c' top: 'h'")};
}

}  // namespace

std::vector<ParityCase> common_cases() {
  return {{"InnerProduct", inner_product, 12},
          {"Embed", embed},
          {"Concat", concat},
          {"Slice", slice},
          {"Split", split, 2},
          {"Flatten", flatten},
          {"Reshape", reshape, 12},
          {"Tile", tile},
          {"ArgMax", arg_max, 12},
          {"Reduction", reduction, 12},
          {"Softmax", softmax},
          {"BatchNorm", batch_norm, 12},
          {"MVN", mvn, 8},
          {"BatchReindex", batch_reindex},
          {"Parameter", parameter, 3},
          {"Input", just_input, 2},
          {"Silence", silence, 2},
          {"LSTM", lstm},
          {"RNN", rnn},
          {"LSTMUnit", lstm_unit}};
}

}  // namespace cafetiere
