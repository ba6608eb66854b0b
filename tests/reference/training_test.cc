// SPDX-License-Identifier: Apache-2.0
// Trainings of small nets by each of Caffe's rules: the same losses as in the reference, and states
// that pass from one library to the other.
#include "tests/reference/training.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

namespace cafetiere {
namespace {

constexpr TrainedNet kNets[] = {{"lenet", 1, 28},
                                {"cifar10_quick", 3, 32},
                                {"alexnet", 3, 32},
                                {"googlenet", 3, 16},
                                {"resnet", 3, 16}};

constexpr const char* kRules[] = {"SGD", "Nesterov", "AdaGrad", "RMSProp", "AdaDelta", "Adam"};

constexpr double kClose = 1e-4;
constexpr double kRounding =
    1e-5;  ///< what rounding adds up to in 200 steps that take the same turns

/// The worst relative difference of the first `steps` losses.
double worst(const std::vector<float>& actual, const std::vector<float>& expected, size_t steps) {
  double difference = 0;
  for (size_t i = 0; i < steps; ++i) {
    difference = std::max(difference, relative_difference({actual[i]}, {expected[i]}));
  }
  return difference;
}

/// The kernels for AVX2, and some that round otherwise: those for AVX-512 where this machine has it,
/// those for AVX without fused multiplication where not; and those for SSE.
std::vector<ReferenceKernels> reference_kernels() {
  return {
      {"Haswell"}, {__builtin_cpu_supports("avx512f") ? "SkylakeX" : "Sandybridge"}, {"Nehalem"}};
}

/// How one rule's course differs from the reference's.
struct Course {
  double first = 0, all = 0;
  std::vector<double> spreads;  ///< between the reference's own kernels: the first and each other
  /// Where that is more than rounding alone: how far each is from the reference's course in double
  /// precision. Theirs is the worst of its kernels; the plain one is that of our device "ref".
  std::optional<double> ours_exact, plain_exact, theirs_exact;
  double our_spread = 0;  ///< between our two devices, where "ref" was run

  /// Whether the courses part by more than the reference's own.
  bool parts() const {
    const double spread = spreads.empty() ? 0 : std::ranges::max(spreads);
    return all > std::max(3 * spread, kRounding);
  }

  /// Rounding explains that the courses part: kernels of ours stay as close to double precision as the
  /// reference's do, or part from each other by as much. An error of a formula moves both alike.
  bool rounding_explains() const {
    if (!theirs_exact) return true;
    const double nearest = std::min(*ours_exact, plain_exact.value_or(*ours_exact));
    return nearest <= std::max({3 * *theirs_exact, 3 * our_spread, kRounding});
  }
};

std::string figure(const std::optional<double>& value) {
  return value ? fmt::format("{:.1e}", *value) : "";
}

class ReferenceTraining : public ::testing::TestWithParam<TrainedNet> {
 protected:
  void SetUp() override {
    if (!reference_is_there()) GTEST_SKIP() << "tools/reference_caffe has not been run";
  }

  static constexpr size_t kSteps = 200, kFirst = 20;

  /// Whether docs/parity.md is made of the figures, which then has the spreads of all kernels.
  static bool is_reported() { return !GTEST_FLAG_GET(output).empty(); }

  /// Trains in both libraries; in the reference, with as many kernels as it takes to tell what
  /// rounding explains.
  void compare(const std::string& rule, Course& course) {
    TrainingBench bench(GetParam(), rule);
    const TrainingOutcome ours = bench.here("ours", kSteps);
    ASSERT_GE(ours.losses.size(), kSteps);
    std::vector<TrainingOutcome> theirs;
    for (const ReferenceKernels& kernels : reference_kernels()) {
      if (!theirs.empty() && !course.parts() && !is_reported()) break;
      theirs.push_back(bench.in_reference("theirs", kSteps, "", kernels));
      ASSERT_EQ(theirs.back().losses.size(), kSteps);
      if (theirs.size() == 1) {
        course.first = worst(ours.losses, theirs[0].losses, kFirst);
        course.all = worst(ours.losses, theirs[0].losses, kSteps);
        continue;
      }
      course.spreads.push_back(worst(theirs.back().losses, theirs[0].losses, kSteps));
    }
    if (course.parts()) judge(bench, ours, theirs, course);
  }

