// SPDX-License-Identifier: Apache-2.0
// Sync: how the shards of one training come to one set of weights. One file a mode.
//
// The trainer goes through rounds. In a round each of a rank's shards in turn does the same number of
// iterations; then all ranks exchange. Weights, gradients and history are flat arrays, laid out as
// the net's parameters are.
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

class Trace;

/// What clipping did in an iteration: the gradients' norm and what they were multiplied by.
struct Clipping {
  float norm = 0, factor = 1;
};

/// What every mode works on. All that is pointed to outlives the mode.
struct SyncContext {
  Group* group = nullptr;  ///< null is one rank
  int shards = 1;          ///< of all ranks
  int64_t floats = 0;      ///< parameters
  float clip = -1;         ///< clip_gradients; < 0: not
  ThreadPool* pool = nullptr;
  Logger log = {};
  Trace* trace = nullptr;  ///< the timeline; may be null
  uint64_t seed = 1;
  std::vector<MatrixRange> matrices = {};  ///< the parameters, for compression
};

/// What becomes of the gradients of the shards that a process computes.
class ShardUpdate {
 public:
  virtual ~ShardUpdate() = default;

  /// The shards whose gradients this process computes.
  virtual ShardRange shards() const = 0;
  /// The shards that make each step together with `shard`; their rows share one normalisation.
  virtual ShardRange step_group(int shard) const = 0;

  /// Before a shard's iterations of a round: puts its weights into `weights`.
  virtual void begin_shard(int shard, std::span<float> weights) = 0;
  /// While the last pass of an iteration of the last shard goes backward: its gradient is final from
  /// float `from` on. Does not wait.
  virtual void final_from(std::span<float> gradient, size_t from) = 0;
  /// Takes the gradient of one iteration; `loss` is the shard's mean in it. Where shards train on
  /// their own this is the step; elsewhere the last shard's `gradient` must stay until the round ends.
  virtual Status gradient(const UpdateStep& step, double loss, std::span<float> gradient,
                          std::span<float> weights) = 0;
  /// After a shard's iterations of a round.
  virtual Status end_shard(int shard, std::span<float> weights) = 0;
};

/// A mode. Nothing has a default: a mode that is made of others would forget to hand it on.
class Sync : public ShardUpdate {
 public:
  /// Iterations of the round that begins with iteration `iter`.
  virtual int round_length(int iter) const = 0;
  /// Ends the round whose last iteration `step` is: `weights` become those that the ranks agree on.
  /// `gradient` is that of the last shard, used up. Every rank calls it.
  virtual Status end_round(const UpdateStep& step, std::span<float> gradient,
                           std::span<float> weights) = 0;

  /// Whether the ranks may wait for each other between rounds. If not, each reports and tests its own
  /// part, and no rank needs the others to be alive.
  virtual bool is_synchronous() const = 0;
  /// Whether the ranks hold the same weights between rounds.
  virtual bool replicas_equal() const = 0;
  /// Before weights are tested or written: rank 0's are to be those that the training stands for.
  /// `end` is true once, after the last round. Every rank calls it.
  virtual Status consolidate(bool end, std::span<float> weights) = 0;
  /// What each rank gives, of any length, by rank; nothing from those that are lost. Every rank calls
  /// it once, after consolidate(true) and the last show_state(): from then on no rank of a mode that does
  /// not meet needs another.
  virtual Result<std::vector<std::vector<std::byte>>> gather_at_end(
      std::span<const std::byte> mine) = 0;

  /// Of the last iteration; the factor is 1 where nothing was clipped.
  virtual const Clipping& last_clipping() const = 0;

  /// Calls `use` on rank 0 with what the mode keeps, between rounds; every rank calls it, and where
  /// they meet each learns whether `use` failed.
  virtual Status show_state(const StateUse& use) = 0;
  /// What this rank alone goes on with in another group, after this one broke and this mode is of no
  /// more use; null in a mode that does not allow survivors (modes.h).
  virtual std::unique_ptr<ModeState> own_state() = 0;
  /// Goes on from a state of any mode: what another mode kept beside the history is left out. The
  /// arrays fit the net and the solver.
  virtual Status restore(ModeState& state) = 0;
};

/// The settings of `solver.sync()`, checked; an error names the field and the nearest right word.
Status check_sync(const caffe::SyncParameter& sync);

/// Adds settings given as text to a solver's own, those in the text winning: "mode: 'average' period:
/// 20", or a mode alone, "average". Errors point at the spot in `source`.
Status merge_sync(std::string_view text, const std::string& source, caffe::SyncParameter* sync);

/// The same from a DeepSpark parameter file (DeepSparkParam); the mode becomes "easgd".
Status merge_deepspark(std::string_view text, const std::string& source,
                       caffe::SyncParameter* sync);

/// Makes the solver's update.
using UpdateMaker = std::function<Result<ArenaUpdate>()>;

/// The mode that `sync` names. Every rank calls it.
Result<std::unique_ptr<Sync>> make_sync(const caffe::SyncParameter& sync,
                                        const SyncContext& context, const UpdateMaker& update);

}  // namespace cafetiere
