// SPDX-License-Identifier: Apache-2.0
// Modes that are made of others hand on what backward tells: gradients leave while it still runs.
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "core/sync/sync.h"

namespace cafetiere {
namespace {

constexpr int64_t kParameters = 300'000;

/// Tells when something is first exchanged through a group.
class Watched : public Group {
 public:
  explicit Watched(Group* group) : group_(group) {}
  int rank() const override { return group_->rank(); }
  int size() const override { return group_->size(); }
  Status exchange(std::span<const Send> sends, std::span<const Receive> receives) override {
    note();
    return group_->exchange(sends, receives);
  }
  Status run(Schedule* schedule) override {
    note();
    return group_->run(schedule);
  }
  void cancel() override { group_->cancel(); }
  Counters counters() const override { return group_->counters(); }

  /// Forgets what was exchanged so far.
  std::future<void> watch() {
    const std::lock_guard lock(mutex_);
    first_.emplace();
    return first_->get_future();
  }

 private:
  void note() {
    const std::lock_guard lock(mutex_);
    if (first_) first_->set_value();
    first_.reset();
  }
  Group* const group_;
  std::mutex mutex_;
  std::optional<std::promise<void>> first_;
};

Result<ArenaUpdate> overlap_update() {
  caffe::SolverParameter solver;
  solver.set_base_lr(0.1F);
  solver.set_lr_policy("fixed");
  return ArenaUpdate::make(solver, {{0, kParameters, 1, 1, false, 1}}, kParameters);
}

/// Whether gradients that are said to be final leave before the iteration ends, on both ranks.
void expect_overlap(const std::string& mode, HeldHistory state) {
  caffe::SyncParameter sync;
  sync.set_mode(mode);
  auto groups = make_local_groups(2);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      ThreadPool pool(1);
      Watched group(groups[size_t(rank)].get());
      auto made =
          make_sync(sync, {.group = &group, .shards = 2, .floats = kParameters, .pool = &pool},
                    overlap_update);
      ASSERT_TRUE(made.ok()) << made.status().message();
      Sync& s = **made;
      ASSERT_TRUE(s.restore(state).ok());
      std::vector<float> weights(kParameters, 1.F), gradient(kParameters, 1.F);
      s.begin_shard(rank, weights);
      std::future<void> exchanged = group.watch();
      s.final_from(gradient, kParameters / 2);
      EXPECT_EQ(exchanged.wait_for(std::chrono::seconds(10)), std::future_status::ready) << mode;
      const UpdateStep step{.iter = 0, .rate = 0.1F, .gradient_scale = 1, .passes = 1};
      EXPECT_TRUE(s.gradient(step, 1, gradient, weights).ok());
      EXPECT_TRUE(s.end_shard(rank, weights).ok());
      EXPECT_TRUE(s.end_round(step, gradient, weights).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Overlap, AllReduce) { expect_overlap("allreduce", HeldHistory({})); }
TEST(Overlap, Hierarchical) { expect_overlap("hierarchical", HeldHistory({})); }
TEST(Overlap, AutoThatChoseAllReduce) { expect_overlap("auto", HeldHistory({}, "auto, period 1")); }

}  // namespace
}  // namespace cafetiere
