// SPDX-License-Identifier: Apache-2.0
// Sync: how the shards of one training agree on one set of weights. One file per mode.
//
// Training runs in rounds: each of a rank's shards in turn does the same number of iterations, then
// all ranks exchange. Weights, gradients and history are flat arrays, laid out as the net's
// parameters are.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/log.h"
#include "core/base/shard_range.h"
#include "core/base/status.h"
#include "core/base/thread_pool.h"
#include "core/comm/compress.h"
#include "core/comm/group.h"
#include "core/model/proto/caffe.pb.h"
#include "core/solver/arena_update.h"
#include "core/sync/mode_state.h"

namespace cafetiere {

class TimeAccount;
class Trace;

/// What clipping did in an iteration: the gradients' norm and the factor applied to them.
struct Clipping {
  float norm = 0, factor = 1;
};

/// What every mode works on. All that is pointed to outlives the mode.
struct SyncContext {
  Group* group = nullptr;  ///< null is one rank
  int shards = 1;          ///< of all ranks
  int64_t floats = 0;      ///< parameters
  float clip = -1;         ///< clip_gradients; < 0: off
  ThreadPool* pool = nullptr;
  Logger log = {};
  Trace* trace = nullptr;          ///< the timeline; may be null
  TimeAccount* account = nullptr;  ///< of the rank's time; may be null
  uint64_t seed = 1;
  std::vector<MatrixRange> matrices = {};  ///< the parameters, for compression
};

/// How the gradients of a process's shards are applied.
class ShardUpdate {
 public:
  virtual ~ShardUpdate() = default;

  /// The shards whose gradients this process computes.
  virtual ShardRange shards() const = 0;
  /// The shards whose gradients form each step with `shard`'s; their rows are normalised together.
  virtual ShardRange step_group(int shard) const = 0;

  /// Before a shard's iterations of a round: copies its weights to `weights`.
  virtual void begin_shard(int shard, std::span<float> weights) = 0;
  /// During backward of the last pass of an iteration of the last shard: its gradient is final from
  /// float `from` on. Does not wait.
  virtual void final_from(std::span<float> gradient, size_t from) = 0;
  /// Takes the gradient of one iteration; `loss` is the shard's mean. Where shards train on their
  /// own this makes the step; elsewhere the last shard's `gradient` must stay until end_round().
  virtual Status gradient(const UpdateStep& step, double loss, std::span<float> gradient,
                          std::span<float> weights) = 0;
  /// After a shard's iterations of a round.
  virtual Status end_shard(int shard, std::span<float> weights) = 0;
};

/// A mode. Nothing has a default: a mode that wraps another could forget to forward it.
class Sync : public ShardUpdate {
 public:
  /// Iterations of the round that begins with iteration `iter`.
  virtual int round_length(int iter) const = 0;
  /// Ends the round whose last iteration is `step`: `weights` become those that the ranks agree on.
  /// `gradient` is that of the last shard; it is overwritten. Every rank calls it.
  virtual Status end_round(const UpdateStep& step, std::span<float> gradient,
                           std::span<float> weights) = 0;

  /// Whether the ranks may wait for each other between rounds. If not, each reports and tests its
  /// own part, and no rank needs the others to be alive.
  virtual bool is_synchronous() const = 0;
  /// Whether the ranks hold the same weights between rounds.
  virtual bool replicas_equal() const = 0;
  /// Before weights are tested or written: sets rank 0's to the result of the training so far.
  /// `end` is true once, after the last round. Every rank calls it.
  virtual Status consolidate(bool end, std::span<float> weights) = 0;
  /// What each rank passes, of any length, by rank; empty for lost ranks. Every rank calls it once,
  /// after consolidate(true) and the last show_state(): after it no rank of an asynchronous mode
  /// needs another.
  virtual Result<std::vector<std::vector<std::byte>>> gather_at_end(
      std::span<const std::byte> mine) = 0;

  /// Of the last iteration; the factor is 1 if nothing was clipped.
  virtual const Clipping& last_clipping() const = 0;

  /// Whether this rank tests and stores for all: rank 0 or, where a mode goes on without it, the first
  /// that lives.
  virtual bool is_leader() const = 0;
  /// Calls `use` on the leader with the mode's state, between rounds. Every rank calls it; in a
  /// synchronous mode each rank that keeps a part of the state returns an error if `use` failed.
  virtual Status show_state(const StateUse& use) = 0;
  /// The state with which this rank continues in another group after this one failed; the mode
  /// cannot be used afterwards. Null in a mode that does not allow survivors (modes.h).
  virtual std::unique_ptr<ModeState> own_state() = 0;
  /// Continues from a state of any mode: what another mode kept beside the history is ignored. The
  /// arrays fit the net and the solver.
  virtual Status restore(ModeState& state) = 0;
};

/// Checks the settings of `solver.sync()`; an error names the field and the nearest valid word.
Status check_sync(const caffe::SyncParameter& sync);

/// Merges settings given as text, which take precedence, into a solver's own: "mode: 'average'
/// period: 20", or a mode alone, "average". Errors give the position in `source`.
Status merge_sync(std::string_view text, const std::string& source, caffe::SyncParameter* sync);

/// The same from a DeepSpark parameter file (DeepSparkParam); the mode becomes "easgd".
Status merge_deepspark(std::string_view text, const std::string& source,
                       caffe::SyncParameter* sync);

/// Creates the solver's update.
using UpdateMaker = std::function<Result<ArenaUpdate>()>;

/// Creates the mode that `sync` names. Every rank calls it.
Result<std::unique_ptr<Sync>> make_sync(const caffe::SyncParameter& sync,
                                        const SyncContext& context, const UpdateMaker& update);

}  // namespace cafetiere
