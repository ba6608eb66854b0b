// SPDX-License-Identifier: Apache-2.0
#include "core/data/prefetch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <new>
#include <thread>

namespace cafetiere {
namespace {

using std::chrono::milliseconds;

/// Batches of two rows that hold 100 * sub_step + shard; one may fail, each may take a while.
class CountingSource : public Source {
 public:
  std::vector<Shape> top_shapes() const override { return {Shape{2, 3}, Shape{2}}; }
  int64_t rows(int shard, int64_t) const override { return shard == 2 ? 0 : 2; }
  Status fill(int shard, int64_t sub_step, std::span<float* const> tops) override {
    std::this_thread::sleep_for(delay);
    ++filled;
    if (sub_step == short_sub_step) throw std::bad_alloc();
    if (sub_step == bad_sub_step) return invalid_argument("row 7 is bad");
    std::fill_n(tops[0], 6, static_cast<float>(100 * sub_step + shard));
    std::fill_n(tops[1], 2, static_cast<float>(shard));
    return {};
  }
  int64_t bad_sub_step = -1, short_sub_step = -1;
  milliseconds delay{0};
  std::atomic<int> filled{0};
};

TEST(Prefetch, GivesTheSequenceInOrder) {
  CountingSource source;
  Prefetch prefetch(&source, {{1, 4}, 5, 25});
  for (int64_t q = 5; q < 25; ++q) {
    for (int shard = 1; shard < 4; ++shard) {
      const auto batch = prefetch.next();
      ASSERT_TRUE(batch.ok()) << batch.status().message();
      EXPECT_EQ(batch->shard, shard);
      EXPECT_EQ(batch->sub_step, q);
      EXPECT_EQ(batch->rows, shard == 2 ? 0 : 2);
      if (batch->rows == 0) continue;
      EXPECT_EQ(batch->tops[0][5], static_cast<float>(100 * q + shard));
      EXPECT_EQ(batch->tops[1][1], static_cast<float>(shard));
    }
  }
  EXPECT_EQ(prefetch.next().status().code(), ErrorCode::kInternal);
}

/// Later batches are ready before earlier ones.
class ParallelSource : public CountingSource {
 public:
  bool parallel() const override { return true; }
  Status fill(int shard, int64_t sub_step, std::span<float* const> tops) override {
    const int now = ++inside;
    for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
    }
    std::this_thread::sleep_for(milliseconds(sub_step % 4 == 0 ? 8 : 1));
    const Status filled = CountingSource::fill(shard, sub_step, tops);
    --inside;
    return filled;
  }
  std::atomic<int> inside{0}, most{0};
};

TEST(Prefetch, SeveralThreadsKeepTheOrder) {
  for (const int threads : {2, 4}) {
    ParallelSource source;
    Prefetch prefetch(&source, {{0, 2}, 3, 43, 2}, 2, threads);
    for (int64_t step = 3; step < 43; step += 2) {
      for (int shard = 0; shard < 2; ++shard) {
        for (int64_t q = step; q < step + 2; ++q) {
          const auto batch = prefetch.next();
          ASSERT_TRUE(batch.ok()) << batch.status().message();
          EXPECT_EQ(batch->shard, shard);
          EXPECT_EQ(batch->sub_step, q);
          EXPECT_EQ(batch->tops[0][0], static_cast<float>(100 * q + shard));
        }
      }
    }
    EXPECT_EQ(prefetch.next().status().code(), ErrorCode::kInternal);
    EXPECT_GT(source.most, 1);
    EXPECT_LE(source.most, threads);
  }
}

TEST(Prefetch, SeveralThreadsDeliverAnErrorAtItsBatch) {
  ParallelSource source;
  source.bad_sub_step = 8;  // the slowest of its four: those behind it are ready before
  Prefetch prefetch(&source, {{0, 1}, 0, 100}, 2, 4);
  for (int q = 0; q < 8; ++q) EXPECT_TRUE(prefetch.next().ok());
  EXPECT_THAT(prefetch.next().status().message(), testing::HasSubstr("row 7"));
  EXPECT_THAT(prefetch.next().status().message(), testing::HasSubstr("row 7"));
}

TEST(Prefetch, ASourceForOneThreadGetsOne) {
  CountingSource source;
  source.delay = milliseconds(5);
  Prefetch prefetch(&source, {{0, 1}, 0, 100}, 2, 4);
  ASSERT_TRUE(prefetch.next().ok());
  std::this_thread::sleep_for(milliseconds(100));
  EXPECT_EQ(source.filled, 2);
}

TEST(Prefetch, RunsAheadByItsDepthOnly) {
  CountingSource source;
  Prefetch prefetch(&source, {{0, 1}, 0, 100}, 2);
  ASSERT_TRUE(prefetch.next().ok());
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_EQ(source.filled, 2);  // one in our hands and one ahead
  prefetch.give_back();
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (source.filled < 3 && std::chrono::steady_clock::now() < patience) {
    std::this_thread::yield();
  }
  EXPECT_EQ(source.filled, 3);
  ASSERT_EQ(prefetch.next()->sub_step, 1);
  EXPECT_EQ(prefetch.next()->sub_step, 2);
}

TEST(Prefetch, ManySmallBatchesAreMadeAheadAndFewLargeOnes) {
  struct Sized : CountingSource {
    explicit Sized(int64_t floats) : floats(floats) {}
    std::vector<Shape> top_shapes() const override { return {Shape{floats}}; }
    int64_t floats;
  };
  EXPECT_EQ(batches_ahead(Sized(1)), 64);
  EXPECT_EQ(batches_ahead(Sized(1'023)), 16);
  EXPECT_EQ(batches_ahead(Sized(64 * 784)), 2);
}

TEST(Prefetch, ADeepOneIsFilledAgainWhenHalfIsUsed) {
  for (const int threads : {1, 3}) {
    ParallelSource source;
    Prefetch prefetch(&source, {{0, 1}, 0, 100}, 16, threads);
    for (int q = 0; q < 100; ++q) {
      const auto batch = prefetch.next();
      ASSERT_TRUE(batch.ok()) << batch.status().message();
      EXPECT_EQ(batch->sub_step, q);
      EXPECT_LE(source.filled, q + 1 + 16);
    }
    EXPECT_EQ(prefetch.next().status().code(), ErrorCode::kInternal);
  }
}

TEST(Prefetch, DeliversAnErrorAtItsBatch) {
  CountingSource source;
  source.bad_sub_step = 2;
  Prefetch prefetch(&source, {{0, 1}, 0, 100});
  EXPECT_TRUE(prefetch.next().ok());
  EXPECT_TRUE(prefetch.next().ok());
  EXPECT_THAT(prefetch.next().status().message(), testing::HasSubstr("row 7"));
  EXPECT_THAT(prefetch.next().status().message(), testing::HasSubstr("row 7"));
}

TEST(Prefetch, DeliversWhatItsThreadThrows) {
  CountingSource source;
  source.short_sub_step = 2;
  Prefetch prefetch(&source, {{0, 1}, 0, 100});
  EXPECT_TRUE(prefetch.next().ok());
  EXPECT_TRUE(prefetch.next().ok());
  EXPECT_EQ(prefetch.next().status().code(), ErrorCode::kOutOfMemory);
  EXPECT_EQ(prefetch.next().status().code(), ErrorCode::kOutOfMemory);
}

TEST(Prefetch, CountsTheWaiting) {
  CountingSource source;
  source.delay = milliseconds(20);
  Prefetch prefetch(&source, {{0, 1}, 0, 4});
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(prefetch.next().ok());
  EXPECT_GT(prefetch.wait_seconds(), 0.06);
}

TEST(Prefetch, StopsInTheMiddle) {
  CountingSource source;
  source.delay = milliseconds(5);
  for (int i = 0; i < 5; ++i) {
    Prefetch prefetch(&source, {{0, 2}, 0, 1000});
    if (i > 0) {
      ASSERT_TRUE(prefetch.next().ok());
    }
  }
  Prefetch nothing(&source, {{0, 0}, 0, 1000});
  EXPECT_FALSE(nothing.next().ok());
}

}  // namespace
}  // namespace cafetiere
