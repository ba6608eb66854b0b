// SPDX-License-Identifier: Apache-2.0
// Plans on a device with memory and a queue of its own: every way in which layers are lowered, and a
// training of LeNet, to the bits of the reference device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <random>

#include "core/device/map.h"
#include "core/graph/filler.h"
#include "tests/device/far_device.h"
#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::StrEq;

std::vector<std::string> texts(const std::vector<StepInfo>& steps) {
  std::vector<std::string> list;
  for (const StepInfo& step : steps) list.push_back(step.name + ": " + step.kernel);
  return list;
}

std::vector<uint32_t> bits(const std::vector<float>& values) {
  std::vector<uint32_t> list;
  for (float v : values) list.push_back(std::bit_cast<uint32_t>(v));
  return list;
}

TEST(FarDevice, ItsMemoryIsOutOfReachButForItsKernels) {
  FarDevice far;
  const Memory memory = *far.allocate(Space::kDevice, 4096);
  std::byte* const at = memory.get();
  bool ran = false;
  const Kernel kernel{1, [&](int) { at[5] = std::byte{7}, ran = at[5] == std::byte{7}; }};
  far.queue()->submit(kernel);
  EXPECT_FALSE(ran) << "a kernel runs no sooner than it is waited for";
  far.queue()->wait();
  EXPECT_TRUE(ran);
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(at[5] = std::byte{8}, "");
}

TEST(FarDevice, OthersHaveNoMemoryOfTheirOwn) {
  const auto memory = make_cpu_device()->allocate(Space::kDevice, 4);
  EXPECT_THAT(memory.status().message(), StrEq("device 'cpu' has no memory of its own"));
}

// Layouts and formats change on the host, a conversion a step.
TEST(FarDevice, AVersionIsMadeThroughTheHost) {
  FarDevice far;
  Program program(&far);
  const TensorId x = program.external("x", {2, 3, 4}), y = program.tensor("y", {2, 3, 4});
  program.read(x, {Layout::kPixels, Format::kBFloat16, Space::kDevice});
  map(
      program, "map", [](float v) { return v; }, y, x);
  program.read(y, {Layout::kPixels, Format::kFloat32, Space::kDevice});
  std::vector<std::string> steps;
  for (const Step& step : program.steps()) steps.push_back(step.name + ": " + step.kernel);
  EXPECT_THAT(steps, ElementsAre("x convert: NCS to SCN bfloat16", "x copy: host to device",
                                 "x copy: host to device", "map: map NCS", "y copy: device to host",
                                 "y reorder: NCS to SCN", "y copy: host to device"));
}

std::string conv(const std::string& from, const std::string& to, const std::string& more = "") {
  return layer("Convolution", "name: '" + to + "' bottom: '" + from + "' top: '" + to + "' " + more,
               "convolution_param { num_output: 4 kernel_size: 3 pad: 1 }");
}

std::string product(const std::string& from, const std::string& to, const std::string& more = "") {
  return layer("InnerProduct",
               "name: '" + to + "' bottom: '" + from + "' top: '" + to + "' " + more,
               "inner_product_param { num_output: 3 }");
}

/// A way of lowering, and a step by which it shows.
struct Way {
  const char* name;
  LayerCase layers;
  std::string step;
};

void PrintTo(const Way& way, std::ostream* out) { *out << way.name; }

