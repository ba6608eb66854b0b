// SPDX-License-Identifier: Apache-2.0
// EASGD: workers that train on their own, each coupled to a center variable (Zhang, Choromanska and
// LeCun, "Deep learning with Elastic Averaging SGD", 2015; asynchronous, as in DeepSpark).
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/comm/messenger.h"
#include "core/sync/center_variable.h"
#include "core/sync/replicas.h"
#include "core/sync/sync.h"

namespace cafetiere {

/// Each rank is one worker with one shard. When an exchange is due, it sends its weights w to the
/// ranks that store the slices of the center variable and receives the previous W:
///   worker w <- (1 - a) w + a W,   center W <- (1 - a f) W + a f w
/// No worker waits for a slower one; max_iter counts for each. If a rank is lost, so are its rows
/// and the updates of its slice, which the next living rank restarts from its own worker. After the
/// last round all living ranks synchronize and take the center variable as their weights.
///
/// Two runs need not give the same bits. A rank that is cut off from the others but alive considers
/// them lost and trains on alone.
class Easgd : public Sync {
 public:
  Easgd(const caffe::SyncParameter& sync, const SyncContext& context, ArenaUpdate update);
  /// Connects the ranks; every rank calls it, once, before anything else.
  Status open();

  ShardRange shards() const override { return replicas_.shards(); }
  ShardRange step_group(int shard) const override { return {shard, shard + 1}; }
  int round_length(int) const override { return clock_.remaining(); }
  void begin_shard(int shard, std::span<float> weights) override;
  void final_from(std::span<float>, size_t) override {}
  Status gradient(const UpdateStep& step, double loss, std::span<float> gradient,
                  std::span<float> weights) override;
  Status end_shard(int, std::span<float>) override { return {}; }
  Status end_round(const UpdateStep& step, std::span<float> gradient,
                   std::span<float> weights) override;
  bool is_synchronous() const override { return false; }
  bool replicas_equal() const override { return false; }
  Status consolidate(bool end, std::span<float> weights) override;
  Result<std::vector<std::vector<std::byte>>> gather_at_end(
      std::span<const std::byte> mine) override;
  const Clipping& last_clipping() const override { return replicas_.last_clipping(); }
  /// Calls `use` on the lowest living rank, without synchronizing: each worker's history is read in
  /// its current state, after however many iterations. That of a lost rank is zero.
  Status show_state(const StateUse& use) override;
  std::unique_ptr<ModeState> own_state() override;
  Status restore(ModeState& state) override;

  /// What this rank has done so far.
  struct Counts {
    int64_t made = 0;             ///< exchanges of its worker with the whole center
    std::vector<int64_t> served;  ///< exchanges that it answered as an owner, by slice
  };
  Counts counts() const { return {made_, center_.served()}; }

 private:
  class State;
  /// Phases of the training, which each rank reaches on its own schedule.
  enum Phase { kNone, kBegun, kFinished, kLeft };
  enum Topic : uint32_t { kExchange, kRead, kHistory, kReached };

  Result<Messenger::Bytes> answer(int peer, uint32_t topic, uint32_t index, Messenger::Bytes data);
  void note_loss(int peer, const Status& why);
  void note_reached(int peer, uint32_t phase, Messenger::Bytes given);
  Status begin(std::span<const float> weights);
  Status exchange(std::span<float> weights);
  Status exchange_with_center(Topic topic, std::span<const float> mine, std::span<float> theirs);
  Status ask(std::span<Messenger::Request> requests);
  Status reach(Phase phase, std::span<const std::byte> give = {});
  void log_losses();
  Status read_history(const StateArray& array, size_t begin, std::span<float> out);
  bool alive(int rank) const;
  int owner_of(int slice) const;
  bool is_leader() const;

  const SyncContext context_;
  const int rank_, ranks_;
  const Decay rate_;
  ExchangeClock clock_;
  CenterVariable center_;
  bool begun_ = false;
  int64_t iterations_ = 0;
  int64_t made_ = 0;
  std::vector<float> pulled_;  // the center before the last exchange

  std::mutex history_mutex_;  // guards the replica's history
  Replicas replicas_;

  std::mutex peers_mutex_;  // guards what follows, but for the messenger
  std::condition_variable peers_changed_;
  std::vector<int> reached_;             // the last phase of each rank
  std::vector<Messenger::Bytes> given_;  // what each sent with it
  std::vector<std::string> losses_;      // not logged yet: the training thread does

  std::unique_ptr<Messenger> messenger_;  // null: one rank. Last: its thread uses all of the above
};

/// EASGD over context.group; an error unless every rank has one shard. Every rank calls it.
Result<std::unique_ptr<Sync>> make_easgd(const caffe::SyncParameter& sync,
                                         const SyncContext& context, ArenaUpdate update);

}  // namespace cafetiere
