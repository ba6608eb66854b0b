// SPDX-License-Identifier: Apache-2.0
// Every net of examples/nets is planned, agrees on both devices, and learns one batch by heart.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <random>

#include "core/graph/filler.h"
#include "core/layers/registry.h"
#include "core/plan/plan.h"

namespace cafetiere {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> net_files() {
  const fs::path folder = fs::path(__FILE__).parent_path() / "../../examples/nets";
  std::vector<fs::path> files;
  for (const fs::directory_entry& file : fs::directory_iterator(folder)) {
    if (file.path().extension() == ".prototxt") files.push_back(file.path());
  }
  std::ranges::sort(files);
  return files;
}

/// A net with filled parameters, a plan and gradient descent with momentum.
class SmallTraining {
 public:
  static Result<std::unique_ptr<SmallTraining>> start(const fs::path& path, Device& device) {
    CFT_ASSIGN(NetText net, read_net(path.string()));
    caffe::NetState state;
    state.set_phase(caffe::TRAIN);
    CFT_ASSIGN(Graph graph, Graph::build(net, state, {.types = layer_types(), .fed = {}}));
    std::unique_ptr<SmallTraining> training(new SmallTraining(std::move(graph)));
    CFT_TRY(training->prepare(device));
    return training;
  }

  /// The loss before the step that it makes.
  float step() {
    constexpr float kRate = 0.03F, kMomentum = 0.9F;
    EXPECT_TRUE(plan_->run(pool_, {}).ok());
    for (const Param& p : graph_.params()) {
      for (size_t i = size_t(p.offset); i < size_t(p.offset + p.shape.count()); ++i) {
        if (p.kind == ParamKind::kLearned) {
          data_[i] -= velocity_[i] = kMomentum * velocity_[i] + kRate * diff_[i];
        } else {
          data_[i] = p.fraction * data_[i] + diff_[i];
        }
      }
    }
    return plan_->loss();
  }

 private:
  explicit SmallTraining(Graph graph)
      : graph_(std::move(graph)),
        data_(size_t(graph_.arena_size())),
        diff_(data_.size()),
        velocity_(data_.size()) {}

  Status prepare(Device& device) {
    Random random(7);
    for (const Param& p : graph_.params()) {
      const auto values = std::span(data_).subspan(size_t(p.offset), size_t(p.shape.count()));
      CFT_TRY(fill(p.filler, p.shape, values, random));
    }
    CFT_ASSIGN(plan_,
               Plan::compile(graph_, device, param_pointers(graph_, data_.data(), diff_.data()),
                             {.backward = true, .outputs = {}}));
    for (const Plan::Blob& blob : plan_->inputs()) feed(blob);
    return {};
  }

  /// Images are noise, classes and tokens whole numbers below 3, places count up along a row; the
  /// class of a pixel is its brightest channel.
  void feed(const Plan::Blob& blob) {
    std::mt19937 random(3);
    std::uniform_real_distribution<float> noise(-1, 1);
    for (int64_t i = 0; i < blob.shape.count(); ++i) {
      const bool image = blob.name == "data";
      blob.data[i] = image ? noise(random) : float((i * i / 5 + i) % 3);
      if (blob.name == "places") blob.data[i] = float(i % blob.shape[1]);
      if (blob.name == "cont") blob.data[i] = i < blob.shape[1] ? 0 : 1;
      if (blob.name == "label" && blob.shape.axes() == 4) blob.data[i] = brightest(i);
    }
  }
  float brightest(int64_t pixel) const {
    const Plan::Blob& image = plan_->inputs()[0];
    const int64_t pixels = image.shape.count(2), channels = image.shape[1];
    const float* at = image.data + pixel / pixels * channels * pixels + pixel % pixels;
    int64_t best = 0;
    for (int64_t c = 1; c < channels; ++c) {
      if (at[c * pixels] > at[best * pixels]) best = c;
    }
    return float(best);
  }

  Graph graph_;
  std::vector<float> data_, diff_, velocity_;
  std::unique_ptr<Plan> plan_;
  ThreadPool pool_{2};
};

class ExampleNet : public ::testing::TestWithParam<fs::path> {};

TEST_P(ExampleNet, LearnsABatchByHeart) {
  const auto ref = make_ref_device(), cpu = make_cpu_device();
  auto slow = SmallTraining::start(GetParam(), *ref);
  ASSERT_TRUE(slow.ok()) << slow.status().message();
  auto fast = SmallTraining::start(GetParam(), *cpu);
  ASSERT_TRUE(fast.ok()) << fast.status().message();
  const float first = (*fast)->step();
  EXPECT_NEAR((*slow)->step(), first, 1e-4 * std::fabs(first));
  float loss = (*fast)->step();
  EXPECT_NEAR((*slow)->step(), loss, 1e-3 * std::fabs(first)) << "after a step";
  for (int i = 0; i < 100; ++i) loss = (*fast)->step();
  EXPECT_LT(loss, 0.5F * first);
}

INSTANTIATE_TEST_SUITE_P(Examples, ExampleNet, ::testing::ValuesIn(net_files()),
                         [](const auto& info) { return info.param.stem().string(); });

}  // namespace
}  // namespace cafetiere
