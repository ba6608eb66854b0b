// SPDX-License-Identifier: Apache-2.0
#include "core/solver/update_rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "core/model/nearest.h"
#include "core/solver/rules.h"

namespace cafetiere {
namespace {

struct Rule {
  std::string_view name;
  RuleResult (*create)(const caffe::SolverParameter&);
};
constexpr Rule kRules[] = {
    {"SGD", create_sgd},         {"Nesterov", create_nesterov}, {"AdaGrad", create_adagrad},
    {"RMSProp", create_rmsprop}, {"AdaDelta", create_adadelta}, {"Adam", create_adam},
    {"AdamW", create_adamw},     {"LAMB", create_lamb},
};

}  // namespace

std::vector<std::string> update_rule_names() {
  std::vector<std::string> names;
  for (const Rule& rule : kRules) names.emplace_back(rule.name);
  return names;
}

RuleResult make_update_rule(const caffe::SolverParameter& solver) {
  const auto* rule = std::find_if(std::begin(kRules), std::end(kRules),
                                  [&](const Rule& r) { return r.name == solver.type(); });
  if (rule == std::end(kRules)) {
    const std::vector<std::string> names = update_rule_names();
    return invalid_argument(fmt::format("Unknown solver type: {} (known types: {}){}",
                                        solver.type(), fmt::join(names, ", "),
                                        did_you_mean(solver.type(), names)));
  }
  CFT_TRY(uses_l1(solver).status());
  return rule->create(solver);
}

Result<bool> uses_l1(const caffe::SolverParameter& solver) {
  const std::string& type = solver.regularization_type();
  if (type != "L1" && type != "L2" && solver.weight_decay() != 0) {
    return invalid_argument(
        fmt::format("Unknown regularization type: {}; regularization_type is L1 or L2", type));
  }
  return type == "L1";
}

Status refuse_momentum(const caffe::SolverParameter& solver) {
  if (solver.momentum() == 0) return {};
  return invalid_argument(
      fmt::format("Momentum cannot be used with {}; set momentum to 0 (it is {})", solver.type(),
                  solver.momentum()));
}

}  // namespace cafetiere
