// SPDX-License-Identifier: Apache-2.0
#include "core/train/plan_set.h"

#include <cstring>

#include "core/data/source.h"

namespace cafetiere {

Result<Plan*> PlanSet::at(int64_t rows) {
  if (rows != 0 && !plans_[0]) CFT_TRY(at(0).status());  // the tails' plans share its memory
  const Plan* full = plans_[0].get();
  if (full && !full->inputs().empty() && full->inputs()[0].shape.axes() > 0 &&
      full->inputs()[0].shape[0] == rows) {
    rows = 0;
  }
  std::unique_ptr<Plan>& plan = plans_[rows];
  if (!plan) {
    CFT_ASSIGN(
        plan, Plan::compile(*graph_, *device_, params_,
                            {.batch = rows, .backward = backward_, .outputs = {}, .beside = full}));
  }
  return plan.get();
}

int64_t PlanSet::bytes() const {
  int64_t sum = 0;
  for (const auto& [rows, plan] : plans_) sum += plan ? plan->arena_bytes() : 0;
  return sum;
}

Status fill_plan(const Plan& plan, const Feed& feed, int shard, int64_t sub_step) {
  std::vector<float*> tops;
  for (const Plan::Blob& input : plan.inputs()) {
    if (input.layer == feed.layer) tops.push_back(input.data);
  }
  return feed.source->fill(shard, sub_step, tops);
}

void feed_plan(Plan& plan, const std::string& layer, std::span<float* const> tops) {
  size_t top = 0;
  for (const Plan::Blob& input : plan.inputs()) {
    if (input.layer != layer) continue;
    std::memcpy(input.data, tops[top++], size_t(input.shape.count()) * sizeof(float));
  }
}

}  // namespace cafetiere
