// SPDX-License-Identifier: Apache-2.0
// A solver as text: parsed, upgraded, its rule and its learning rates made.
#include "core/model/prototxt.h"
#include "core/solver/lr_policy.h"
#include "core/solver/update_rule.h"
#include "fuzz/targets.h"

void cafetiere::fuzz::solver_text(std::string_view bytes) {
  const auto solver = parse_solver(bytes, "solver");
  if (!solver.ok()) return;
  const auto rule = make_update_rule(solver->param);
  const auto policy = LrPolicy::create(solver->param);
  if (!policy.ok()) return;
  int step = 0;
  for (const int iter : {0, 1, 1000, 2147483647}) policy->rate(iter, &step);
}