std::vector<Way> ways() {
  const std::string x = input("x", {2, 4, 5, 6}), rows = input("x", {4, 6});
  const auto one = [&](const std::string& type, const std::string& fields = "") {
    return LayerCase{x + layer(type, "bottom: 'x' top: 'y'", fields)};
  };
  return {
      {"Convolution", {x + conv("x", "y")}, "y forward: ref, queued"},
      {"FusedReLU",
       {x + conv("x", "y") + layer("ReLU", "bottom: 'y' top: 'y'") + conv("y", "z")},
       "z backward: ref, queued"},
      {"ReshapedInput", {x + product("x", "y")}, "y forward: ref, queued"},
      {"SharedWeights",
       {rows + product("x", "y", "param { name: 'w' } param { name: 'b' }") +
        layer("InnerProduct",
              "name: 'z' bottom: 'x' top: 'z' param { name: 'w' } param { name: 'b' }",
              "inner_product_param { num_output: 3 }") +
        layer("Eltwise", "name: 's' bottom: 'y' bottom: 'z' top: 's'")},
       "y[0] diff copy: device to host, queued"},
      {"ChannelMap",
       one("Deconvolution", "convolution_param { num_output: 3 kernel_size: 3 stride: 2 }"),
       "L bias: channel map NCS, queued"},
      {"MaxPooling", one("Pooling", "pooling_param { kernel_size: 3 stride: 2 }"),
       "L backward: ref, queued"},
      {"Lrn", one("LRN", "lrn_param { alpha: 0.5 }"), "L backward: ref, queued"},
      {"MapAndPooling",
       one("LRN", "lrn_param { norm_region: WITHIN_CHANNEL local_size: 3 alpha: 0.7 }"),
       "L inner gradient: map NCS, queued"},
      {"StatisticsOnTheHost",
       {x + conv("x", "y") + layer("BatchNorm", "bottom: 'y' top: 'y'") +
        layer("Scale", "name: 's' bottom: 'y' top: 'y'", "scale_param { bias_term: true }")},
       "L mean copy: device to host, queued"},
      {"ChannelSums",
       {x + conv("x", "y") + layer("PReLU", "bottom: 'y' top: 'y'")},
       "L gradient: ref, queued"},
      {"Softmax", one("Softmax"), "L forward: ref, queued"},
      {"LossOnTheHost",
       {.layers = rows + input("label", {4}) + product("x", "y") +
                  layer("SoftmaxWithLoss", "bottom: 'y' bottom: 'label' top: 'z'"),
        .labels = 3},
       "L prob copy: device to host, queued"},
      {"IndexedMap",
       {x + conv("x", "y") + layer("Dropout", "bottom: 'y' top: 'y'") + conv("y", "z")},
       "L forward: indexed map NCS"},
      {"SplitAndSum",
       {x + conv("x", "y") +
        layer("Eltwise", "bottom: 'x' bottom: 'y' bottom: 'x' top: 'z'",
              "eltwise_param { operation: SUM coeff: 1 coeff: -0.5 coeff: 2 }")},
       "L forward: map NCS, queued"},
      {"JoinAndCut",
       {x + conv("x", "y") + layer("Concat", "name: 'j' bottom: 'x' bottom: 'y' top: 'z'") +
        layer("Slice", "bottom: 'z' top: 'a' top: 'b'") +
        layer("AbsVal", "name: 'v' bottom: 'a' top: 'c'")},
       "j forward: copy NCS"},
      {"ViewOfADeviceTensor",
       {x + conv("x", "y") +
        layer("Reshape", "bottom: 'y' top: 'z'",
              "reshape_param { shape { dim: 0 dim: 8 dim: -1 } }") +
        layer("TanH", "name: 't' bottom: 'z' top: 'a'")},
       "t forward: map NCS, queued"},
      {"Recurrent",
       {.layers = input("x", {3, 2, 3}) + input("label", {3, 2}) + input("s", {2, 4}) +
                  input("h", {1, 2, 5}) + input("c", {1, 2, 5}) +
                  layer("LSTM",
                        "bottom: 'x' bottom: 'label' bottom: 's' bottom: 'h' bottom: 'c' "
                        "top: 'y' top: 'h_last' top: 'c_last'",
                        "recurrent_param { num_output: 5 expose_hidden: true }"),
        .labels = 2},
       "L cell: ranges"},
      {"Attention",
       {input("x", {2, 5, 6}) +
        layer("Attention", "bottom: 'x' top: 'y'", "attention_param { num_heads: 2 }")},
       "L attention: ref, queued"},
      {"GradientOnTheHost",
       {.layers = input("label", {4, 3}) + layer("Embed", "bottom: 'label' top: 'y'",
                                                 "embed_param { input_dim: 7 num_output: 5 }"),
        .labels = 7},
       "L bias gradient: ref, queued"},
      {"RangesAndAView",
       {x + conv("x", "y") +
        layer("Permute", "bottom: 'y' top: 'z'",
              "permute_param { order: 0 order: 2 order: 3 order: 1 }") +
        layer("GroupNorm", "name: 'g' bottom: 'z' top: 'a'", "group_norm_param { group: 1 }")},
       "g moments: ref, queued"},
  };
}

