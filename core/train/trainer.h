// SPDX-License-Identifier: Apache-2.0
// Trainer: the training loop of one rank of any number of ranks.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/log.h"
#include "core/base/thread_pool.h"
#include "core/comm/group.h"
#include "core/comm/shared_memory.h"
#include "core/data/source.h"
#include "core/device/host_memory.h"
#include "core/device/precision.h"
#include "core/graph/graph.h"
#include "core/model/prototxt.h"
#include "core/model/solver_state.h"
#include "core/observe/events.h"
#include "core/observe/time_account.h"
#include "core/solver/lr_policy.h"
#include "core/sync/sync.h"
#include "core/train/checkpoint.h"
#include "core/train/debug_info.h"
#include "core/train/early_stopping.h"
#include "core/train/history.h"
#include "core/train/nets.h"
#include "core/train/plan_set.h"
#include "core/train/posterior.h"
#include "core/train/row_counts.h"
#include "core/train/tester.h"

namespace cafetiere {

struct TrainerOptions {
  SolverText solver;
  NetText net;  ///< used if `has_net`; otherwise the solver's net
  bool has_net = false;
  int shards = 1;
  /// Ranks may leave and join: each keeps its own rows as one shard, `shards` is ignored, and run()
  /// may be called again after a peer was lost. For modes whose replicas train independently.
  bool survivors = false;
  int threads = 1;
  int prefetch_threads = 1;      ///< threads preparing batches of rows, besides the net's
  uint64_t seed = 1;             ///< used for everything the solver's random_seed does not set
  int64_t max_iter = 0;          ///< 0 = the solver's
  int64_t checkpoint_every = 0;  ///< steps; 0 = the solver's `snapshot`
  bool snapshots = false;        ///< at the solver's `snapshot`, too, besides checkpoint_every
  std::string device = "cpu";    ///< or "ref"
  using FedShapes = std::map<std::string, std::vector<Shape>>;  ///< keyed by fed layer
  FedShapes train_shapes;
  std::vector<FedShapes> test_shapes;  ///< one per test net; empty if the nets declare all shapes
  Logger log;
  EventSink* events = nullptr;  ///< of rank 0; may be null
  TimeAccount time;             ///< of this rank, starting now
  Trace* trace = nullptr;       ///< the timeline; may be null
  /// Keep the state at the end of a run for state_bytes() and save(), even without snapshots.
  bool keep_state = false;
  /// With keep_state: a file for a state too large for state_bytes(); "" keeps it in memory.
  std::string large_state;
  /// Called on rank 0 with each checkpoint that the solver requests.
  std::function<Status(const Checkpoint&)> on_checkpoint;
};

/// The result of a run.
struct TrainingSummary {
  int64_t steps = 0;  ///< the iteration reached
  /// For each epoch begun in this run: rows used by all ranks that finished the run; with
  /// survivors, in all their runs.
  std::vector<int64_t> rows_per_epoch;
  double loss = 0, seconds = 0, rows_per_s = 0;
  double not_compute = 0;  ///< fraction of the time outside forward, backward, exchange and update
  int64_t peak_bytes = 0;  ///< this rank's parameters, gradients, history and blobs
  /// The time of each rank by activity, up to the end of the group; zeros for a lost rank.
  std::vector<TimeAccount::Seconds> rank_seconds;
};

class Trainer {
 public:
  static Result<std::unique_ptr<Trainer>> create(TrainerOptions options);

  const Graph& graph() const { return graph_; }
  const std::vector<Graph>& test_graphs() const { return test_graphs_; }
  const caffe::SolverParameter& solver() const { return options_.solver.param; }
  uint64_t seed() const { return seed_; }

  /// Copies weights by layer name; then, if a state is given, resumes from its iteration. run()
  /// reads the history.
  Status restore(const StoredWeights& weights, const std::shared_ptr<StateSource>& state = nullptr);

  /// Trains to max_iter. `group` may be null. `train` feeds the training net's sources, `tests[i]`
  /// those of test net i. Every rank calls it once. With `survivors`, ranks call it again with a
  /// new group after a call failed because a peer was lost or wants to join: training continues
  /// from the latest round of any rank in the group, and a new rank gets its weights from the
  /// others.
  Status run(Group* group, const std::vector<Feed>& train, const std::vector<TestFeed>& tests);

  /// From any thread: makes run() return after its current step or test batch, with a snapshot if
  /// snapshot_after_train is set. In a group only rank 0's request counts, and all ranks stop
  /// together at the next report.
  void request_stop() { stop_ = true; }
  /// The same for a checkpoint: run() takes it at that point, or once the ranks' weights are equal
  /// again, and continues; its final weights do not depend on it.
  void request_snapshot() { snapshot_now_ = true; }
  /// From any thread: run() fails with kCancelled at its next iteration or test batch.
  void cancel() { cancelled_ = true; }

