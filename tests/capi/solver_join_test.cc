// SPDX-License-Identifier: Apache-2.0
// Solvers of several ranks, driven step by step: one set of weights.
#include <gmock/gmock.h>

#include <array>
#include <thread>

#include "tests/capi/small_training.h"

namespace cafetiere {
namespace {

using testing::HasSubstr;

constexpr const char* kJoined = R"(
  layer { name: "in" type: "Input" top: "data" top: "label"
    input_param { shape { dim: 4 dim: 3 } shape { dim: 4 dim: 2 } } }
  layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
    inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
  layer { name: "loss" type: "EuclideanLoss" bottom: "ip" bottom: "label" top: "loss" })";

/// A solver whose inputs are the rank's.
struct Ranked {
  cft_solver* solver = nullptr;
  cft_net* net = nullptr;

  explicit Ranked(int rank, int seed, const std::string& more = "momentum: 0.9") {
    const std::string text = "base_lr: 0.05 lr_policy: 'fixed' max_iter: 9 " + more +
                             " random_seed: " + std::to_string(seed) + " net_param {" + kJoined +
                             "}";
    EXPECT_EQ(cft_solver_create(nlohmann::json{{"text", text}}.dump().c_str(), nullptr, &solver), 0)
        << cft_last_error();
    EXPECT_EQ(cft_solver_net(solver, -1, &net), 0);
    for (int number : {0, 1}) {
      cft_blob blob = this->blob(&cft_net_blob, number);
      for (int i = 0; i < 8; ++i) blob.data[i] = float((i * 7 + rank * 5 + number) % 11) / 11.f;
    }
  }
  ~Ranked() { cft_solver_destroy(solver); }
  Ranked(const Ranked&) = delete;

  template <class Get>
  cft_blob blob(Get get, int number) const {
    cft_blob blob{};
    blob.struct_size = sizeof blob;
    EXPECT_EQ(get(net, number, &blob, nullptr), 0) << cft_last_error();
    return blob;
  }
  std::vector<float> weights() const {
    const cft_blob blob = this->blob(&cft_net_param, 0);
    return {blob.data, blob.data + 6};
  }
};

/// What two ranks do at the same time; both codes.
template <class Work>
std::array<int, 2> both(Work work) {
  std::array<int, 2> codes{};
  std::thread other([&] { codes[1] = work(1); });
  codes[0] = work(0);
  other.join();
  return codes;
}

/// Two ranks beside one that is given the mean of the gradients of both.
void expect_the_mean_of_gradients(const std::string& solver) {
  const std::vector<cft_group*> groups = small_groups(2);
  const Ranked ranks[] = {Ranked(0, 1, solver), Ranked(1, 2, solver)};
  const Ranked alone(0, 1, solver), other(1, 1, solver);
  EXPECT_NE(ranks[0].weights(), ranks[1].weights());
  const auto joined =
      both([&](int r) { return cft_solver_join(ranks[r].solver, groups[size_t(r)]); });
  EXPECT_EQ(joined, (std::array{0, 0}));
  EXPECT_EQ(ranks[1].weights(), alone.weights());
  for (cft_group* group : groups) cft_group_destroy(group);  // the solvers keep theirs
  for (int step = 0; step < 5; ++step) {
    EXPECT_EQ(both([&](int r) { return cft_solver_step(ranks[r].solver, 1); }), (std::array{0, 0}));
    // The same by hand: `other` has the weights of `alone` and the inputs of rank 1.
    for (int number : {0, 1}) {
      const cft_blob to = other.blob(&cft_net_param, number);
      const cft_blob from = alone.blob(&cft_net_param, number);
      std::copy_n(from.data, number == 0 ? 6 : 2, to.data);
    }
    for (const Ranked* one : {&alone, &other}) {
      cft_net_clear_param_diffs(one->net);
      EXPECT_EQ(cft_net_forward(one->net, 0, 2, nullptr), 0) << cft_last_error();
      EXPECT_EQ(cft_net_backward(one->net, 2, 0), 0) << cft_last_error();
    }
    for (int number : {0, 1}) {
      const cft_blob sum = alone.blob(&cft_net_param, number);
      const cft_blob more = other.blob(&cft_net_param, number);
      for (int i = 0; i < (number == 0 ? 6 : 2); ++i)
        sum.diff[i] = (sum.diff[i] + more.diff[i]) / 2;
    }
    EXPECT_EQ(cft_solver_apply_update(alone.solver), 0) << cft_last_error();
    EXPECT_EQ(ranks[0].weights(), alone.weights());
    EXPECT_EQ(ranks[1].weights(), alone.weights());
  }
}

TEST(SolverJoin, RanksUpdateByTheMeanOfTheirGradients) {
  expect_the_mean_of_gradients("momentum: 0.9");
}

// The norm is that of the mean: that of the sum would be clipped sooner.
TEST(SolverJoin, TheMeanIsWhatIsClipped) {
  expect_the_mean_of_gradients("momentum: 0.9 clip_gradients: 0.01");
}

TEST(SolverJoin, ARankThatFailsEndsTheOthersStep) {
  const std::vector<cft_group*> groups = small_groups(2);
  const Ranked ranks[] = {Ranked(0, 1), Ranked(1, 1)};
  both([&](int r) { return cft_solver_join(ranks[r].solver, groups[size_t(r)]); });
  const int64_t wrong[] = {4, 7};
  EXPECT_EQ(cft_net_reshape_blob(ranks[1].net, 0, wrong, 2), 0);
  const auto codes = both([&](int r) { return cft_solver_step(ranks[r].solver, 1); });
  EXPECT_NE(codes[0], 0);
  EXPECT_EQ(codes[1], CFT_INVALID_ARGUMENT);
  for (cft_group* group : groups) cft_group_destroy(group);
}

TEST(SolverJoin, RanksAtDifferentIterationsAreToldWhich) {
  const std::vector<cft_group*> groups = small_groups(2);
  const Ranked ranks[] = {Ranked(0, 1), Ranked(1, 1)};
  EXPECT_EQ(cft_solver_step(ranks[1].solver, 2), 0);
  const auto codes = both([&](int r) {
    const int code = cft_solver_join(ranks[r].solver, groups[size_t(r)]);
    EXPECT_THAT(cft_last_error(),
                HasSubstr("rank 1 has 32 floats of parameters and is at iteration 2"));
    return code;
  });
  EXPECT_EQ(codes, (std::array<int, 2>{CFT_INVALID_ARGUMENT, CFT_INVALID_ARGUMENT}));
  for (cft_group* group : groups) cft_group_destroy(group);
}

TEST(GroupSecret, CanBeAgreedOnBeforeTheConnection) {
  cft_group* group = nullptr;
  ASSERT_EQ(cft_group_create(R"({"secret": "sixteen bytes at least"})", &group), 0);
  EXPECT_NE(cft_group_set_secret(group, "short"), 0);
  EXPECT_EQ(cft_group_set_secret(group, "another of sixteen bytes"), 0) << cft_last_error();
  EXPECT_EQ(cft_group_connect(group, R"([""])"), 0) << cft_last_error();
  EXPECT_NE(cft_group_set_secret(group, "another of sixteen bytes"), 0);
  EXPECT_THAT(cft_last_error(), HasSubstr("once the ranks connect"));
  EXPECT_EQ(cft_group_barrier(group), 0) << cft_last_error();
  cft_group_destroy(group);
}

}  // namespace
}  // namespace cafetiere
