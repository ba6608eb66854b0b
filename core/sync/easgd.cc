// SPDX-License-Identifier: Apache-2.0
#include "core/sync/easgd.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "core/comm/collectives.h"

namespace cafetiere {
namespace {

using Bytes = Messenger::Bytes;

constexpr size_t kMostGiven = 16 << 20;  // bytes that a rank may give at the end

/// The floats that a message holds.
std::span<float> floats_of(Bytes& bytes) {
  return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
}

}  // namespace

Result<std::unique_ptr<Sync>> make_easgd(const caffe::SyncParameter& sync,
                                         const SyncContext& context, ArenaUpdate update) {
  const int ranks = size_of(context.group);
  if (context.shards != ranks) {
    return invalid_argument(
        fmt::format("sync {{ mode: \"easgd\" }}: each rank is one worker with one shard, but there "
                    "are {} shards for {} ranks; set the number of shards to {}",
                    context.shards, ranks, ranks));
  }
  auto easgd = std::make_unique<Easgd>(sync, context, std::move(update));
  CFT_TRY(easgd->open());
  return std::unique_ptr<Sync>(std::move(easgd));
}

Easgd::Easgd(const caffe::SyncParameter& sync, const SyncContext& context, ArenaUpdate update)
    : context_(context),
      rank_(rank_of(context.group)),
      ranks_(size_of(context.group)),
      rate_(moving_rate(sync)),
      clock_(sync.period(), sync.adaptive_period()),
      centre_(sync, rank_, ranks_, context.floats),
      pulled_(size_t(context.floats)),
      replicas_(context, std::move(update)),
      reached_(size_t(ranks_), kNone),
      given_(size_t(ranks_)) {}

Status Easgd::open() {
  if (ranks_ == 1) return {};
  auto opened = Messenger::open(
      context_.group, std::max(centre_.largest() * sizeof(float), kMostGiven),
      {.answer = [this](int peer, uint32_t topic, uint32_t index,
                        Bytes data) { return answer(peer, topic, index, std::move(data)); },
       .lost = [this](int peer, const Status& why) { note_loss(peer, why); }});
  if (!opened.ok()) return opened.status();
  messenger_ = std::move(*opened);
  return {};
}

/// On the messenger's thread, as note_loss() and note_reached().
Result<Bytes> Easgd::answer(int peer, uint32_t topic, uint32_t index, Bytes data) {
  const bool slice = (topic == kExchange || topic == kRead) && index < uint32_t(ranks_);
  const size_t bytes = slice ? centre_.range(int(index)).size() * sizeof(float) : 0;
  if (slice && topic == kExchange && data.size() == bytes) {
    centre_.exchange(int(index), floats_of(data));
    return data;
  }
  if (slice && topic == kRead) {
    data.resize(bytes);
    centre_.read(int(index), floats_of(data));
    return data;
  }
  if (topic == kHistory && index < replicas_.kinds()) {
    std::lock_guard lock(history_mutex_);
    const auto mine = std::as_bytes(std::span(replicas_.history(0)[index]));
    return Bytes(mine.begin(), mine.end());
  }
  if (topic == kReached && index <= kCollected) {
    note_reached(peer, index, std::move(data));
    return Bytes();
  }
  return internal_error(
      fmt::format("rank {} asks for topic {}, index {}, with {} bytes: the ranks run different "
                  "programs or settings",
                  peer, topic, index, data.size()));
}

void Easgd::note_loss(int peer, const Status& why) {
  std::lock_guard lock(peers_mutex_);
  if (reached_[size_t(peer)] < kFinished) losses_.push_back(why.message());
  peers_changed_.notify_all();
}

void Easgd::note_reached(int peer, uint32_t milestone, Bytes given) {
  std::lock_guard lock(peers_mutex_);
  reached_[size_t(peer)] = int(milestone);
  given_[size_t(peer)] = std::move(given);
  peers_changed_.notify_all();
}

void Easgd::begin_shard(int, std::span<float> weights) {
  if (begun_) std::ranges::copy(centre_.worker(), weights.begin());
}

/// All ranks hold the same weights now. Nobody may ask for a slice before its owner has it.
Status Easgd::begin(std::span<const float> weights) {
  if (begun_) return {};
  centre_.start(weights);
  begun_ = true;
  return reach(kBegun);
}

Status Easgd::gradient(const UpdateStep& step, double loss, std::span<float> gradient,
                       std::span<float> weights) {
  CFT_TRY(begin(weights));
  if (iterations_ == 0) centre_.count_from(step.iter);
  {
    std::lock_guard lock(history_mutex_);
    replicas_.step(step, gradient, weights);
  }
  iterations_ = step.iter + 1;
  clock_.tick(loss);
  return {};
}

Status Easgd::end_round(const UpdateStep&, std::span<float>, std::span<float> weights) {
  if (clock_.due()) return exchange(weights);
  centre_.remember(weights);
  return {};
}

Status Easgd::exchange(std::span<float> weights) {
  // A worker that is alone asks nobody, but must see that its group was cancelled.
  if (messenger_) CFT_TRY(messenger_->status());
  CFT_TRY(visit_centre(kExchange, weights, pulled_));
  const float pull = rate_.at(iterations_);
  for (size_t i = 0; i < weights.size(); ++i) {
    weights[i] = (1 - pull) * weights[i] + pull * pulled_[i];
  }
  centre_.remember(weights);
  clock_.exchanged();
  ++made_;
  return {};
}

/// Brings `mine` to each slice of the centre (kExchange) or nothing (kRead), and takes the slice to
/// `theirs`. When an owner is lost meanwhile, goes to the next.
Status Easgd::visit_centre(Topic topic, std::span<const float> mine, std::span<float> theirs) {
  std::vector<int> left(reached_.size());
  std::iota(left.begin(), left.end(), 0);
  while (!left.empty()) {
    std::vector<Messenger::Request> requests;
    for (int slice : left) {
      const auto [begin, end] = centre_.range(slice);
      const auto give = mine.empty() ? mine : mine.subspan(begin, end - begin);
      const auto take = theirs.subspan(begin, end - begin);
      const int owner = owner_of(slice);
      if (owner != rank_) {
        requests.push_back(
            {owner, topic, uint32_t(slice), std::as_bytes(give), std::as_writable_bytes(take)});
      } else if (topic == kRead) {
        centre_.read(slice, take);
      } else {
        std::ranges::copy(give, take.begin());
        centre_.exchange(slice, take);
      }
    }
    CFT_TRY(ask(requests));
    left.clear();
    for (const auto& request : requests) {
      if (!request.status.ok()) left.push_back(int(request.index));
    }
  }
  return {};
}

Status Easgd::ask(std::span<Messenger::Request> requests) {
  if (!messenger_) return {};
  // Also without requests: when this messenger has ended, every peer seems lost.
  const Status status = messenger_->ask(requests);
  log_losses();
  return status;
}

void Easgd::log_losses() {
  std::vector<std::string> losses;
  {
    std::lock_guard lock(peers_mutex_);
    losses.swap(losses_);
  }
  for (const std::string& loss : losses) {
    context_.log.warning("rank {}: {}; its share is lost, the others go on", rank_, loss);
  }
}

/// Tells all, gives them something, and waits for all, except those that are lost.
Status Easgd::reach(Milestone milestone, std::span<const std::byte> give) {
  std::vector<Messenger::Request> requests;
  for (int peer = 0; peer < ranks_; ++peer) {
    if (peer != rank_ && alive(peer)) requests.push_back({peer, kReached, milestone, give});
  }
  CFT_TRY(ask(requests));
  std::unique_lock lock(peers_mutex_);
  reached_[size_t(rank_)] = milestone;
  peers_changed_.wait(lock, [&] {
    for (int peer = 0; peer < ranks_; ++peer) {
      if (reached_[size_t(peer)] < milestone && alive(peer)) return false;
    }
    return true;
  });
  lock.unlock();
  return ask({});
}

Status Easgd::settle(bool end, std::span<float> weights) {
  CFT_TRY(begin(weights));
  if (!end) return visit_centre(kRead, {}, weights);
  if (clock_.running()) {
    std::ranges::copy(centre_.worker(), weights.begin());
    CFT_TRY(exchange(weights));
  }
  CFT_TRY(reach(kFinished));
  CFT_TRY(visit_centre(kRead, {}, weights));
  if (leads()) {
    CFT_ASSIGN(final_histories_, gather_histories());
  }
  return {};
}

/// Once all have what they need, the ranks may leave in any order.
Result<std::vector<Bytes>> Easgd::gather_at_end(std::span<const std::byte> mine) {
  CFT_TRY(reach(kCollected, mine));
  std::lock_guard lock(peers_mutex_);
  given_[size_t(rank_)].assign(mine.begin(), mine.end());
  return std::move(given_);
}

Result<SyncState> Easgd::state() {
  SyncState state;
  state.mode = "easgd";
  if (!leads()) return state;
  if (final_histories_) {
    state.replicas = *final_histories_;
  } else {
    CFT_ASSIGN(state.replicas, gather_histories());
  }
  state.history = state.replicas[size_t(rank_)];
  return state;
}

SyncState Easgd::own_state() {
  SyncState state;
  state.mode = "easgd";
  state.history = replicas_.history(0);
  return state;
}

Status Easgd::restore(const SyncState& state) {
  std::lock_guard lock(history_mutex_);
  replicas_.restore(state.replicas, state.history);
  return {};
}

/// Each worker's as it is now: nobody waits until all have done as many iterations.
Result<std::vector<HistoryArenas>> Easgd::gather_histories() {
  std::vector<HistoryArenas> all(
      size_t(ranks_),
      HistoryArenas(replicas_.kinds(), std::vector<float>(size_t(context_.floats))));
  all[size_t(rank_)] = replicas_.history(0);
  std::vector<Messenger::Request> requests;
  for (int peer = 0; peer < ranks_; ++peer) {
    if (peer == rank_ || !alive(peer)) continue;
    for (size_t kind = 0; kind < replicas_.kinds(); ++kind) {
      requests.push_back({peer,
                          kHistory,
                          uint32_t(kind),
                          {},
                          std::as_writable_bytes(std::span(all[size_t(peer)][kind]))});
    }
  }
  CFT_TRY(ask(requests));
  return all;
}

bool Easgd::alive(int rank) const {
  return rank == rank_ || (messenger_ && messenger_->alive(rank));
}

/// The slice's own rank, or the next in the ring that lives.
int Easgd::owner_of(int slice) const {
  int owner = slice;
  while (!alive(owner)) owner = (owner + 1) % ranks_;
  return owner;
}

bool Easgd::leads() const {
  for (int rank = 0; rank < rank_; ++rank) {
    if (alive(rank)) return false;
  }
  return true;
}

}  // namespace cafetiere
