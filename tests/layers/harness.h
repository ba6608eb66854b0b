// SPDX-License-Identifier: Apache-2.0
// The layer test harness: a net of Input layers and the layers under test is run on every device.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/plan/plan.h"

namespace cafetiere {

/// Named tensors: "y" = a top, "x diff" = an input's gradient, "conv[0] diff" = a parameter's.
using Figures = std::map<std::string, std::vector<float>>;

/// A layer as prototxt, its name being "L" unless the wires give another one.
std::string layer(const std::string& type, const std::string& wires,
                  const std::string& fields = "");
/// An Input layer of one top.
std::string input(const std::string& top, const std::vector<int64_t>& dims);

/// A net and memory for its parameters. Its gradients go down to its inputs, unless it says itself
/// by propagate_down where they go.
class TestNet {
 public:
  static Result<std::unique_ptr<TestNet>> build(const std::string& layers, caffe::Phase phase);

  const Graph& graph() const { return graph_; }
  std::span<float> param(size_t i) { return part(data_, i); }
  std::span<float> param_diff(size_t i) { return part(diff_, i); }
  /// A plan whose outputs' gradients are given by the caller, unless it has none.
  Result<std::unique_ptr<Plan>> plan(Device& device, int64_t batch, bool backward = true);

 private:
  explicit TestNet(Graph graph);
  std::span<float> part(std::vector<float>& arena, size_t i);
  Graph graph_;
  std::vector<float> data_, diff_;
};

/// What to check of a net, and at which sizes.
struct LayerCase {
  std::string layers;
  caffe::Phase phase = caffe::TRAIN;
  std::vector<int64_t> batches = {5, 33};  ///< besides the one that the net states
  int labels = 0;                          ///< inputs named "label" hold integers in [0, labels)
  bool numeric = true;  ///< the gradients are also checked by differences; outputs named "mask" and
                        ///< inputs named "label" have none
};

/// Devices agree, threads do not matter, gradients are replaced or added to as asked, and they are
/// those of the function (central differences on the reference device).
void check_layer(const LayerCase& c);

/// All tops and gradients for random values: one pass, then `passes - 1` that accumulate.
Figures random_figures(const LayerCase& c, Device& device, int64_t batch, int threads, int passes);

/// The tops for given inputs; inputs that are not given stay 0, parameters are 0.5.
Figures evaluate(const std::string& layers, const Figures& inputs, caffe::Phase phase,
                 Device& device, const RunContext& context = {});

/// |actual - expected| <= relative * |expected| + relative / 10 * the largest |expected|.
void expect_close(const std::vector<float>& actual, const std::vector<float>& expected,
                  double relative, const std::string& what);

/// The same figures, bit for bit.
void expect_same_bits(const Figures& got, const Figures& expected);

/// Why a net is refused; empty when it is not.
std::string refusal(const std::string& layers, caffe::Phase phase = caffe::TRAIN);

}  // namespace cafetiere
