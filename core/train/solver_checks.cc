// SPDX-License-Identifier: Apache-2.0
#include "core/train/solver_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/device/precision.h"
#include "core/train/mean_precision.h"

namespace cafetiere {

Status check_solver(const caffe::SolverParameter& solver) {
  if (solver.iter_size() < 1) return invalid_argument("iter_size must be at least 1");
  if (solver.average_loss() < 1) return invalid_argument("average_loss must be at least 1");
  if (solver.test_interval() < 0) return invalid_argument("test_interval must not be negative");
  if (std::ranges::any_of(solver.test_iter(), [](int batches) { return batches < 0; })) {
    return invalid_argument("test_iter must not be negative");
  }
  CFT_TRY(evaluates_detections(solver).status());
  CFT_TRY(precision_of(solver.precision()).status());
  return precision_form(solver).status();
}

Status check_layer_names(const Graph& graph) {
  std::set<std::string_view> names;
  for (const Node& node : graph.nodes()) {
    if (node.params.empty() || names.insert(node.param.name()).second) continue;
    return invalid_argument(
        fmt::format("two layers with weights are named '{}', and snapshots tell layers by their "
                    "names: rename one of them",
                    node.param.name()));
  }
  return {};
}

Status check_loss(double loss, int iter, std::string_view whose) {
  if (std::isfinite(loss)) return {};
  return invalid_argument(fmt::format(
      "the loss{} became {} at iteration {}: lower the learning rate (base_lr of a solver, --lr of "
      "fit) or, in a solver, set clip_gradients",
      whose, std::isnan(loss) ? "nan" : fmt::format("{}", loss), iter));
}

}  // namespace cafetiere
