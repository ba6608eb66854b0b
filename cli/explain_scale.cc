// SPDX-License-Identifier: Apache-2.0
#include "cli/explain_scale.h"

#include <algorithm>
#include <chrono>

#include "cli/machine.h"
#include "cli/scale/failures.h"
#include "cli/scale/step_time.h"
#include "cli/table.h"
#include "core/observe/grouped.h"
#include "core/sync/auto_mode.h"

namespace cafetiere {
namespace {

constexpr double kDiskRate = 200e6;  // bytes/s of a checkpoint, weights and one history
constexpr int kPasses = 3;

/// The median seconds of an iteration on this machine, after one that warms it up.
Result<double> measure(LoadedNet& net, const PlanOptions& options) {
  CFT_ASSIGN(const std::unique_ptr<Plan> plan, net.compile(options));
  ThreadPool pool(usable_cores());
  CFT_TRY(plan->run(pool, {.seed = 1}));
  std::vector<double> seconds;
  for (int i = 0; i < kPasses; ++i) {
    const auto begun = std::chrono::steady_clock::now();
    CFT_TRY(plan->run(pool, {.seed = 1, .sub_step = i}));
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count());
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[kPasses / 2];
}

Result<Work> work_of(const ScaleFlags& flags, LoadedNet& net, const PlanOptions& options) {
  Work work;
  CFT_ASSIGN(const PlanOutline plan, net.outline(options));
  work.rows = plan.inputs.empty() ? 1 : double(plan.inputs.front().shape[0]);
  work.floats = double(net.graph.parameter_count());
  work.seconds = flags.seconds;
  if (work.seconds == 0) {
    CFT_ASSIGN(work.seconds, measure(net, options));
  }
  return work;
}

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string mode_name(int period) {
  return period == 1 ? "allreduce" : fmt::format("diloco, period {}", period);
}

/// What mode auto would choose.
ModeTime best_time(const Work& work, const ScaleSetting& setting, int period) {
  return period == 1 ? allreduce_time(work, setting) : average_time(work, setting, period);
}

FailureCost failures(const ScaleFlags& flags, const Work& work, int ranks) {
  const int hosts = (ranks + flags.ranks_per_host - 1) / flags.ranks_per_host;
  return failure_cost(hosts, {.host_mtbf_s = flags.mtbf_days * 86400,
                              .checkpoint_s = 2 * work.floats * sizeof(float) / kDiskRate});
}

void print_table(const ScaleFlags& flags, const Work& work, ScaleSetting setting) {
  Table table({"ranks", "exchange ms", "allreduce", "average", "easgd", "best", "mode", "rows/s",
               "shards a rank", "lost s/day"});
  for (int ranks = 1;; ranks = std::min(2 * ranks, flags.ranks)) {
    setting.ranks = ranks;
    const int period = best_period(work, setting);
    const ModeTime best = best_time(work, setting, period);
    table.add({fmt::format("{}", ranks),
               fmt::format("{:.2f}", 1e3 * exchange_seconds(work, setting)),
               percent(allreduce_time(work, setting).efficiency),
               percent(average_time(work, setting, flags.period).efficiency),
               percent(easgd_time(work, setting, flags.period).efficiency),
               percent(best.efficiency), mode_name(period), grouped(best.rows_per_s),
               fmt::format("{}", best_shards_per_rank(work, setting)),
               fmt::format("{:.1f}", failures(flags, work, ranks).lost_s_per_day)});
    if (ranks == flags.ranks) break;
  }
  fmt::print("{}", table.text(0));
}

void print_words(const ScaleFlags& flags, const Work& work, const ScaleSetting& setting) {
  const int period = best_period(work, setting);
  const ModeTime best = best_time(work, setting, period);
  const ModeTime every = allreduce_time(work, setting);
  const int shards = best_shards_per_rank(work, setting);
  const FailureCost failed = failures(flags, work, setting.ranks);
  fmt::print("With {} ranks mode auto takes {}: {:.1f} times the rows/s of one rank.\n",
             setting.ranks, mode_name(period), best.efficiency * setting.ranks);
  fmt::print("allreduce waits for numbers {} of a step; with --shards {} ({} rows a step) {}.\n",
             percent(every.exchange / (every.compute + every.exchange)), shards * setting.ranks,
             grouped(work.rows * shards * setting.ranks), [&] {
               ScaleSetting more = setting;
               more.shards_per_rank = shards;
               const ModeTime time = allreduce_time(work, more);
               return percent(time.exchange / (time.compute + time.exchange));
             }());
  fmt::print(
      "Hosts fail {:.3g} times a day (each every {:g} days): with a checkpoint every {:.0f} min "
      "{:.0f} s of work are lost a day, and {} of all time with the checkpoints.\n",
      failed.failures_per_day, flags.mtbf_days, failed.interval_s / 60, failed.lost_s_per_day,
      percent(failed.share));
}

}  // namespace

void ScaleFlags::add(CLI::App& app) {
  app.add_option("--ranks", ranks, "also predict the speed of up to this many ranks")
      ->check(CLI::Range(1, 65536));
  app.add_option("--link", link,
                 "link between hosts: 1gbe, 10gbe (default), 25gbe, 100gbe, infiniband or "
                 "MBIT,ONE_WAY_MS[,MBIT that a rank's processor can move]");
  app.add_option("--ranks_per_host", ranks_per_host, "ranks that share a host's link (default 1)")
      ->check(CLI::Range(1, 1024));
  app.add_option("--period", period,
                 "iterations between exchanges of average and easgd (default 10)")
      ->check(CLI::Range(1, 1 << 30));
  app.add_option("--seconds", seconds,
                 "seconds of forward and backward on one rank (default: measured here)")
      ->check(CLI::Range(1e-9, 1e9));
  app.add_option("--spread", spread,
                 "standard deviation of the logarithm of the ranks' seconds (default 0.05)")
      ->check(CLI::Range(0.0, 2.0));
  app.add_option("--mtbf", mtbf_days, "days between failures of one host (default 365)")
      ->check(CLI::Range(1e-3, 1e9));
}

Status print_scale(const ScaleFlags& flags, LoadedNet& net, const PlanOptions& options) {
  ScaleSetting setting;
  CFT_ASSIGN(setting.link, parse_link(flags.link));
  setting.ranks = flags.ranks;
  setting.ranks_per_host = flags.ranks_per_host;
  setting.spread = flags.spread;
  CFT_ASSIGN(const Work work, work_of(flags, net, options));
  fmt::print(
      "scale predicted: {}, {:.4g} MB/s and {:.3g} ms one way; an iteration of {} rows takes "
      "{:.4g} ms{}\n",
      setting.link.name, setting.link.bytes_per_s / 1e6, setting.link.latency_s * 1e3,
      grouped(work.rows), 1e3 * work.seconds,
      flags.seconds > 0 ? "" : fmt::format(" here, with {} threads", usable_cores()));
  fmt::print("(percentages: rows/s against as many ranks that never wait)\n");
  print_table(flags, work, setting);
  print_words(flags, work, setting);
  return {};
}

}  // namespace cafetiere
