// SPDX-License-Identifier: Apache-2.0
#include "core/train/plan_set.h"

#include <algorithm>
#include <cstring>

#include "core/data/source.h"

namespace cafetiere {
namespace {

const Plan::Blob* find_top(const Plan& plan, const std::string& name) {
  const auto found = std::ranges::find(plan.inputs(), name, &Plan::Blob::name);
  return found == plan.inputs().end() ? nullptr : &*found;
}

/// The inputs filled by a feed, in its source's order.
std::vector<const Plan::Blob*> inputs_of(const Plan& plan, const Feed& feed) {
  std::vector<const Plan::Blob*> inputs;
  for (const std::string& top : feed.tops) inputs.push_back(find_top(plan, top));
  if (!feed.tops.empty()) return inputs;
  for (const Plan::Blob& input : plan.inputs()) {
    if (input.layer == feed.layer) inputs.push_back(&input);
  }
  return inputs;
}

}  // namespace

/// The inputs tell: which of their axes is the batch is up to their layers.
Result<bool> PlanSet::is_full(const Plan& full, int64_t rows) {
  if (rows == full_rows_) return true;
  if (plans_.contains(rows) || full.inputs().empty()) return false;
  CFT_ASSIGN(const std::vector<Shape> shapes, graph_->infer(rows));
  for (const Plan::Blob& input : full.inputs()) {
    if (!(shapes[size_t(graph_->find_blob(input.name))] == input.shape)) return false;
  }
  full_rows_ = rows;
  return true;
}

Result<Plan*> PlanSet::at(int64_t rows) {
  if (rows != 0 && !plans_[0]) CFT_TRY(at(0).status());  // other plans share its memory
  const Plan* full = plans_[0].get();
  if (rows != 0) {
    CFT_ASSIGN(const bool same, is_full(*full, rows));
    if (same) rows = 0;
  }
  std::unique_ptr<Plan>& plan = plans_[rows];
  if (!plan) {
    CFT_ASSIGN(plan, Plan::compile(*graph_, *device_, params_,
                                   {.batch = rows,
                                    .backward = backward_,
                                    .outputs = {},
                                    .beside = full,
                                    .updates = updates_}));
  }
  return plan.get();
}

int64_t PlanSet::bytes() const {
  int64_t sum = 0;
  for (const auto& [rows, plan] : plans_) sum += plan ? plan->arena_bytes() : 0;
  return sum;
}

std::vector<float*> tops_of(const Plan& plan, const std::vector<std::string>& names) {
  std::vector<float*> tops;
  for (const std::string& name : names) {
    const Plan::Blob* input = find_top(plan, name);
    tops.push_back(input ? input->data : nullptr);
  }
  return tops;
}

Status fill_plan(const Plan& plan, const Feed& feed, int shard, int64_t sub_step) {
  std::vector<float*> tops;
  for (const Plan::Blob* input : inputs_of(plan, feed)) {
    tops.push_back(input ? input->data : nullptr);
  }
  return feed.source->fill(shard, sub_step, tops);
}

void feed_plan(const Plan& plan, const Feed& feed, std::span<float* const> tops) {
  const std::vector<const Plan::Blob*> inputs = inputs_of(plan, feed);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i]) continue;
    std::memcpy(inputs[i]->data, tops[i], size_t(inputs[i]->shape.count()) * sizeof(float));
  }
}

}  // namespace cafetiere
