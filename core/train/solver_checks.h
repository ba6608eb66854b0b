// SPDX-License-Identifier: Apache-2.0
// What every way to run a solver requires of its parameters and losses.
#pragma once

#include <string_view>

#include "core/base/status.h"
#include "core/graph/graph.h"
#include "core/model/prototxt.h"

namespace cafetiere {

/// An error naming the field if iter_size or average_loss is below 1, test_interval or a test_iter is
/// negative, or a word (eval_type, ap_version, precision) is not known.
Status check_solver(const caffe::SolverParameter& solver);

/// An error naming two layers with weights that have one name: snapshots and test nets find a layer's
/// weights by its name, so that those of the second would be lost.
Status check_layer_names(const Graph& graph);

/// An error if the loss of an iteration is not a finite number; `whose` is "", or such as
/// " of shard 3".
Status check_loss(double loss, int iter, std::string_view whose = "");

}  // namespace cafetiere