class FarLayer : public ::testing::TestWithParam<Way> {};

TEST_P(FarLayer, GivesTheBitsOfTheReference) {
  const LayerCase& c = GetParam().layers;
  FarDevice far;
  const auto ref = make_ref_device();
  for (const int passes : {1, 2}) {
    expect_same_bits(random_figures(c, far, 0, 2, passes), random_figures(c, *ref, 0, 2, passes));
  }
  auto net = TestNet::build(c.layers, c.phase);
  ASSERT_TRUE(net.ok()) << net.status().message();
  auto plan = (*net)->plan(far, 0);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_THAT(texts((*plan)->describe()), Contains(GetParam().step));
}

INSTANTIATE_TEST_SUITE_P(Ways, FarLayer, ::testing::ValuesIn(ways()),
                         [](const auto& info) { return std::string(info.param.name); });

// A layer without a far kernel: the copies to it and back are steps that a description names.
TEST(FarDevice, DescriptionsShowTheCopiesAroundALayerWithoutAKernel) {
  const std::string layers = input("x", {2, 4, 5, 6}) + conv("x", "y") +
                             layer("Crop", "bottom: 'y' bottom: 'size' top: 'z'") +
                             layer("TanH", "name: 't' bottom: 'z' top: 'a'");
  auto net = TestNet::build(input("size", {2, 4, 3, 3}) + layers, caffe::TEST);
  ASSERT_TRUE(net.ok()) << net.status().message();
  FarDevice far;
  const auto outline = PlanOutline::make((*net)->graph(), far, {.outputs = {"a"}});
  ASSERT_TRUE(outline.ok()) << outline.status().message();
  EXPECT_THAT(texts(outline->steps),
              ElementsAre("x copy: host to device, queued", "y[0] copy: host to device, queued",
                          "y[1] copy: host to device, queued", "y forward: ref, queued",
                          "y top copy: device to host, queued", "L forward: ranges",
                          "L copy: host to device, queued", "t forward: map NCS, queued",
                          "t copy: device to host, queued"));
}

/// The output of a plan of `rows` rows beside a larger one, each run in turn, and of the larger one.
std::vector<float> run_beside(Device& device, int64_t rows) {
  auto net = TestNet::build(
      input("x", {4, 4, 5, 6}) + conv("x", "y") + layer("Dropout", "bottom: 'y' top: 'z'"),
      caffe::TRAIN);
  EXPECT_TRUE(net.ok()) << net.status().message();
  ParamPointers params;
  for (size_t p = 0; p < (*net)->graph().params().size(); ++p) {
    std::ranges::fill((*net)->param(p), 0.25F);
    params.data.push_back((*net)->param(p).data());
    params.diff.push_back(nullptr);
  }
  const auto full = *Plan::compile((*net)->graph(), device, params, {.outputs = {}});
  const auto tail = *Plan::compile((*net)->graph(), device, params,
                                   {.batch = rows, .outputs = {}, .beside = full.get()});
  EXPECT_EQ(tail->arena_bytes(), 0);
  ThreadPool pool(2);
  std::vector<float> result;
  for (Plan* plan : {full.get(), tail.get(), full.get()}) {
    const Plan::Blob &x = plan->inputs()[0], &z = plan->outputs()[0];
    for (int64_t i = 0; i < x.shape.count(); ++i) x.data[i] = float(i % 7) + float(result.size());
    std::vector<double> seconds;
    EXPECT_TRUE(plan->time(pool, {}, seconds).ok());
    EXPECT_EQ(seconds.size(), plan->describe().size());
    result.insert(result.end(), z.data, z.data + z.shape.count());
  }
  return result;
}

TEST(FarDevice, PlansShareTheHostsArenaAndAreTimed) {
  FarDevice far;
  EXPECT_EQ(bits(run_beside(far, 2)), bits(run_beside(*make_ref_device(), 2)));
}

