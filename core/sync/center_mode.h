// SPDX-License-Identifier: Apache-2.0
// CenterMode: what the asynchronous modes share. Each rank is a worker that trains on its own and
// never waits for a slower one; the center variable couples them.
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

/// Each rank is one worker with one shard, and owns a slice of the center variable. max_iter counts
/// for each worker. If a rank is lost, so are its rows and the updates of its slice, which the next
/// living rank restarts from its own worker. After the last round all living ranks synchronize and
/// take the center variable as their weights.
///
/// Two runs need not give the same bits. A rank that is cut off from the others but alive considers
/// them lost and trains on alone.
class CenterMode : public Sync {
 public:
  /// Connects the ranks; every rank calls it, once, before anything else.
  Status open();

  ShardRange shards() const override { return replicas_.shards(); }
  ShardRange step_group(int shard) const override { return {shard, shard + 1}; }
  void begin_shard(int shard, std::span<float> weights) override;
  void final_from(std::span<float>, size_t) override {}
  Status gradient(const UpdateStep& step, double loss, std::span<float> gradient,
                  std::span<float> weights) override;
  Status end_shard(int, std::span<float>) override { return {}; }
  bool is_synchronous() const override { return false; }
  bool replicas_equal() const override { return false; }
  Status consolidate(bool end, std::span<float> weights) override;
  Result<std::vector<std::vector<std::byte>>> gather_at_end(
      std::span<const std::byte> mine) override;
  const Clipping& last_clipping() const override { return replicas_.last_clipping(); }
  /// Of the living ranks the lowest.
  bool is_leader() const override;
  /// Calls `use` on the leader, without synchronizing: each worker's history is read in
  /// its current state, after however many iterations. That of a lost rank is zero.
  Status show_state(const StateUse& use) override;
  std::unique_ptr<ModeState> own_state() override;
  Status restore(ModeState& state) override;

  /// What this rank has done so far.
  struct Counts {
    int64_t made = 0;             ///< changes of the whole center by its worker
    std::vector<int64_t> served;  ///< changes that it made as an owner, by slice
  };
  Counts counts() const { return {made_, center_.served()}; }

 protected:
  /// The first topic that a mode defines for its own requests about slices.
  static constexpr uint32_t kOwnTopic = 16;

  /// `name` is the mode's; a request for a float of the center holds `width` bytes at most.
  CenterMode(std::string name, const SyncContext& context, ArenaUpdate update, size_t width);

  /// Answers a request of the mode's own about a slice: `data` is the request, then the reply. False
  /// if it has not the length that the topic has. Also on the messenger's thread.
  virtual bool serve(uint32_t topic, int slice, Messenger::Bytes& data) = 0;
  /// Gives the center what the worker still has for it, after its last iteration.
  virtual Status settle(std::span<float> weights) = 0;

  /// Sends each owner its slice of `mine`, `width` bytes a float of the center, and stores what it
  /// answers in `theirs`; either may be empty. If an owner is lost meanwhile, asks the next.
  Status ask_center(uint32_t topic, std::span<const std::byte> mine, size_t width,
                    std::span<float> theirs);
  /// Copies the whole center.
  Status read_center(std::span<float> weights) { return ask_center(kRead, {}, 0, weights); }
  /// Counts a change of the whole center.
  void count_made() { ++made_; }
  /// An error if the group was cancelled, which a single worker would not notice otherwise.
  Status status() const;

  int workers() const { return ranks_; }
  const Logger& log() const { return context_.log; }
  CenterVariable& center() { return center_; }

 private:
  class State;
  /// Phases of the training, which each rank reaches on its own schedule.
  enum Phase { kNone, kBegun, kFinished, kLeft };
  enum Topic : uint32_t { kRead, kHistory, kReached };

  Result<Messenger::Bytes> answer(int peer, uint32_t topic, uint32_t index, Messenger::Bytes data);
  bool answer_slice(uint32_t topic, int slice, Messenger::Bytes& data);
  bool answer_history(uint32_t kind, Messenger::Bytes& data);
  void note_loss(int peer, const Status& why);
  void note_reached(int peer, uint32_t phase, Messenger::Bytes given);
  Status begin(std::span<const float> weights);
  Status ask(std::span<Messenger::Request> requests);
  Status reach(Phase phase, std::span<const std::byte> give = {});
  void log_losses();
  Status read_history(const StateArray& array, size_t begin, std::span<float> out);
  bool alive(int rank) const;
  int owner_of(int slice) const;

  const std::string name_;
  const SyncContext context_;
  const int rank_, ranks_;
  const size_t width_;
  CenterVariable center_;
  bool begun_ = false;
  int64_t made_ = 0;

  std::mutex history_mutex_;  // guards the replica's history
  Replicas replicas_;

  std::mutex peers_mutex_;  // guards what follows, but for the messenger
  std::condition_variable peers_changed_;
  std::vector<int> reached_;             // the last phase of each rank
  std::vector<Messenger::Bytes> given_;  // what each sent with it
  std::vector<std::string> losses_;      // not logged yet: the training thread does

  // Null: one rank. Its thread uses all of the above and serve(): close() ends it first.
  std::unique_ptr<Messenger> messenger_;

 protected:
  /// Ends the messenger; the destructor of each mode calls it, as serve() uses the mode's members.
  void close() { messenger_.reset(); }
};

/// An error unless every rank has one shard.
Status check_workers(std::string_view mode, const SyncContext& context);

/// The floats, or doubles, that a message holds.
template <class T>
std::span<T> values_in(Messenger::Bytes& bytes) {
  return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
}

}  // namespace cafetiere
