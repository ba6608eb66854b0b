// SPDX-License-Identifier: Apache-2.0
// debug_info: mean magnitudes of the values in a training net, layer by layer.
#pragma once

#include <memory>
#include <span>

#include "core/base/log.h"
#include "core/plan/net.h"
#include "core/plan/plan.h"

namespace cafetiere {

/// Runs a batch again through an eager net and logs what Caffe logs: the mean absolute values of
/// each top, bottom gradient, parameter and parameter gradient, and the norms of all parameters.
/// Random layers draw new values.
class DebugInfo {
 public:
  /// `graph` must be built like that of the trained net.
  static Result<std::unique_ptr<DebugInfo>> create(Graph graph, const Net::Options& options);

  /// Copies the batch from the plan's inputs, and the weights from its arena.
  Status log_pass(const Plan& plan, std::span<const float> weights, const Logger& log);

 private:
  explicit DebugInfo(std::unique_ptr<Net> net) : net_(std::move(net)) {}
  Status take_inputs(const Plan& plan);
  void log_forward(const Node& node, const Logger& log) const;
  void log_backward(const Node& node, const Logger& log) const;
  void log_norms(const Logger& log) const;

  std::unique_ptr<Net> net_;
};

}  // namespace cafetiere
