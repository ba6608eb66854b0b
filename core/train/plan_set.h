// SPDX-License-Identifier: Apache-2.0
// PlanSet: the plans of one net, one for each batch size that has occurred.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/plan/plan.h"

namespace cafetiere {

/// A source and the layer that it feeds, or `tops` of several layers in the source's order.
struct Feed {
  std::string layer;
  class Source* source = nullptr;
  std::vector<std::string> tops = {};
};

/// The tail of an epoch has fewer rows; it runs through a plan of its own size, made on first use.
class PlanSet {
 public:
  /// All must outlive this object.
  PlanSet(const Graph* graph, Device* device, ParamPointers params, bool backward,
          bool updates = false)
      : graph_(graph),
        device_(device),
        params_(std::move(params)),
        backward_(backward),
        updates_(updates) {}

  /// The plan for a batch of `rows`; 0 = the net's own batch size. A plan's results are valid until
  /// another one runs: the plans share their memory.
  Result<Plan*> at(int64_t rows);
  const Graph& graph() const { return *graph_; }
  /// Bytes of all plans' arenas.
  int64_t bytes() const;

 private:
  const Graph* graph_;
  Device* device_;
  ParamPointers params_;
  bool backward_, updates_;
  std::map<int64_t, std::unique_ptr<Plan>> plans_;
};

/// Where a plan has these tops of its data layers; null of one that it does not compute with.
std::vector<float*> tops_of(const Plan& plan, const std::vector<std::string>& names);

/// Fills the tops of a feed with its source's batch of a sub-step.
Status fill_plan(const Plan& plan, const Feed& feed, int shard, int64_t sub_step);

/// Copies what its source has filled to the tops of a feed.
void feed_plan(const Plan& plan, const Feed& feed, std::span<float* const> tops);

}  // namespace cafetiere
