// SPDX-License-Identifier: Apache-2.0
// PlanSet: the plans of a net, one for each batch size in use.
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

/// The last batch of an epoch may have fewer rows; it uses a plan of that size, created on first
/// use.
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
  /// another plan runs: the plans share memory.
  Result<Plan*> at(int64_t rows);
  const Graph& graph() const { return *graph_; }
  /// Drops the plans; later ones are compiled for this device, which must outlive this object.
  void use(Device* device) {
    plans_.clear();
    device_ = device;
  }
  /// Total bytes of the plans' arenas.
  int64_t bytes() const;

 private:
  /// Whether a batch of `rows` is one of the net's own size, whose plan is `full`.
  Result<bool> is_full(const Plan& full, int64_t rows);

  const Graph* graph_;
  Device* device_;
  ParamPointers params_;
  bool backward_, updates_;
  std::map<int64_t, std::unique_ptr<Plan>> plans_;
  int64_t full_rows_ = 0;  ///< 0: not known yet
};

/// The addresses of these tops of data layers in a plan; null for a top that the plan does not use.
std::vector<float*> tops_of(const Plan& plan, const std::vector<std::string>& names);

/// Fills the tops of a feed with its source's batch for a sub-step.
Status fill_plan(const Plan& plan, const Feed& feed, int shard, int64_t sub_step);

/// Copies values that the source has filled to the tops of a feed.
void feed_plan(const Plan& plan, const Feed& feed, std::span<float* const> tops);

}  // namespace cafetiere
