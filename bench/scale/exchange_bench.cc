// SPDX-License-Identifier: Apache-2.0
// exchange_bench RANKS RANK MEET BIND FLOATS...: one rank of all-reduces over a real network, timed.
// Rank 0 prints a line of JSON for each size, with float32 and with bfloat16 on the wire;
// tools/rig/exchanges runs it in the rig.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <vector>

#include "cli/ranks.h"
#include "core/comm/collectives.h"
#include "core/comm/shard_tree.h"

namespace cafetiere {
namespace {

constexpr int kWarmUp = 2, kRuns = 9;

/// Median seconds, from all ranks being ready to this rank having the sum.
Result<double> time_all_reduce(Group* group, size_t floats, Wire wire) {
  std::vector<float> arena(floats, 1.f);
  TreeSum sum(shards_of_rank(group->rank(), group->size(), group->size()), group->size(), floats,
              nullptr);
  std::vector<double> seconds;
  for (int run = -kWarmUp; run < kRuns; ++run) {
    sum.reset();
    CFT_TRY(sum.add(arena));
    CFT_TRY(barrier(group));
    const auto begun = std::chrono::steady_clock::now();
    CFT_TRY(all_reduce(group, sum, arena, wire));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
    if (run >= 0) seconds.push_back(took.count());
  }
  std::nth_element(seconds.begin(), seconds.begin() + kRuns / 2, seconds.end());
  return seconds[kRuns / 2];
}

Status run(int argc, char** argv) {
  RankFlags flags;
  flags.ranks = std::atoi(argv[1]);
  flags.rank = std::atoi(argv[2]);
  flags.meet = argv[3];
  flags.bind = argv[4];
  CFT_ASSIGN(const std::unique_ptr<Group> group, flags.join(Logger()));
  for (int i = 5; i < argc; ++i) {
    const auto floats = static_cast<size_t>(std::atoll(argv[i]));
    CFT_ASSIGN(const double whole, time_all_reduce(group.get(), floats, Wire::kFloat32));
    CFT_ASSIGN(const double half, time_all_reduce(group.get(), floats, Wire::kBfloat16));
    if (flags.rank == 0) {
      fmt::print("{{\"ranks\":{},\"floats\":{},\"ms\":{:.3f},\"ms_bfloat16\":{:.3f}}}\n",
                 flags.ranks, floats, whole * 1e3, half * 1e3);
    }
  }
  return {};
}

}  // namespace
}  // namespace cafetiere

int main(int argc, char** argv) {
  if (argc < 6) {
    std::fprintf(stderr, "usage: exchange_bench RANKS RANK MEET BIND FLOATS...\n");
    return 2;
  }
  const cafetiere::Status status = cafetiere::run(argc, argv);
  if (!status.ok()) std::fprintf(stderr, "exchange_bench: %s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}
