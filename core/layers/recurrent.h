// SPDX-License-Identifier: Apache-2.0
// Recurrent: a cell unrolled over time (backpropagation through time; Werbos 1990).
//
// Bottoms: x (T, N, ..), cont (T, N), which is 0 where a sequence begins [, x_static (N, ..), an
// input to every step] and, with expose_hidden, the initial h [and c] (1, N, D). Tops: the output
// (T, N, D) and, with expose_hidden, the final h [and c]. Blobs: W_x (gates D, I), b (gates D) [,
// W_static (gates D, S)], W_h (gates D, D). cont has no gradient.
#pragma once

#include <fmt/format.h>

#include <map>
#include <memory>

#include "core/device/row_major.h"
#include "core/layers/linear.h"
#include "core/layers/recurrent_cell.h"

namespace cafetiere {

/// The sizes of a recurrent layer.
struct RecurrentSizes {
  int64_t steps = 0, streams = 0;  ///< T and N
  int64_t inputs = 0, statics = 0, units = 0, gates = 0;
  bool has_static = false, exposed = false;

  int64_t rows() const { return steps * streams; }
  size_t first_state() const { return has_static ? 3 : 2; }  ///< index of a bottom
  size_t recurrent() const { return has_static ? 3 : 2; }    ///< index of W_h among the parameters
};

/// Checks the bottoms of a recurrent layer whose cell has `gates` gates and `states` state values
/// per unit (h alone, or h and c).
inline Result<RecurrentSizes> recurrent_sizes(const caffe::RecurrentParameter& p, int gates,
                                              int states, const std::vector<Shape>& bottoms,
                                              size_t tops) {
  RecurrentSizes z;
  z.units = p.num_output();
  z.gates = gates * z.units;
  z.exposed = p.expose_hidden();
  const size_t given = z.exposed ? size_t(states) : 0;
  if (z.units == 0) return invalid_argument("recurrent_param: num_output must be above 0");
  if (bottoms.size() < 2 + given || bottoms.size() > 3 + given || tops != 1 + given) {
    return invalid_argument(fmt::format(
        "{0} expose_hidden it takes x, cont, perhaps x_static{1} and gives 1 top{2}; it has {3} "
        "bottoms and {4} tops",
        z.exposed ? "with" : "without", given ? fmt::format(" and {} first state(s)", given) : "",
        given ? fmt::format(" and {} last state(s)", given) : "", bottoms.size(), tops));
  }
  const Shape& x = bottoms[0];
  if (x.axes() < 2 || x[0] < 1) {
    return invalid_argument("x must be (time, streams, ..), at least one step: not " + x.str());
  }
  z.steps = x[0], z.streams = x[1], z.inputs = x.count(2);
  if (!(bottoms[1] == Shape{z.steps, z.streams})) {
    return invalid_argument("cont must have shape " + Shape{z.steps, z.streams}.str() +
                            " as x has " + x.str() + "; it has " + bottoms[1].str());
  }
  z.has_static = bottoms.size() == 3 + given;
  if (z.has_static) {
    if (bottoms[2].axes() < 1 || bottoms[2][0] != z.streams) {
      return invalid_argument(fmt::format("x_static must have one row for each of {} streams: {}",
                                          z.streams, bottoms[2].str()));
    }
    z.statics = bottoms[2].count(1);
  }
  const Shape state{1, z.streams, z.units};
  for (size_t i = z.first_state(); i < bottoms.size(); ++i) {
    if (bottoms[i] == state) continue;
    return invalid_argument("a first state must have shape " + state.str() + ", not " +
                            bottoms[i].str());
  }
  return z;
}

/// h and c after the last step of a run, carried over to the next run of the same plan; initially
/// zero. They are kept per shard, so that results do not depend on which shards share a rank.
class StreamMemory {
 public:
  explicit StreamMemory(int64_t floats) : zeros_(size_t(floats)) {}
  std::vector<float>& of(const RunContext& run) {
    return shards_.try_emplace(run.shard, zeros_).first->second;
  }
  /// The state at the start of a run.
  const std::vector<float>& before(const RunContext& run) { return run.begins ? zeros_ : of(run); }

