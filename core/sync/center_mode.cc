// SPDX-License-Identifier: Apache-2.0
#include "core/sync/center_mode.h"

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

}  // namespace

Status check_workers(std::string_view mode, const SyncContext& context) {
  const int ranks = size_of(context.group);
  if (context.shards == ranks) return {};
  return invalid_argument(
      fmt::format("sync {{ mode: \"{}\" }}: each rank is one worker with one shard, but there "
                  "are {} shards for {} ranks; set the number of shards to {}",
                  mode, context.shards, ranks, ranks));
}

CenterMode::CenterMode(std::string name, const SyncContext& context, ArenaUpdate update,
                       size_t width)
    : name_(std::move(name)),
      context_(context),
      rank_(rank_of(context.group)),
      ranks_(size_of(context.group)),
      width_(width),
      center_(rank_, ranks_, context.floats),
      replicas_(context, std::move(update)),
      reached_(size_t(ranks_), kNone),
      given_(size_t(ranks_)) {}

Status CenterMode::open() {
  if (ranks_ == 1) return {};
  auto opened = Messenger::open(
      context_.group, std::max(center_.largest() * width_, kMostGiven),
      {.answer = [this](int peer, uint32_t topic, uint32_t index,
                        Bytes data) { return answer(peer, topic, index, std::move(data)); },
       .lost = [this](int peer, const Status& why) { note_loss(peer, why); }});
  if (!opened.ok()) return opened.status();
  messenger_ = std::move(*opened);
  return {};
}

Status CenterMode::status() const { return messenger_ ? messenger_->status() : Status(); }

/// On the messenger's thread, as note_loss() and note_reached().
Result<Bytes> CenterMode::answer(int peer, uint32_t topic, uint32_t index, Bytes data) {
  if (topic == kReached && index <= kLeft) {
    note_reached(peer, index, std::move(data));
    return Bytes();
  }
  const size_t size = data.size();
  const bool known = topic == kHistory          ? answer_history(index, data)
                     : index < uint32_t(ranks_) ? answer_slice(topic, int(index), data)
                                                : false;
  if (known) return data;
  return internal_error(
      fmt::format("rank {} asks for topic {}, index {}, with {} bytes: the ranks run different "
                  "programs or settings",
                  peer, topic, index, size));
}

bool CenterMode::answer_slice(uint32_t topic, int slice, Bytes& data) {
  if (topic != kRead) return topic >= kOwnTopic && serve(topic, slice, data);
  data.resize(center_.range(slice).size() * sizeof(float));
  center_.read(slice, values_in<float>(data));
  return true;
}

bool CenterMode::answer_history(uint32_t kind, Bytes& data) {
  FloatRange range;
  if (kind >= replicas_.kinds() || data.size() != sizeof range) return false;
  std::memcpy(&range, data.data(), sizeof range);
  const auto floats = uint64_t(context_.floats);
  if (range.begin > floats || range.count > floats - range.begin) return false;
  data.resize(range.count * sizeof(float));
  std::lock_guard lock(history_mutex_);
  std::copy_n(replicas_.history(0)[kind].data() + range.begin, range.count,
              values_in<float>(data).begin());
  return true;
}

void CenterMode::note_loss(int peer, const Status& why) {
  std::lock_guard lock(peers_mutex_);
  peers_changed_.notify_all();  // first: memory may have run out
  if (reached_[size_t(peer)] < kFinished) losses_.push_back(why.message());
}

void CenterMode::note_reached(int peer, uint32_t phase, Bytes given) {
  std::lock_guard lock(peers_mutex_);
  reached_[size_t(peer)] = int(phase);
  given_[size_t(peer)] = std::move(given);
  peers_changed_.notify_all();
}

void CenterMode::begin_shard(int, std::span<float> weights) {
  if (begun_) std::ranges::copy(center_.worker(), weights.begin());
}

/// All ranks hold the same weights here. No rank may ask for a slice before its owner has set it.
Status CenterMode::begin(std::span<const float> weights) {
  if (begun_) return {};
  center_.start(weights);
  begun_ = true;
  return reach(kBegun);
}

