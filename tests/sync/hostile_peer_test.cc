// SPDX-License-Identifier: Apache-2.0
// A rank that lies about sizes and places: the others end with an error and read nothing that is not
// theirs.
#include <gmock/gmock.h>

#include <functional>
#include <thread>

#include "core/sync/allreduce.h"
#include "core/sync/shuffle.h"
#include "tests/data/rows.h"

namespace cafetiere {
namespace {

using testing::HasSubstr;

/// A rank of a group that changes what it sends in some of its exchanges.
class Liar : public Group {
 public:
  /// `lie` is given the number of the exchange and a message of it.
  using Lie = std::function<void(int, std::vector<std::byte>&)>;
  Liar(Group* group, Lie lie) : group_(group), lie_(std::move(lie)) {}

  int rank() const override { return group_->rank(); }
  int size() const override { return group_->size(); }
  Status exchange(std::span<const Send> sends, std::span<const Receive> receives) override {
    std::vector<std::vector<std::byte>> messages;
    std::vector<Send> changed;
    for (const Send& send : sends) {
      const auto* from = static_cast<const std::byte*>(send.data);
      auto& message = messages.emplace_back(from, from + send.bytes);
      lie_(exchanges_, message);
      changed.push_back({send.peer, message.data(), message.size()});
    }
    ++exchanges_;
    return group_->exchange(changed, receives);
  }
  Status run(Schedule* schedule) override { return group_->run(schedule); }
  void cancel() override { group_->cancel(); }
  Counters counters() const override { return {}; }

 private:
  Group* group_;
  Lie lie_;
  int exchanges_ = 0;
};

/// What rank 0 is told when rank 1 lies; both call body(group).
Status told(const Liar::Lie& lie, const std::function<Status(Group*)>& body) {
  auto groups = make_local_groups(2);
  std::thread liar([&] {
    Liar rank(groups[1].get(), lie);
    (void)body(&rank);
  });
  Status status = body(groups[0].get());
  groups[0]->cancel();
  liar.join();
  return status;
}

Status shuffle_some(Group* group) {
  RowTable table(*RowSchema::parse(R"({"columns": [{"name": "x", "type": "i32"}], "id": ""})"));
  RowBytes bytes;
  for (int i = 0; i < 100; ++i) bytes.add<int32_t>(i);
  CFT_TRY(table.append(100, bytes.span()));
  return shuffle_rows(group, std::move(table), 4, 1).status();
}

// The exchanges of shuffle_rows(): the terms; sizes of keys, keys; counts; sizes of answers, answers.
constexpr int kTerms = 0, kAnswerSizes = 4, kAnswers = 5;

TEST(HostilePeer, MayNotAnswerWithFewerPositionsThanAsked) {
  const Status status = told(
      [](int exchange, std::vector<std::byte>& message) {
        if (exchange == kAnswerSizes) message.assign(8, std::byte{0});
        if (exchange == kAnswers) message.clear();
      },
      shuffle_some);
  EXPECT_THAT(status.message(), HasSubstr("rank 1 gave rows no positions among 200"));
}

TEST(HostilePeer, MayNotGivePositionsThatAreNone) {
  const Status status = told(
      [](int exchange, std::vector<std::byte>& message) {
        if (exchange == kAnswers) message.assign(message.size(), std::byte{0x7f});
      },
      shuffle_some);
  EXPECT_THAT(status.message(), HasSubstr("rank 1 gave rows no positions among 200"));
}

TEST(HostilePeer, MayNotCountFewerThanNoRows) {
  const Status status = told(
      [](int exchange, std::vector<std::byte>& message) {
        if (exchange == kTerms) std::fill(message.end() - 8, message.end(), std::byte{0xff});
      },
      shuffle_some);
  EXPECT_THAT(status.message(), HasSubstr("rank 1 counts -1 rows"));
}

/// One round of allreduce with clipping, which gathers norms: their sizes, then they.
Status one_round(Group* group) {
  constexpr int64_t kFloats = 10'000;
  caffe::SolverParameter solver;
  solver.set_base_lr(0.1F);
  ThreadPool pool(1);
  const std::vector<ParamSpan> spans{{.count = kFloats}};
  CFT_ASSIGN(ArenaUpdate update, ArenaUpdate::make(solver, spans, kFloats));
  AllReduce mode({.group = group, .shards = 2, .floats = kFloats, .clip = 1, .pool = &pool},
                 std::move(update), {});
  std::vector<float> gradient(kFloats, 1), weights(kFloats, 0);
  CFT_TRY(mode.gradient({}, 0, gradient, weights));
  return mode.end_round({.iter = 0, .rate = 1, .gradient_scale = 1, .passes = 1}, gradient,
                        weights);
}

TEST(HostilePeer, MayNotCountMoreNormsThanItSends) {
  for (const int factor : {3, 255}) {
    const Status status = told(
        [&](int exchange, std::vector<std::byte>& message) {
          if (exchange == 1) message[0] = std::byte(factor);
        },
        one_round);
    EXPECT_THAT(status.message(), HasSubstr("rank 1 sent")) << factor;
  }
  const Status none = told(
      [](int exchange, std::vector<std::byte>& message) {
        if (exchange == 0) message.assign(8, std::byte{0});
        if (exchange == 1) message.clear();
      },
      one_round);
  EXPECT_THAT(none.message(), HasSubstr("rank 1 sent 0 bytes of norms"));
}

}  // namespace
}  // namespace cafetiere
