#include "core/scale/step_time.h"

#include <algorithm>
#include <cmath>

#include "core/scale/stragglers.h"
#include "core/sync/auto_mode.h"
#include "core/sync/gradient_exchange.h"

namespace cafetiere {
namespace {

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

/// How long the sums keep a step waiting: the last bucket leaves when backward has ended and those
/// before it, beside backward, have left.
double sums_seconds(const Work& work, const ScaleSetting& setting, double sums) {
  const double buckets =
      std::ceil(work.floats / double(GradientExchange::bucket_floats(size_t(work.floats))));
  if (buckets <= 1 || setting.backward <= 0) return sums;
  const double trip = trip_seconds(setting.link, setting.exchange, exchange_setting(setting));
  const double early = (sums - trip) * (1 - 1 / buckets);
  return std::max(early - setting.backward * work.seconds, 0.0) + sums - early;
}

ModeTime mode_time(const Work& work, const ScaleSetting& setting, int shards, double compute,
                   double exchange) {
  const double rows = shards * work.rows * setting.ranks;
  return {compute, exchange, alone(work, setting, shards) / (compute + exchange),
          rows / (compute + exchange)};
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
