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

constexpr size_t kMostGiven = 16 << 20;  // bytes that a rank may send at the end

/// Which floats of an array a request is for.
struct FloatRange {
  uint64_t begin = 0, count = 0;
};

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
      center_(sync, rank_, ranks_, context.floats),
      pulled_(size_t(context.floats)),
      replicas_(context, std::move(update)),
      reached_(size_t(ranks_), kNone),
      given_(size_t(ranks_)) {}

Status Easgd::open() {
  if (ranks_ == 1) return {};
  auto opened = Messenger::open(
      context_.group, std::max(center_.largest() * sizeof(float), kMostGiven),
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
  const size_t bytes = slice ? center_.range(int(index)).size() * sizeof(float) : 0;
  if (slice && topic == kExchange && data.size() == bytes) {
    center_.exchange(int(index), floats_of(data));
    return data;
  }
  if (slice && topic == kRead) {
    data.resize(bytes);
    center_.read(int(index), floats_of(data));
    return data;
  }
  FloatRange range;
  if (topic == kHistory && index < replicas_.kinds() && data.size() == sizeof range) {
    std::memcpy(&range, data.data(), sizeof range);
    const auto floats = uint64_t(context_.floats);
    if (range.begin <= floats && range.count <= floats - range.begin) {
      data.resize(range.count * sizeof(float));
      std::lock_guard lock(history_mutex_);
      std::copy_n(replicas_.history(0)[index].data() + range.begin, range.count,
                  floats_of(data).begin());
      return data;
    }
  }
  if (topic == kReached && index <= kLeft) {
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

void Easgd::note_reached(int peer, uint32_t phase, Bytes given) {
  std::lock_guard lock(peers_mutex_);
  reached_[size_t(peer)] = int(phase);
  given_[size_t(peer)] = std::move(given);
  peers_changed_.notify_all();
}

void Easgd::begin_shard(int, std::span<float> weights) {
  if (begun_) std::ranges::copy(center_.worker(), weights.begin());
}

/// All ranks hold the same weights here. No rank may ask for a slice before its owner has set it.
Status Easgd::begin(std::span<const float> weights) {
  if (begun_) return {};
  center_.start(weights);
  begun_ = true;
  return reach(kBegun);
}

Status Easgd::gradient(const UpdateStep& step, double loss, std::span<float> gradient,
                       std::span<float> weights) {
  CFT_TRY(begin(weights));
  if (iterations_ == 0) center_.count_from(step.iter);
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
  center_.remember(weights);
  return {};
}

Status Easgd::exchange(std::span<float> weights) {
  // A single worker sends no requests, but must notice that its group was cancelled.
  if (messenger_) CFT_TRY(messenger_->status());
  CFT_TRY(exchange_with_center(kExchange, weights, pulled_));
  const float pull = rate_.at(iterations_);
  for (size_t i = 0; i < weights.size(); ++i) {
    weights[i] = (1 - pull) * weights[i] + pull * pulled_[i];
  }
  center_.remember(weights);
  clock_.exchanged();
  ++made_;
  return {};
}

/// Sends `mine` to the owner of each slice of the center (kExchange) or only reads it (kRead), and
/// stores the slice in `theirs`. If an owner is lost meanwhile, asks the next.
Status Easgd::exchange_with_center(Topic topic, std::span<const float> mine,
                                   std::span<float> theirs) {
  std::vector<int> left(reached_.size());
  std::iota(left.begin(), left.end(), 0);
  while (!left.empty()) {
    std::vector<Messenger::Request> requests;
    for (int slice : left) {
      const auto [begin, end] = center_.range(slice);
      const auto give = mine.empty() ? mine : mine.subspan(begin, end - begin);
      const auto take = theirs.subspan(begin, end - begin);
      const int owner = owner_of(slice);
      if (owner != rank_) {
        requests.push_back(
            {owner, topic, uint32_t(slice), std::as_bytes(give), std::as_writable_bytes(take)});
      } else if (topic == kRead) {
        center_.read(slice, take);
      } else {
        std::ranges::copy(give, take.begin());
        center_.exchange(slice, take);
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
  // Also without requests: once this messenger has stopped, every peer seems lost.
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
    context_.log.warning("rank {}: {}; its part is lost, the other ranks continue", rank_, loss);
  }
}

/// A barrier of the living ranks: sends them the phase and `give`, and waits for all.
Status Easgd::reach(Phase phase, std::span<const std::byte> give) {
  std::vector<Messenger::Request> requests;
  for (int peer = 0; peer < ranks_; ++peer) {
    if (peer != rank_ && alive(peer)) requests.push_back({peer, kReached, phase, give});
  }
  CFT_TRY(ask(requests));
  std::unique_lock lock(peers_mutex_);
  reached_[size_t(rank_)] = phase;
  peers_changed_.wait(lock, [&] {
    for (int peer = 0; peer < ranks_; ++peer) {
      if (reached_[size_t(peer)] < phase && alive(peer)) return false;
    }
    return true;
  });
  lock.unlock();
  return ask({});
}

Status Easgd::consolidate(bool end, std::span<float> weights) {
  CFT_TRY(begin(weights));
  if (!end) return exchange_with_center(kRead, {}, weights);
  if (clock_.running()) {
    std::ranges::copy(center_.worker(), weights.begin());
    CFT_TRY(exchange(weights));
  }
  CFT_TRY(reach(kFinished));
  return exchange_with_center(kRead, {}, weights);
}

/// After all ranks have read what they need, they may leave in any order.
Result<std::vector<Bytes>> Easgd::gather_at_end(std::span<const std::byte> mine) {
  CFT_TRY(reach(kLeft, mine));
  std::lock_guard lock(peers_mutex_);
  given_[size_t(rank_)].assign(mine.begin(), mine.end());
  return std::move(given_);
}

/// The histories of all workers.
class Easgd::State final : public ModeState {
 public:
  explicit State(Easgd* owner) : owner_(owner) {
    mode = "easgd";
    kinds = owner->replicas_.kinds();
    replicas = size_t(owner->ranks_);
  }
  Status read(const StateArray& array, size_t begin, std::span<float> out) override {
    return owner_->read_history(array, begin, out);
  }

 private:
  Easgd* const owner_;
};

Status Easgd::show_state(const StateUse& use) {
  if (!is_leader()) return {};
  State state(this);
  return use(state);
}

std::unique_ptr<ModeState> Easgd::own_state() {
  messenger_.reset();  // nobody reads the history any more
  return std::make_unique<HeldHistory>(std::move(replicas_.history(0)), "easgd");
}

Status Easgd::restore(ModeState& state) {
  std::lock_guard lock(history_mutex_);
  return replicas_.restore(state);
}

Status Easgd::read_history(const StateArray& array, size_t begin, std::span<float> out) {
  const int rank = array.kind == StateArray::kReplica ? int(array.shard) : rank_;
  if (array.kind == StateArray::kOuter || rank >= ranks_ || array.index >= replicas_.kinds()) {
    return internal_error("easgd does not have the requested array");
  }
  if (rank == rank_) {
    std::lock_guard lock(history_mutex_);
    std::copy_n(replicas_.history(0)[array.index].data() + begin, out.size(), out.begin());
    return {};
  }
  std::ranges::fill(out, 0.F);
  if (!alive(rank)) return {};
  const FloatRange range{begin, out.size()};
  Messenger::Request request{rank, kHistory, uint32_t(array.index),
                             std::as_bytes(std::span(&range, 1)), std::as_writable_bytes(out)};
  CFT_TRY(ask({&request, 1}));
  if (!request.status.ok()) std::ranges::fill(out, 0.F);  // the rank was lost meanwhile
  return {};
}

bool Easgd::alive(int rank) const {
  return rank == rank_ || (messenger_ && messenger_->alive(rank));
}

/// The slice's own rank or, if that is lost, the next living one in the ring.
int Easgd::owner_of(int slice) const {
  int owner = slice;
  while (!alive(owner)) owner = (owner + 1) % ranks_;
  return owner;
}

bool Easgd::is_leader() const {
  for (int rank = 0; rank < rank_; ++rank) {
    if (alive(rank)) return false;
  }
  return true;
}

}  // namespace cafetiere
