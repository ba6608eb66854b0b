// SPDX-License-Identifier: Apache-2.0
// LSTM and RNN, unrolled over time: ONNX's own operators cannot begin sequences within a batch, which
// is what Caffe's second bottom says. The state before the first step is zero, or a bottom; ONNX keeps
// none from run to run.
#include <fmt/format.h>

#include "core/onnx/families.h"

namespace cafetiere {
namespace {

constexpr int64_t kMaxSteps = 4096;  // a dozen nodes each

/// What a step needs beside the states: W_h, and the parts of x's and cont's values for each step.
struct Sequence {
  int64_t steps, streams, units;
  size_t recurrent;  // W_h among the parameters
  std::string weights;
  OnnxValues inputs, continues;
};

/// Empty where the state is zero.
struct State {
  std::string h, c;
};

/// Rows (steps * streams, columns) as one value for each step.
OnnxValues by_step(OnnxWriter& w, const std::string& rows, const Sequence& s) {
  const std::vector<int64_t> sizes(size_t(s.steps), s.streams);
  return w.nodes("Split", {rows, w.integers(sizes)}, sizes.size(), {{"axis", int64_t(0)}});
}

bool has_static(const ExportLayer& layer, size_t states) {
  const size_t given = layer.param.recurrent_param().expose_hidden() ? states : 0;
  return layer.bottoms.size() > 2 + given;
}

Result<Sequence> sequence(const ExportLayer& layer, OnnxWriter& w, size_t states) {
  const Shape& x = layer.bottom_shape();
  if (x[0] > kMaxSteps) {
    return invalid_argument(fmt::format(
        "it has {} steps, and ONNX's form one copy of its nodes for each; at most {} are written",
        x[0], kMaxSteps));
  }
  const bool fixed = has_static(layer, states);
  Sequence s{x[0], x[1], layer.top_shape()[2], fixed ? size_t(3) : size_t(2), "", {}, {}};
  const int64_t rows = s.steps * s.streams;
  s.inputs = by_step(w, layer.linear(w, w.reshape(layer.bottom(), {rows, x.count(2)}), 0, true), s);
  if (fixed) {
    const std::string flat = w.node("Flatten", {layer.bottoms[2]});
    const std::string summand = layer.linear(w, flat, 2, false);
    for (std::string& input : s.inputs) input = w.node("Add", {input, summand});
  }
  s.continues = by_step(w, w.reshape(layer.bottoms[1], {rows, 1}), s);
  s.weights = layer.constant(w, s.recurrent);
  return s;
}

/// The state before the first step.
State first_state(const ExportLayer& layer, OnnxWriter& w, const Sequence& s, size_t states) {
  if (!layer.param.recurrent_param().expose_hidden()) return {};
  const Shape shape{s.streams, s.units};
  const size_t first = layer.bottoms.size() - states;
  const auto value = [&](size_t i) { return w.reshape(layer.bottoms[first + i], shape); };
  return {value(0), states > 1 ? value(1) : ""};
}

/// The inputs of step t's gates: from x, and from h where the sequence goes on.
std::string gates(OnnxWriter& w, const Sequence& s, size_t t, const std::string& h) {
  if (h.empty()) return s.inputs[t];
  const std::string before = w.node("Mul", {s.continues[t], h});
  return w.node("Gemm", {before, s.weights, s.inputs[t]}, {{"transB", int64_t(1)}});
}

State lstm_step(OnnxWriter& w, const Sequence& s, size_t t, const State& before) {
  const std::vector<int64_t> sizes(4, s.units);
  const OnnxValues parts =
      w.nodes("Split", {gates(w, s, t, before.h), w.integers(sizes)}, 4, {{"axis", int64_t(1)}});
  const std::string in = w.node("Sigmoid", {parts[0]}), out = w.node("Sigmoid", {parts[2]});
  std::string c = w.node("Mul", {in, w.node("Tanh", {parts[3]})});
  if (!before.c.empty()) {
    const std::string forget = w.node("Sigmoid", {parts[1]});
    c = w.node("Add", {w.node("Mul", {w.node("Mul", {s.continues[t], forget}), before.c}), c});
  }
  return {w.node("Mul", {out, w.node("Tanh", {c})}), c};
}

State rnn_step(OnnxWriter& w, const Sequence& s, size_t t, const State& before) {
  return {w.node("Tanh", {gates(w, s, t, before.h)}), ""};
}

/// Runs all steps; gives the tops, of which the first is still h of all steps, as rows.
template <class Step>
OnnxValues unroll(const ExportLayer& layer, OnnxWriter& w, const Sequence& s, size_t states,
                  const Step& step) {
  State state = first_state(layer, w, s, states);
  OnnxValues hidden;
  for (size_t t = 0; t < size_t(s.steps); ++t) {
    state = step(w, s, t, state);
    hidden.push_back(state.h);
  }
  OnnxValues tops{w.node("Concat", hidden, {{"axis", int64_t(0)}})};
  const Shape last{1, s.streams, s.units};
  if (layer.top_shapes.size() > 1) tops.push_back(w.reshape(state.h, last));
  if (layer.top_shapes.size() > 2) tops.push_back(w.reshape(state.c, last));
  return tops;
}

Result<OnnxValues> lstm(const ExportLayer& layer, OnnxWriter& w) {
  CFT_ASSIGN(const Sequence s, sequence(layer, w, 2));
  OnnxValues tops = unroll(layer, w, s, 2, lstm_step);
  tops[0] = w.reshape(tops[0], layer.top_shape());
  return tops;
}

Result<OnnxValues> rnn(const ExportLayer& layer, OnnxWriter& w) {
  CFT_ASSIGN(const Sequence s, sequence(layer, w, 1));
  OnnxValues tops = unroll(layer, w, s, 1, rnn_step);
  const std::string out = w.node("Tanh", {layer.linear(w, tops[0], s.recurrent + 1, true)});
  tops[0] = w.reshape(out, layer.top_shape());
  return tops;
}

constexpr Exporter kRecurrentExporters[] = {{"LSTM", lstm, true}, {"RNN", rnn, true}};

}  // namespace

extern constinit const OnnxFamily onnx_recurrent{kRecurrentExporters, {}};

}  // namespace cafetiere
