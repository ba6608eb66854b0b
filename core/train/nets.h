// SPDX-License-Identifier: Apache-2.0
// The nets that a solver names: one to train, and those to test with.
#pragma once

#include <vector>

#include "core/model/prototxt.h"

namespace cafetiere {

/// A net and the state (phase, level, stages) in which it is used.
struct NetChoice {
  NetText net;
  caffe::NetState state;
  std::string origin;  ///< which field of the solver named it, in the words of Caffe's log
};

/// The training net: of net, net_param, train_net and train_net_param exactly one. `given` replaces
/// all of them when it is not null.
Result<NetChoice> training_net(const SolverText& solver, const NetText* given);

/// The test nets in Caffe's order: test_net_param, test_net, then net or net_param for what remains
/// of test_iter. With `given`, that net for each test_iter (at least once).
Result<std::vector<NetChoice>> test_nets(const SolverText& solver, const NetText* given);

/// Whether the solver has test nets of its own, beside what it trains.
bool has_test_nets(const caffe::SolverParameter& solver);

/// The solver with the nets inside it that it names by files, in the order in which they count, for
/// those who do not have the files.
Result<caffe::SolverParameter> with_nets_inside(const SolverText& solver);

}  // namespace cafetiere