Status CenterMode::gradient(const UpdateStep& step, double, std::span<float> gradient,
                            std::span<float> weights) {
  CFT_TRY(begin(weights));
  std::lock_guard lock(history_mutex_);
  replicas_.step(step, gradient, weights);
  return {};
}

Status CenterMode::ask_center(uint32_t topic, std::span<const std::byte> mine, size_t width,
                              std::span<float> theirs) {
  std::vector<int> left(reached_.size());
  std::iota(left.begin(), left.end(), 0);
  while (!left.empty()) {
    std::vector<Messenger::Request> requests;
    for (int slice : left) {
      const auto [begin, end] = center_.range(slice);
      const auto give = mine.empty() ? mine : mine.subspan(begin * width, (end - begin) * width);
      const auto take = theirs.empty() ? theirs : theirs.subspan(begin, end - begin);
      const int owner = owner_of(slice);
      if (owner != rank_) {
        requests.push_back({owner, topic, uint32_t(slice), give, std::as_writable_bytes(take)});
        continue;
      }
      Bytes data(give.begin(), give.end());
      if (!answer_slice(topic, slice, data)) return internal_error(name_ + " asks itself wrongly");
      std::ranges::copy(data, std::as_writable_bytes(take).begin());
    }
    CFT_TRY(ask(requests));
    left.clear();
    for (const auto& request : requests) {
      if (!request.status.ok()) left.push_back(int(request.index));
    }
  }
  return {};
}

Status CenterMode::ask(std::span<Messenger::Request> requests) {
  if (!messenger_) return {};
  // Also without requests: once this messenger has stopped, every peer seems lost.
  const Status status = messenger_->ask(requests);
  log_losses();
  return status;
}

void CenterMode::log_losses() {
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
Status CenterMode::reach(Phase phase, std::span<const std::byte> give) {
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

Status CenterMode::consolidate(bool end, std::span<float> weights) {
  CFT_TRY(begin(weights));
  if (end) {
    std::ranges::copy(center_.worker(), weights.begin());
    CFT_TRY(settle(weights));
    CFT_TRY(reach(kFinished));
  }
  return read_center(weights);
}

/// After all ranks have read what they need, they may leave in any order.
Result<std::vector<Bytes>> CenterMode::gather_at_end(std::span<const std::byte> mine) {
  CFT_TRY(reach(kLeft, mine));
  std::lock_guard lock(peers_mutex_);
  given_[size_t(rank_)].assign(mine.begin(), mine.end());
  return std::move(given_);
}

/// The histories of all workers.
class CenterMode::State final : public ModeState {
 public:
  explicit State(CenterMode* owner) : owner_(owner) {
    mode = owner->name_;
    kinds = owner->replicas_.kinds();
    replicas = size_t(owner->ranks_);
  }
  Status read(const StateArray& array, size_t begin, std::span<float> out) override {
    return owner_->read_history(array, begin, out);
  }

 private:
  CenterMode* const owner_;
};

Status CenterMode::show_state(const StateUse& use) {
  if (!is_leader()) return {};
  State state(this);
  return use(state);
}

std::unique_ptr<ModeState> CenterMode::own_state() {
  messenger_.reset();  // nobody reads the history any more
  return replicas_.take_history(name_);
}

Status CenterMode::restore(ModeState& state) {
  std::lock_guard lock(history_mutex_);
  return replicas_.restore(state);
}

Status CenterMode::read_history(const StateArray& array, size_t begin, std::span<float> out) {
  const int rank = array.kind == StateArray::kReplica ? int(array.shard) : rank_;
  if (array.kind == StateArray::kOuter || rank >= ranks_ || array.index >= replicas_.kinds()) {
    return internal_error(name_ + " does not have the requested array");
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

bool CenterMode::alive(int rank) const {
  return rank == rank_ || (messenger_ && messenger_->alive(rank));
}

/// The slice's own rank or, if that is lost, the next living one in the ring.
int CenterMode::owner_of(int slice) const {
  int owner = slice;
  while (!alive(owner)) owner = (owner + 1) % ranks_;
  return owner;
}

bool CenterMode::is_leader() const {
  for (int rank = 0; rank < rank_; ++rank) {
    if (alive(rank)) return false;
  }
  return true;
}

}  // namespace cafetiere
