// SPDX-License-Identifier: Apache-2.0
#include "cli/scale/step_time.h"

#include <algorithm>
#include <cmath>

#include "cli/scale/stragglers.h"
#include "core/sync/auto_mode.h"
#include "core/sync/gradient_exchange.h"

namespace cafetiere {
namespace {

constexpr double kReportEvery = 1;  // seconds, as Trainer does where the solver says no `display`

/// A rank's iteration of `shards` shards: how long it is on average on one rank alone.
double alone(const Work& work, const ScaleSetting& setting, int shards) {
  return shards * work.seconds * mean_of_slowest(1, setting.spread);
}

ExchangeSetting exchange_setting(const ScaleSetting& setting) {
  return {.ranks = setting.ranks,
          .ranks_per_host = setting.ranks_per_host,
          .shards = setting.ranks * setting.shards_per_rank,
          .wire_bytes = setting.wire_bytes};
}

/// The share of a transfer's time in which the processor is at work; all of it in shared memory.
double busy_share(const ScaleSetting& setting) {
  if (setting.ranks_per_host >= setting.ranks) return 1;
  return setting.link.rank_rate(setting.ranks_per_host) * setting.link.byte_s;
}

/// How long the sums keep a step waiting: the last bucket leaves when backward has ended and those
/// before it, beside backward, have left. What the processor does for them backward waits for.
double sums_seconds(const Work& work, const ScaleSetting& setting, double sums) {
  const double buckets =
      std::ceil(work.floats / double(GradientExchange::bucket_floats(size_t(work.floats))));
  if (buckets <= 1 || setting.backward <= 0) return sums;
  const double trip = trip_seconds(setting.link, setting.exchange, exchange_setting(setting));
  const double early = (sums - trip) * (1 - 1 / buckets);
  const double busy = early * busy_share(setting);
  return busy + std::max(early - busy - setting.backward * work.seconds, 0.0) + sums - early;
}

/// What reports make of a second: each is a trip to rank 0 and one back.
double with_reports(const ScaleSetting& setting) {
  const double trip = trip_seconds(setting.link, setting.exchange, exchange_setting(setting));
  return 1 + 2 * trip / kReportEvery;
}

ModeTime mode_time(const Work& work, const ScaleSetting& setting, int shards, double compute,
                   double exchange) {
  const double rows = shards * work.rows * setting.ranks;
  const double seconds = (compute + exchange) * with_reports(setting);
  return {compute, exchange, alone(work, setting, shards) / seconds, rows / seconds};
}

}  // namespace

double exchange_seconds(const Work& work, const ScaleSetting& setting) {
  return exchange_seconds(setting.link, setting.exchange, work.floats, exchange_setting(setting));
}

ModeTime allreduce_time(const Work& work, const ScaleSetting& setting) {
  const int shards = setting.shards_per_rank;
  const double compute = shards * work.seconds *
                         mean_of_slowest(setting.ranks, spread_of_sum(setting.spread, shards)) *
                         mean_of_slowest(1, setting.spread) /
                         mean_of_slowest(1, spread_of_sum(setting.spread, shards));
  const double half = exchange_seconds(work, setting) / 2;
  return mode_time(work, setting, shards, compute, sums_seconds(work, setting, half) + half);
}

ModeTime average_time(const Work& work, const ScaleSetting& setting, int period) {
  ScaleSetting round = setting;
  round.shards_per_rank = period;  // as many iterations as that many shards have
  const double compute = allreduce_time(work, round).compute / period;
  round.shards_per_rank = 1;
  return mode_time(work, setting, 1, compute, exchange_seconds(work, round) / period);
}

ModeTime easgd_time(const Work& work, const ScaleSetting& setting, int period) {
  ScaleSetting one = setting;
  one.shards_per_rank = 1;
  return mode_time(work, setting, 1, alone(work, setting, 1), exchange_seconds(work, one) / period);
}

int best_period(const Work& work, const ScaleSetting& setting) {
  const ModeTime step = allreduce_time(work, setting);
  return AutoMode::period_for(step.compute, step.exchange);
}

int best_shards_per_rank(const Work& work, ScaleSetting setting, int most) {
  for (setting.shards_per_rank = 1; setting.shards_per_rank < most; setting.shards_per_rank *= 2) {
    const ModeTime step = allreduce_time(work, setting);
    if (step.exchange <= AutoMode::kCheapExchange * (step.exchange + step.compute)) break;
  }
  return setting.shards_per_rank;
}

}  // namespace cafetiere