  /// Which side is nearer to the course in double precision.
  void judge(TrainingBench& bench, const TrainingOutcome& ours,
             const std::vector<TrainingOutcome>& theirs, Course& course) {
    const TrainingOutcome exact = bench.in_reference("exact", kSteps, "", {.float64 = true});
    ASSERT_EQ(exact.losses.size(), kSteps);
    course.ours_exact = worst(ours.losses, exact.losses, kSteps);
    course.theirs_exact = 0;
    for (const TrainingOutcome& t : theirs) {
      course.theirs_exact = std::max(*course.theirs_exact, worst(t.losses, exact.losses, kSteps));
    }
    if (course.rounding_explains()) return;
    const TrainingOutcome plain = bench.here("plain", kSteps, "", "ref");
    ASSERT_GE(plain.losses.size(), kSteps);
    course.plain_exact = worst(plain.losses, exact.losses, kSteps);
    course.our_spread = worst(ours.losses, plain.losses, kSteps);
  }
};

/// Whether two runs that round differently part within 200 steps is chance: one maximum of a pooling
/// window that turns is enough.
TEST_P(ReferenceTraining, TakesTheSameCourse) {
  for (const char* rule : kRules) {
    SCOPED_TRACE(rule);
    Course course;
    compare(rule, course);
    if (HasFatalFailure()) return;
    EXPECT_LE(course.first, kClose);
    EXPECT_TRUE(course.rounding_explains());
    RecordProperty(rule,
                   fmt::format("{:.1e} | {:.1e} | {:.1e} | {} | {} | {}", course.first, course.all,
                               fmt::join(course.spreads, " | "), figure(course.ours_exact),
                               figure(course.plain_exact), figure(course.theirs_exact)));
  }
  RecordProperty("kernels", reference_kernels()[1].core);
}

INSTANTIATE_TEST_SUITE_P(Nets, ReferenceTraining, ::testing::ValuesIn(kNets),
                         [](const auto& info) { return std::string(info.param.name); });

class ReferenceState : public ::testing::TestWithParam<std::tuple<const char*, bool>> {
 protected:
  void SetUp() override {
    if (!reference_is_there()) GTEST_SKIP() << "tools/reference_caffe has not been run";
  }
};

/// The worst relative difference of a parameter.
double worst_weight(const TrainingOutcome& actual, const TrainingOutcome& expected) {
  double difference = actual.weights.size() == expected.weights.size() ? 0 : 1;
  for (size_t i = 0; i < expected.weights.size() && difference < 1; ++i) {
    difference = std::max(difference, relative_difference(actual.weights[i], expected.weights[i]));
  }
  return difference;
}

/// Weights and states of either library are taken up by the other; the net has statistics too. Half a
/// run is an epoch, as the reference begins its data anew when it goes on. Each is compared with the
/// whole run of the library that began, so that only what follows the change of hands can differ.
TEST_P(ReferenceState, PassesFromOneToTheOther) {
  constexpr int kHalf = 10, kWhole = 20;
  const auto& [rule, hdf5] = GetParam();
  TrainingBench bench({"resnet", 3, 16}, rule, hdf5, kHalf * 8);
  const TrainingOutcome all_ours = bench.here("all_ours", kWhole);
  bench.here("ours", kHalf);
  const double there =
      worst_weight(bench.in_reference("on", kWhole, bench.state_path("ours", kHalf)), all_ours);
  const TrainingOutcome all_theirs = bench.in_reference("all_theirs", kWhole);
  bench.in_reference("theirs", kHalf);
  const double here =
      worst_weight(bench.here("back", kWhole, bench.state_path("theirs", kHalf)), all_theirs);
  EXPECT_LE(there, kClose) << "begun here, finished by the reference";
  EXPECT_LE(here, kClose) << "begun by the reference, finished here";
  RecordProperty("there", fmt::format("{:.1e}", there));
  RecordProperty("here", fmt::format("{:.1e}", here));
}

std::string state_name(const ::testing::TestParamInfo<std::tuple<const char*, bool>>& info) {
  return fmt::format("{}_{}", std::get<0>(info.param), std::get<1>(info.param) ? "HDF5" : "binary");
}

INSTANTIATE_TEST_SUITE_P(Rules, ReferenceState,
                         ::testing::Combine(::testing::ValuesIn(kRules), ::testing::Bool()),
                         state_name);

}  // namespace
}  // namespace cafetiere
