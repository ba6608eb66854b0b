// SPDX-License-Identifier: Apache-2.0
// The tests of early stopping as both forms of a solver state store them.
#pragma once

#include "core/model/proto/caffe.pb.h"
#include "core/model/solver_state.h"

namespace cafetiere {

StoppingTests tests_from_proto(const caffe::StoppingState& proto);
void tests_to_proto(const StoppingTests& tests, caffe::StoppingState* proto);

}  // namespace cafetiere