std::string lenet(int batch) {
  const auto convolution = [](const std::string& name, const std::string& from, int outputs) {
    return layer(
        "Convolution", "name: '" + name + "' bottom: '" + from + "' top: '" + name + "'",
        "convolution_param { kernel_size: 5 weight_filler { type: 'xavier' } num_output: " +
            std::to_string(outputs) + " }");
  };
  const auto pooling = [](const std::string& name, const std::string& from) {
    return layer("Pooling", "name: '" + name + "' bottom: '" + from + "' top: '" + name + "'",
                 "pooling_param { kernel_size: 2 stride: 2 }");
  };
  const auto dense = [](const std::string& name, const std::string& from, int outputs) {
    return layer("InnerProduct", "name: '" + name + "' bottom: '" + from + "' top: '" + name + "'",
                 "inner_product_param { weight_filler { type: 'xavier' } num_output: " +
                     std::to_string(outputs) + " }");
  };
  return input("data", {batch, 1, 28, 28}) + input("label", {batch}) +
         convolution("conv1", "data", 20) + pooling("pool1", "conv1") +
         convolution("conv2", "pool1", 50) + pooling("pool2", "conv2") +
         dense("ip1", "pool2", 500) + layer("ReLU", "name: 'relu' bottom: 'ip1' top: 'ip1'") +
         dense("ip2", "ip1", 10) +
         layer("SoftmaxWithLoss", "bottom: 'ip2' bottom: 'label' top: 'loss'");
}

/// The losses of `steps` steps of gradient descent with momentum, another batch each, and then the
/// weights. Each gradient is taken as soon as it is said to be final.
std::vector<float> train_lenet(Device& device, int steps) {
  auto net = TestNet::build(lenet(2), caffe::TRAIN);
  EXPECT_TRUE(net.ok()) << net.status().message();
  const std::vector<Param>& params = (*net)->graph().params();
  ParamPointers pointers;
  std::vector<std::vector<float>> velocity, gradients;
  Random filling(7);
  for (size_t p = 0; p < params.size(); ++p) {
    EXPECT_TRUE(fill(params[p].filler, params[p].shape, (*net)->param(p), filling).ok());
    pointers.data.push_back((*net)->param(p).data());
    pointers.diff.push_back((*net)->param_diff(p).data());
    velocity.emplace_back((*net)->param(p).size());
    gradients.emplace_back();
  }
  auto plan = Plan::compile((*net)->graph(), device, pointers, {.backward = true, .outputs = {}});
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  ThreadPool pool(2);
  std::mt19937 random(3);
  std::vector<float> result;
  for (int step = 0; step < steps; ++step) {
    const Plan::Blob &data = (*plan)->inputs()[0], &label = (*plan)->inputs()[1];
    for (int64_t i = 0; i < data.shape.count(); ++i) data.data[i] = float(random() % 256) / 256;
    for (int64_t i = 0; i < label.shape.count(); ++i) label.data[i] = float(random() % 10);
    size_t taken = params.size();
    const auto take = [&](const float* from) {
      for (; taken > 0 && pointers.diff[taken - 1] >= from; --taken) {
        const std::span<float> diff = (*net)->param_diff(taken - 1);
        gradients[taken - 1].assign(diff.begin(), diff.end());
      }
    };
    EXPECT_TRUE((*plan)->run(pool, {}, take).ok());
    EXPECT_EQ(taken, 0U);
    result.push_back((*plan)->loss());
    for (size_t p = 0; p < params.size(); ++p) {
      for (size_t i = 0; i < velocity[p].size(); ++i) {
        velocity[p][i] = 0.9F * velocity[p][i] + 0.01F * gradients[p][i];
        (*net)->param(p)[i] -= velocity[p][i];
      }
    }
  }
  for (size_t p = 0; p < params.size(); ++p) {
    result.insert(result.end(), (*net)->param(p).begin(), (*net)->param(p).end());
  }
  return result;
}

TEST(FarDevice, TrainsLeNetToTheBitsOfTheReference) {
  FarDevice far;
  EXPECT_EQ(bits(train_lenet(far, 50)), bits(train_lenet(*make_ref_device(), 50)));
}

}  // namespace
}  // namespace cafetiere
