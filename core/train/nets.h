// SPDX-License-Identifier: Apache-2.0
// The nets that a solver names: the training net and the test nets.
#pragma once

#include <vector>

#include "core/model/prototxt.h"

namespace cafetiere {

/// A net and the state (phase, level, stages) in which it is used.
struct NetChoice {
  NetText net;
  caffe::NetState state;
  std::string origin;  ///< the solver field that names it, worded as in Caffe's log
};

/// The training net: exactly one of net, net_param, train_net and train_net_param. `given` replaces
/// all of them if it is not null. Its batches have the solver's batch_size, if that is not 0.
Result<NetChoice> training_net(const SolverText& solver, const NetText* given);

/// The test nets in Caffe's order: test_net_param, test_net, then net or net_param for the
/// remaining entries of test_iter. With `given`, that net for each test_iter (at least once).
Result<std::vector<NetChoice>> test_nets(const SolverText& solver, const NetText* given);

/// Whether the solver names separate test nets.
bool has_test_nets(const caffe::SolverParameter& solver);

/// The solver with the nets that it names by file embedded, in order of precedence, for use where
/// the files are not available.
Result<caffe::SolverParameter> with_nets_inside(const SolverText& solver);

}  // namespace cafetiere
