// SPDX-License-Identifier: Apache-2.0
#include "core/sync/auto_mode.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "core/comm/collectives.h"

namespace cafetiere {
namespace {

constexpr std::string_view kAutoMark = "auto, period ";

double median(std::vector<double> values) {
  const auto middle = values.begin() + ptrdiff_t(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double seconds(std::chrono::steady_clock::duration d) {
  return std::chrono::duration<double>(d).count();
}

}  // namespace

AutoMode::AutoMode(const SyncContext& context, const caffe::SyncParameter& sync, UpdateMaker update)
    : context_(context), sync_(sync), update_(std::move(update)) {
  if (!sync_.has_outer_momentum()) sync_.set_outer_momentum(kOuterMomentum);
}

Status AutoMode::start() { return adopt(1); }

Status AutoMode::adopt(int period) {
  period_ = period;
  sync_.set_mode(period == 1 ? "allreduce" : "diloco");
  sync_.set_period(period);
  CFT_ASSIGN(mode_, make_sync(sync_, context_, update_));
  return {};
}

Status AutoMode::end_round(const UpdateStep& step, std::span<float> gradient,
                           std::span<float> weights) {
  const double before = exchange_seconds();
  CFT_TRY(mode_->end_round(step, gradient, weights));
  if (chosen_) return {};
  if (!std::exchange(warm_, true)) return {};  // the first round builds plans and fills caches
  const double exchange = exchange_seconds() - before;  // a mode's own work would stay
  compute_.push_back(seconds(Clock::now() - begun_) - exchange);
  exchange_.push_back(exchange);
  const size_t trials = compute_.size();
  return trials == kFirstLook || trials == kTrialRounds ? look() : Status();
}

/// Of this rank so far; one alone exchanges nothing.
double AutoMode::exchange_seconds() const {
  return context_.group ? context_.group->counters().seconds : 0;
}

int AutoMode::period_for(double compute, double exchange) {
  if (exchange <= kCheapExchange * (exchange + compute)) return 1;
  // exchange / (exchange + period * compute) <= kRareExchange
  const double period = exchange * (1 - kRareExchange) / (kRareExchange * compute);
  return int(std::ceil(std::clamp<double>(period, kShortestPeriod, kLongestPeriod)));
}

/// Chooses a mode, unless more rounds have to be measured first.
Status AutoMode::look() {
  CFT_ASSIGN(const double compute, over_ranks(compute_, std::max<double>));
  CFT_ASSIGN(const double exchange, over_ranks(exchange_, std::min<double>));
  const bool enough = compute_.size() >= size_t(kTrialRounds);
  return enough || exchange > compute ? choose(compute, exchange) : Status();
}

Result<double> AutoMode::over_ranks(const std::vector<double>& mine, Pick pick) const {
  const size_t rounds = mine.size();
  std::vector<double> all(rounds * size_t(size_of(context_.group)));
  CFT_TRY(all_gather(context_.group, std::as_bytes(std::span(mine)),
                     std::as_writable_bytes(std::span(all))));
  std::vector<double> chosen(rounds);
  for (size_t round = 0; round < rounds; ++round) {
    chosen[round] = all[round];
    for (size_t i = round; i < all.size(); i += rounds) {
      chosen[round] = pick(chosen[round], all[i]);
    }
  }
  return median(std::move(chosen));
}

Status AutoMode::choose(double compute, double exchange) {
  const int period = period_for(compute, exchange);
  chosen_ = true;
  context_.log.notice(
      "Mode auto: an iteration takes {:.1f} ms, an exchange {:.1f} ms ({:.0f} % of a step): {}",
      compute * 1e3, exchange * 1e3, 100 * exchange / (compute + exchange),
      period == 1 ? "allreduce, every step" : fmt::format("diloco, period {}", period));
  if (period == 1) return {};
  CFT_ASSIGN(HistoryArenas history, common_history());
  CFT_TRY(adopt(period));
  HeldHistory state(std::move(history));
  return mode_->restore(state);
}

/// The complete history so far, on every rank.
Result<HistoryArenas> AutoMode::common_history() {
  CFT_ASSIGN(const ArenaUpdate rule, update_());
  HistoryArenas history(size_t(rule.history_per_param()),
                        std::vector<float>(size_t(context_.floats)));
  CFT_TRY(mode_->show_state([&](ModeState& state) -> Status {
    for (size_t kind = 0; kind < history.size(); ++kind) {
      CFT_TRY(state.read({StateArray::kHistory, kind}, 0, history[kind]));
    }
    return {};
  }));
  for (std::vector<float>& kind : history) {
    CFT_TRY(broadcast(context_.group, 0, std::as_writable_bytes(std::span(kind))));
  }
  return history;
}

Status AutoMode::show_state(const StateUse& use) {
  return mode_->show_state([&](ModeState& state) {
    if (chosen_) state.mode = fmt::format("{}{}", kAutoMark, period_);
    return use(state);
  });
}

Status AutoMode::restore(ModeState& state) {
  int period = 0;
  if (state.mode.starts_with(kAutoMark)) {
    const std::string_view number = std::string_view(state.mode).substr(kAutoMark.size());
    std::from_chars(number.data(), number.data() + number.size(), period);
  }
  if (period >= 1) {
    CFT_TRY(adopt(period));
    chosen_ = true;
  }
  return mode_->restore(state);
}

}  // namespace cafetiere
