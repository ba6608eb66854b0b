// SPDX-License-Identifier: Apache-2.0
// Gradients in many buckets: the same sums as in one, whenever a bucket is said to be final.
#include "core/sync/gradient_exchange.h"

#include <gtest/gtest.h>

#include <new>
#include <random>
#include <thread>

namespace cafetiere {
namespace {

constexpr int kShards = 3;
constexpr size_t kFloats = 1'000'001;
constexpr size_t kBucket = GradientExchange::bucket_floats(kFloats);
static_assert(kBucket * 3 < kFloats);

std::vector<float> gradient_of(int shard) {
  std::mt19937 random(unsigned(shard + 1));
  std::uniform_real_distribution<float> values(-1, 1);
  std::vector<float> gradient(kFloats);
  for (float& g : gradient) g = values(random);
  return gradient;
}

/// The sum of all shards as `ranks` ranks work it out, `steps` being the points that the last
/// shard's gradient is final from.
std::vector<float> sum(int ranks, const std::vector<size_t>& steps) {
  auto groups = make_local_groups(ranks);
  std::vector<float> all(kFloats);
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      ThreadPool pool(1);
      GradientExchange exchange({.group = ranks > 1 ? groups[size_t(r)].get() : nullptr,
                                 .shards = kShards,
                                 .floats = int64_t(kFloats),
                                 .pool = &pool},
                                {});
      std::vector<float> last;
      for (int round = 0; round < 2; ++round) {
        for (int shard = exchange.shards().begin; shard < exchange.shards().end; ++shard) {
          last = gradient_of(shard);
          if (shard + 1 == exchange.shards().end) break;
          EXPECT_TRUE(exchange.add(last).ok());
        }
        for (size_t from : steps) exchange.final_from(last, from);
        const Status status = exchange.finish(last);
        EXPECT_TRUE(status.ok()) << status.message();
      }
      for (const auto& slice : GradientExchange::slices(kFloats, r, ranks)) {
        std::copy(last.begin() + ptrdiff_t(slice.begin), last.begin() + ptrdiff_t(slice.end),
                  all.begin() + ptrdiff_t(slice.begin));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  return all;
}

TEST(GradientExchange, HasTheSameBitsForAnyRanksAndBuckets) {
  const std::vector<float> one = sum(1, {});
  EXPECT_EQ(one, sum(2, {}));
  EXPECT_EQ(one, sum(3, {kFloats - 5, kBucket, 7, 0}));
  EXPECT_EQ(one, sum(2, {kBucket * 2, 100}));
}

TEST(GradientExchange, TellsThatAPeerIsGone) {
  auto groups = make_local_groups(2);
  ThreadPool pool(1);
  GradientExchange exchange(
      {.group = groups[0].get(), .shards = 2, .floats = int64_t(kFloats), .pool = &pool}, {});
  std::vector<float> gradient(kFloats);
  exchange.final_from(gradient, kBucket);
  groups[1]->cancel();
  EXPECT_FALSE(exchange.finish(gradient).ok());
}

/// A group whose exchanges run out of memory.
class ShortGroup : public Group {
 public:
  int rank() const override { return 0; }
  int size() const override { return 2; }
  Status exchange(std::span<const Send>, std::span<const Receive>) override {
    throw std::bad_alloc();
  }
  Status run(Schedule*) override { throw std::bad_alloc(); }
  void cancel() override {}
  Counters counters() const override { return {}; }
};

TEST(GradientExchange, TellsWhatItsThreadThrows) {
  ShortGroup group;
  ThreadPool pool(1);
  GradientExchange exchange(
      {.group = &group, .shards = 2, .floats = int64_t(kFloats), .pool = &pool}, {});
  std::vector<float> gradient(kFloats);
  for (int round = 0; round < 2; ++round) {
    exchange.final_from(gradient, kBucket);
    EXPECT_EQ(exchange.finish(gradient).code(), ErrorCode::kOutOfMemory);
  }
}

}  // namespace
}  // namespace cafetiere