 private:
  std::vector<float> zeros_;
  std::map<int, std::vector<float>> shards_;
};

template <class Cell>
class Recurrent : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    const caffe::RecurrentParameter& p = param().recurrent_param();
    if (param().propagate_down_size() > 1 && param().propagate_down(1)) {
      return invalid_argument("cont has no gradient; set its propagate_down to false");
    }
    CFT_ASSIGN(const RecurrentSizes z,
               recurrent_sizes(p, Cell::kGates, kStates, s.bottoms, s.tops.size()));
    s.params.push_back({Shape{z.gates, z.inputs}, p.weight_filler()});
    s.params.push_back({Shape{z.gates}, p.bias_filler()});
    if (z.has_static) s.params.push_back({Shape{z.gates, z.statics}, p.weight_filler()});
    s.params.push_back({Shape{z.gates, z.units}, p.weight_filler()});
    add_output_params(s, z);
    s.tops[0] = {z.steps, z.streams, z.units};
    for (size_t i = 1; i < s.tops.size(); ++i) s.tops[i] = {1, z.streams, z.units};
    return {};
  }

  Status forward(LoweringContext& plan) const override {
    CFT_ASSIGN(const RecurrentSizes z, sizes(plan));
    const Shape of_units{z.rows(), z.units};
    plan.saved.assign(kSaved, kNoTensor);
    const auto memory = std::make_shared<StreamMemory>(kStates * z.streams * z.units);
    first_states(plan, z, memory);
    plan.saved[kHidden] = plan.new_tensor("h", of_units);
    plan.saved[kGates] = plan.saved[kHidden];
    if (Cell::kHasCell) {
      plan.saved[kCells] = plan.new_tensor("c", of_units);
      plan.saved[kGates] = plan.new_tensor("gates", {z.rows(), z.gates});
    }
    const TensorId from_x = input(plan, z).forward(plan, "input", plan.bottoms[0]);
    TensorId from_static = kNoTensor;
    if (z.has_static) from_static = fixed(plan, z).forward(plan, "static input", plan.bottoms[2]);
    for (int64_t t = 0; t < z.steps; ++t) {
      const TensorId before = plan.new_tensor("h before", {z.streams, z.units});
      hidden_before(plan, z, t, before, 0);
      const TensorId from_h = recurrent(plan, z).forward(plan, "recurrent input", before);
      step_forward(plan, z, t, {from_x, from_h, from_static});
    }
    last_states(plan, z, memory);
    output(plan, z, plan.saved[kHidden]);
    return {};
  }

  Status backward(LoweringContext& plan) const override {
    CFT_ASSIGN(const RecurrentSizes z, sizes(plan));
    const TensorId dh_top = output_backward(plan, z, plan.saved[kHidden]);
    const TensorId dgates = plan.new_tensor("gates diff", {z.rows(), z.gates});
    TensorId dh = last_state_diff(plan, z, 0), dc = last_state_diff(plan, z, 1);
    for (int64_t t = z.steps; t-- > 0;) {
      const TensorId here = plan.new_tensor("step gates diff", {z.streams, z.gates});
      dc = step_backward(plan, z, t, {dh_top, dh, dc}, dgates, here);
      if (t == 0 && !z.exposed) break;
      const TensorId before = recurrent(plan, z).backward(plan, "h diff", here);
      dh = plan.new_tensor("h before diff", {z.streams, z.units});
      reset(plan, z, t, before, 0, dh, 0);
    }
    if (z.exposed) {
      set_bottom_diff(plan, z.first_state(), dh);
      if (Cell::kHasCell) set_bottom_diff(plan, z.first_state() + 1, dc);
    }
    gradients(plan, z, dgates);
    return {};
  }

 protected:
  /// What follows h on the way to the top: nothing by default, an inner product in RNN.
  virtual void add_output_params(LayerShapes&, const RecurrentSizes&) const {}
  virtual void output(LoweringContext& plan, const RecurrentSizes&, TensorId hidden) const {
    plan.tops[0] = plan.program.reshaped(hidden, plan.top_shapes[0]);
  }
  /// The gradient of h from the top, or kNoTensor.
  virtual TensorId output_backward(LoweringContext& plan, const RecurrentSizes& z, TensorId) const {
    if (plan.top_diffs[0] == kNoTensor) return kNoTensor;
    return plan.program.reshaped(plan.top_diffs[0], {z.rows(), z.units});
  }

 private:
  static constexpr int kStates = Cell::kHasCell ? 2 : 1;
  /// Indices of LoweringContext::saved: the initial states, then h, c and gates of all steps.
  enum { kFirstHidden, kFirstCell, kHidden, kCells, kGates, kSaved };

  Result<RecurrentSizes> sizes(const LoweringContext& plan) const {
    std::vector<Shape> bottoms;
    for (size_t i = 0; i < plan.bottoms.size(); ++i) bottoms.push_back(plan.bottom_shape(i));
    return recurrent_sizes(param().recurrent_param(), Cell::kGates, kStates, bottoms,
                           plan.tops.size());
  }
  static Linear input(const LoweringContext& plan, const RecurrentSizes& z) {
    return {over_time(z, z.inputs), plan.params[0], plan.params[1]};
  }
  static Linear fixed(const LoweringContext& plan, const RecurrentSizes& z) {
    return {{z.streams, z.statics, z.gates}, plan.params[2]};
  }
  static Linear recurrent(const LoweringContext& plan, const RecurrentSizes& z) {
    InnerProductGeometry g{z.streams, z.units, z.gates};
    g.repeats = true;
    return {g, plan.params[z.recurrent()]};
  }
  /// All steps at once: the streams of a step are the rows of an image.
  static InnerProductGeometry over_time(const RecurrentSizes& z, int64_t inputs) {
    return {.n = z.rows(), .k = inputs, .outputs = z.gates, .inner = z.streams};
  }

  /// The states before the first step: bottoms, or the final states of the previous run.
  static void first_states(LoweringContext& plan, const RecurrentSizes& z,
                           const std::shared_ptr<StreamMemory>& memory) {
    const Shape shape{z.streams, z.units};
    for (int i = 0; i < kStates; ++i) {
      plan.saved[size_t(i)] =
          z.exposed ? plan.program.reshaped(plan.bottoms[z.first_state() + size_t(i)], shape)
                    : plan.new_tensor("first state", shape);
    }
    if (z.exposed) return;
    row_major_step(plan.program, plan.step("recall"), "copy", {},
                   {plan.saved.begin(), plan.saved.begin() + kStates}, [=](const RowMajor& at) {
                     return Kernel{1, [=](int) {
                                     const float* from = memory->before(*at.run).data();
                                     for (float* to : at.out) {
                                       std::copy_n(from, shape.count(), to);
                                       from += shape.count();
                                     }
                                   }};
                   });
  }

  /// The states after the last step: tops, or the initial states of the next run.
  static void last_states(LoweringContext& plan, const RecurrentSizes& z,
                          const std::shared_ptr<StreamMemory>& memory) {
    std::vector<TensorId> all{plan.saved[kHidden]}, tops;
    if (Cell::kHasCell) all.push_back(plan.saved[kCells]);
    for (size_t i = 1; i < plan.tops.size(); ++i) tops.push_back(plan.new_top(i));
    const int64_t count = z.streams * z.units, last = z.rows() * z.units - count;
    row_major_step(plan.program, plan.step("remember"), "copy", all, tops, [=](const RowMajor& at) {
      return Kernel{1, [=](int) {
                      float* kept = at.out.empty() ? memory->of(*at.run).data() : nullptr;
                      for (size_t i = 0; i < at.in.size(); ++i) {
                        float* to = kept ? kept + int64_t(i) * count : at.out[i];
                        std::copy_n(at.in[i] + last, count, to);
                      }
                    }};
    });
  }

  /// to[to_row + n] = cont[t][n] from[from_row + n] for all streams; 0 where cont is 0.
  static void reset(LoweringContext& plan, const RecurrentSizes& z, int64_t t, TensorId from,
                    int64_t from_row, TensorId to, int64_t to_row) {
    range_step(plan.program, plan.step("reset"), {plan.bottoms[1], from}, {to}, z.streams,
               [=](int64_t begin, int64_t end, const auto& in, const auto& out, const auto&) {
                 for (int64_t n = begin; n < end; ++n) {
                   const float cont = in[0][t * z.streams + n];
                   const float* x = in[1] + (from_row + n) * z.units;
                   float* y = out[0] + (to_row + n) * z.units;
                   CFT_INDEPENDENT
                   for (int64_t k = 0; k < z.units; ++k) y[k] = cont == 0 ? 0.F : cont * x[k];
                 }
               });
  }
  /// The previous hidden state as step t sees it, reset where a sequence begins.
  static void hidden_before(LoweringContext& plan, const RecurrentSizes& z, int64_t t, TensorId to,
                            int64_t to_row) {
    const TensorId from = plan.saved[t == 0 ? kFirstHidden : kHidden];
    reset(plan, z, t, from, t == 0 ? 0 : (t - 1) * z.streams, to, to_row);
  }

  /// inputs: the contributions of x, h and x_static to the gates.
  static void step_forward(LoweringContext& plan, const RecurrentSizes& z, int64_t t,
                           std::vector<TensorId> inputs) {
    const auto& saved = plan.saved;
    inputs.insert(inputs.end(), {plan.bottoms[1], t == 0 ? saved[kFirstCell] : kNoTensor});
    range_step(plan.program, plan.step("cell"), inputs,
               {saved[kGates], saved[kCells], saved[kHidden]}, z.streams,
               [=, forward = cell_passes<Cell>().forward](
                   int64_t begin, int64_t end, const auto& in, const auto& out, const auto&) {
                 for (int64_t n = begin; n < end; ++n) {
                   const int64_t row = t * z.streams + n;
                   const float *x = in[0] + row * z.gates, *h = in[1] + n * z.gates;
                   float* gates = out[0] + row * z.gates;
                   CFT_INDEPENDENT
                   for (int64_t k = 0; k < z.gates; ++k) gates[k] = x[k] + h[k];
                   const float* fixed = in[2] ? in[2] + n * z.gates : nullptr;
                   for (int64_t k = 0; fixed && k < z.gates; ++k) gates[k] += fixed[k];
                   const float* c_before = row_of(in[4], n, z.units);
                   if (t > 0) c_before = row_of(out[1], row - z.streams, z.units);
                   forward(z.units, in[3][row], c_before, gates, row_of(out[1], row, z.units),
                           out[2] + row * z.units);
                 }
               });
  }

  /// diffs: the gradients of h from the top, of h from the next step, and of c. Writes the gates'
  /// gradient twice, to dgates (all steps) and to `here` (this step), and returns the gradient of
  /// the previous c.
  static TensorId step_backward(LoweringContext& plan, const RecurrentSizes& z, int64_t t,
                                std::vector<TensorId> diffs, TensorId dgates, TensorId here) {
    const auto& saved = plan.saved;
    diffs.insert(diffs.end(), {plan.bottoms[1], saved[kGates], saved[kCells], saved[kFirstCell]});
    TensorId dc_before = kNoTensor;
    if (Cell::kHasCell) dc_before = plan.new_tensor("c diff", {z.streams, z.units});
    const TensorId dh = plan.new_tensor("h sum", {z.streams, z.units});
    range_step(plan.program, plan.step("cell backward"), diffs, {dgates, here, dc_before, dh},
               z.streams,
               [=, backward = cell_passes<Cell>().backward](
                   int64_t begin, int64_t end, const auto& in, const auto& out, const auto&) {
                 for (int64_t n = begin; n < end; ++n) {
                   const int64_t row = t * z.streams + n;
                   const float* top = row_of(in[0], row, z.units);
                   const float* next = row_of(in[1], n, z.units);
                   float* sum = out[3] + n * z.units;
                   for (int64_t k = 0; k < z.units; ++k) {
                     sum[k] = (top ? top[k] : 0.F) + (next ? next[k] : 0.F);
                   }
                   const float* c_before =
                       t == 0 ? row_of(in[6], n, z.units) : row_of(in[5], row - z.streams, z.units);
                   float* d = out[0] + row * z.gates;
                   backward(z.units, in[3][row], c_before, in[4] + row * z.gates,
                            row_of(in[5], row, z.units), sum, row_of(in[2], n, z.units), d,
                            row_of(out[2], n, z.units));
                   std::copy_n(d, z.gates, out[1] + n * z.gates);
                 }
               });
    return dc_before;
  }

  /// Row i of a matrix, nullptr if there is no matrix.
  template <class T>
  static T* row_of(T* matrix, int64_t i, int64_t cols) {
    return matrix ? matrix + i * cols : nullptr;
  }

  static TensorId last_state_diff(LoweringContext& plan, const RecurrentSizes& z, size_t state) {
    const size_t top = 1 + state;
    if (top >= plan.top_diffs.size() || plan.top_diffs[top] == kNoTensor) return kNoTensor;
    return plan.program.reshaped(plan.top_diffs[top], {z.streams, z.units});
  }
  static void set_bottom_diff(LoweringContext& plan, size_t i, TensorId diff) {
    if (!plan.propagate_down[i]) return;
    plan.bottom_diffs[i] = plan.program.reshaped(diff, plan.bottom_shape(i));
  }

  /// The gradients of weights and inputs, computed from those of all gates.
  static void gradients(LoweringContext& plan, const RecurrentSizes& z, TensorId dgates) {
    input(plan, z).gradients(plan, "input gradient", plan.bottoms[0], dgates, plan.param_diffs[0],
                             plan.param_diffs[1]);
    if (plan.propagate_down[0]) {
      set_bottom_diff(plan, 0, input(plan, z).backward(plan, "backward", dgates));
    }
    if (z.has_static) static_gradients(plan, z, dgates);
    const Gradient weights = plan.param_diffs[z.recurrent()];
    if (weights.tensor == kNoTensor) return;
    const TensorId before = plan.new_tensor("h before", {z.rows(), z.units});
    for (int64_t t = 0; t < z.steps; ++t) hidden_before(plan, z, t, before, t * z.streams);
    const Linear all{over_time(z, z.units)};
    all.gradients(plan, "recurrent gradient", before, dgates, weights);
  }

  static void static_gradients(LoweringContext& plan, const RecurrentSizes& z, TensorId dgates) {
    const TensorId sum = plan.new_tensor("static gates diff", {z.streams, z.gates});
    range_step(plan.program, plan.step("static sum"), {dgates}, {sum}, z.streams,
               [=](int64_t begin, int64_t end, const auto& in, const auto& out, const auto&) {
                 const int64_t from = begin * z.gates, to = end * z.gates;
                 std::fill(out[0] + from, out[0] + to, 0.F);
                 for (int64_t t = 0; t < z.steps; ++t) {
                   const float* d = in[0] + t * z.streams * z.gates;
                   CFT_INDEPENDENT
                   for (int64_t i = from; i < to; ++i) out[0][i] += d[i];
                 }
               });
    fixed(plan, z).gradients(plan, "static gradient", plan.bottoms[2], sum, plan.param_diffs[2]);
    if (!plan.propagate_down[2]) return;
    set_bottom_diff(plan, 2, fixed(plan, z).backward(plan, "static backward", sum));
  }
};

}  // namespace cafetiere
