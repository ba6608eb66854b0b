// SPDX-License-Identifier: Apache-2.0
// Tester: the mean outputs of a test net over rows or batches.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/thread_pool.h"
#include "core/comm/group.h"
#include "core/data/source.h"
#include "core/observe/events.h"
#include "core/train/mean_precision.h"
#include "core/train/output_values.h"
#include "core/train/plan_set.h"

namespace cafetiere {

/// The sources of a test net. A test runs `batches` sub-steps; consecutive tests continue where the
/// last one stopped, as in Caffe, unless `whole` is set: then every test uses the same batches.
struct TestFeed {
  std::vector<Feed> feeds;
  int64_t batches = 0;
  bool whole = false;
};

/// A value of an output blob (OutputValues): the blob's name, the mean and its weight in the
/// objective.
struct TestOutput {
  std::string blob;
  double mean = 0;
  float loss_weight = 0;
};

struct TestScores {
  std::vector<TestOutput> outputs;        ///< one per value of the net's outputs, in order
  double loss = 0;                        ///< the mean objective
  std::map<int, double> precisions = {};  ///< for detections: per class
  bool interrupted = false;               ///< go_on() returned false; the rest is undefined
};

/// The ranks and shards of a test.
struct TestRun {
  using GoOn = std::function<Result<bool>()>;
  Group* group = nullptr;
  int shards = 1;
  uint64_t seed = 1;
  std::optional<PrecisionForm> detections = {};  ///< how to reduce outputs that are detections
  GoOn go_on;  ///< called before each batch; must return true if there are several ranks; may be
               ///< empty
};

/// " (* 0.3 = 0.12 loss)" for an output that is part of the objective, as in Caffe's log.
std::string loss_note(float weight, double value);

class Tester {
 public:
  Tester(const Graph* graph, Device* device, ParamPointers params)
      : plans_(graph, device, std::move(params), false) {}

  /// Runs test number `index`. Every rank runs its own shards; the means are over all ranks' rows
  /// and equal on every rank.
  Result<TestScores> run(const TestRun& run, const TestFeed& feed, int64_t index, ThreadPool& pool);
  const Graph& graph() const { return plans_.graph(); }
  void use(Device* device) { plans_.use(device); }

 private:
  Status add_batch(const TestRun& run, const TestFeed& feed, int shard, int64_t sub_step,
                   ThreadPool& pool, const OutputValues& values, std::span<double> sums);
  void keep_detections(const Plan& plan, const OutputValues& values);
  Status reduce_detections(const TestRun& run, const OutputValues& values, TestScores* scores);

  std::vector<std::vector<double>> detections_;  // per output: its rows in the current test
  PlanSet plans_;
};

}  // namespace cafetiere
