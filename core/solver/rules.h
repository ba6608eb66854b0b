// SPDX-License-Identifier: Apache-2.0
// The available update rules. To add one, add a file with its class and create function, a
// declaration here and a line in the table of update_rule.cc.
#pragma once

#include <memory>

#include "core/base/status.h"
#include "core/solver/update_rule.h"

namespace cafetiere {

using RuleResult = Result<std::unique_ptr<UpdateRule>>;

RuleResult create_sgd(const caffe::SolverParameter& solver);
RuleResult create_nesterov(const caffe::SolverParameter& solver);
RuleResult create_adagrad(const caffe::SolverParameter& solver);
RuleResult create_rmsprop(const caffe::SolverParameter& solver);
RuleResult create_adadelta(const caffe::SolverParameter& solver);
RuleResult create_adam(const caffe::SolverParameter& solver);
RuleResult create_adamw(const caffe::SolverParameter& solver);
RuleResult create_lamb(const caffe::SolverParameter& solver);

/// An error if momentum is set for a rule whose formula has none.
Status refuse_momentum(const caffe::SolverParameter& solver);

}  // namespace cafetiere