  const TrainingSummary& summary() const { return summary_; }
  /// This rank's time by activity since its options were created; time after a run counts as
  /// storing. Call on the thread that runs it.
  TimeAccount::Seconds seconds() const { return options_.time.seconds(); }
  /// The tests seen by early stopping; empty if the solver does not ask for it. After a run the
  /// weights are those of the best test.
  const std::optional<EarlyStopping>& stopping() const { return stopping_; }
  /// From any thread: the rows that this rank has trained on in this run, or with survivors in all
  /// its runs, by epoch. A round's rows count when it ends, because an interrupted round is
  /// repeated.
  RowCounts::ByEpoch rows_used() const { return rows_used_.by_epoch(); }
  /// The progress of a run.
  struct Place {
    int64_t iter = 0;  ///< iterations done
    Activity doing = Activity::kStarting;
    int thread = 0;  ///< kernel thread id of the thread in run(); 0 outside
  };
  /// From any thread.
  Place place() const { return {place_iter_, options_.time.activity(), place_thread_}; }
  /// The weights after the last complete step, as a caffemodel.
  Result<std::string> model_bytes() const;
  /// On rank 0 with keep_state: the state at the end of the last run, as a solverstate.
  Result<std::string> state_bytes() const;
  /// Whether either of the two is too large for a string.
  bool needs_files() const;
  /// Writes both as HDF5 files, each unless its path is empty. May release the kept state.
  Status save(const std::string& model_path, const std::string& state_path);
  std::span<const float> weights() const { return {weights_.get(), size_t(graph_.arena_size())}; }

 private:
  struct Loop;  // one run: its feeds, counters and reports
  explicit Trainer(TrainerOptions options);
  Status build();
  Result<Precision> first_precision() const;
  Status use_precision(Precision precision);
  Status resume_precision(const std::string& stored);
  Status agree_on_precision(Group* group);
  Status build_tests(class Random& random);
  Status begin(Loop& loop);
  Result<class ImmediateUpdate*> make_mode(Loop& loop);
  Status one_round(Loop& loop);
  Status end_round(Loop& loop, const UpdateStep& last);
  Status report(Loop& loop, int iter, bool shown);
  Status hear_requests(Loop& loop);
  void log_outputs(const Loop& loop, std::span<const double> values);
  Result<RankTimes> rank_times(const Loop& loop, double elapsed);
  void send_progress(Loop& loop, int iter, double elapsed, std::span<const double> outputs,
                     RankTimes times);
  Status log_final_loss(Loop& loop);
  Result<std::shared_ptr<float>> allocate_shared_arena(int64_t floats);
  Result<NetChoice> training_choice() const;
  Result<Graph> training_graph(const NetChoice& choice) const;
  Status log_debug_info(const Plan& plan);
  Status test_all(Loop& loop);
  bool test_due(const Loop& loop) const;
  Status watch(const TestScores& scores);
  void take_best();
  /// The origin of a checkpoint request: none, a user or an option, or the solver's `snapshot`.
  enum class Asked { kNo, kYes, kSnapshot };
  Status take_checkpoint(Loop& loop, Asked asked, bool keep = false);
  Status keep_state(StateSource& state);
  Status check_cancelled() const;
  Status finish(Loop& loop);
  Status take_posteriors(Loop& loop);
  void count_rows(Loop& loop);
  Status sum_rows(Loop& loop);
  Status elect_source(Loop& loop);
  void note_round();
  void save_rollback_round(Loop& loop);
  Status consolidate(Loop& loop, bool end);
  bool stops(const Loop& loop) const;
  bool snapshot_due(Loop& loop);
  Status checkpoint_if_due(Loop& loop);

  std::span<float> weights_span() { return {weights_.get(), size_t(graph_.arena_size())}; }
  std::span<float> gradients_span() {
    return {gradients_.get(), gradients_ ? size_t(graph_.arena_size()) : 0};
  }

  TrainerOptions options_;
  uint64_t seed_ = 1;
  Graph graph_;
  std::vector<Graph> test_graphs_;
  std::unique_ptr<Device> device_;
  Precision precision_ = Precision::kFloat32;
  std::unique_ptr<ThreadPool> pool_;
  bool immediate_ = false;                      // the plans update the parameters (ImmediateUpdate)
  std::shared_ptr<float> weights_, gradients_;  // no gradients if immediate_
  std::vector<std::shared_ptr<SharedMemory>> shared_arenas_;  // of these, if peers may read them
  std::unique_ptr<PlanSet> plans_;
  std::vector<std::unique_ptr<Tester>> testers_;
  std::vector<std::vector<float>> test_params_;  // per test net, for layers not in the training net
  std::vector<EmbeddingPosterior> posteriors_;
  std::unique_ptr<DebugInfo> debug_info_;  // created on first use
  int iter_ = 0, current_step_ = 0;
  std::optional<EarlyStopping> stopping_;
  std::unique_ptr<ModeState> restored_;  // until run() takes it
  struct {
    int iter = 0, current_step = 0;
    std::vector<float> weights;
  } last_round_;  // with survivors: its end
  RowCounts rows_used_;
  TrainingSummary summary_;
  std::optional<SolverState> state_;  // with keep_state: at the end of a run
  bool state_on_disk_ = false;        // it is in options_.large_state
  std::atomic<bool> stop_{false}, snapshot_now_{false}, cancelled_{false};
  std::atomic<int> place_iter_{0}, place_thread_{0};
};

}  // namespace cafetiere
