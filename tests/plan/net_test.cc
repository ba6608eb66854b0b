// SPDX-License-Identifier: Apache-2.0
// Net against Plan: layer by layer and all at once the same figures must come out.
#include "core/plan/net.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <random>

#include "core/layers/registry.h"
#include "core/model/weights.h"
#include "core/plan/plan.h"

namespace cafetiere {
namespace {

using ::testing::HasSubstr;

constexpr const char* kNet = R"(
  force_backward: true
  layer { name: "data" type: "Input" top: "data" top: "label"
          input_param { shape { dim: 6 dim: 3 dim: 9 dim: 8 } shape { dim: 6 } } }
  layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
          convolution_param { num_output: 8 kernel_size: 3 weight_filler { type: "xavier" } } }
  layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
  layer { name: "drop" type: "Dropout" bottom: "conv" top: "conv" }
  layer { name: "pool" type: "Pooling" bottom: "conv" top: "pool"
          pooling_param { kernel_size: 2 stride: 2 } }
  layer { name: "norm" type: "LRN" bottom: "pool" top: "norm" lrn_param { local_size: 3 } }
  layer { name: "both" type: "Concat" bottom: "pool" bottom: "norm" top: "both" }
  layer { name: "ip" type: "InnerProduct" bottom: "both" top: "ip"
          inner_product_param { num_output: 5 weight_filler { type: "xavier" } } }
  layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
)";

Graph build(const std::string& text) {
  caffe::NetState state;
  state.set_phase(caffe::TRAIN);
  auto net = parse_net(text, "net");
  EXPECT_TRUE(net.ok()) << net.status().message();
  auto graph = Graph::build(*net, state, {.types = layer_types(), .fed = {}});
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return *std::move(graph);
}

std::unique_ptr<Net> make(const std::string& text) {
  auto net = Net::create(build(text), {.threads = 2, .seed = 3});
  EXPECT_TRUE(net.ok()) << net.status().message();
  return *std::move(net);
}

void fill_inputs(const Shape& data, float* images, float* labels) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (int64_t i = 0; i < data.count(); ++i) images[i] = normal(random);
  for (int64_t i = 0; i < data[0]; ++i) labels[i] = float(i % 5);
}

const Net::Blob& blob(const Net& net, const std::string& name) {
  for (const Net::Blob& blob : net.blobs()) {
    if (blob.name == name) return blob;
  }
  ADD_FAILURE() << "no blob " << name;
  return net.blobs().front();
}

std::vector<float> values(const std::shared_ptr<float>& from, const Shape& shape) {
  return {from.get(), from.get() + shape.count()};
}

// The number of rows behind a Filter changes from pass to pass; those that are dropped have no
// gradient.
TEST(Net, FilterLetsTheSelectedRowsThrough) {
  const auto net = make(R"(
    force_backward: true
    layer { name: "in" type: "Input" top: "x" top: "s"
            input_param { shape { dim: 4 dim: 2 } shape { dim: 4 } } }
    layer { name: "f" type: "Filter" bottom: "x" bottom: "s" top: "y" propagate_down: true
            propagate_down: false }
    layer { name: "p" type: "Power" bottom: "y" top: "z" power_param { scale: 10 } })");
  const int last = int(net->graph().nodes().size()) - 1;
  const auto set = [](const Net::Blob& blob, std::vector<float> to) {
    std::copy(to.begin(), to.end(), blob.data.get());
  };
  set(blob(*net, "x"), {1, 2, 3, 4, 5, 6, 7, 8});
  set(blob(*net, "s"), {0, 1, 0, 2});
  ASSERT_TRUE(net->forward(0, last).ok());
  const Net::Blob& z = blob(*net, "z");
  EXPECT_EQ(z.shape, (Shape{2, 2}));
  EXPECT_THAT(values(z.data, z.shape), testing::ElementsAre(30, 40, 70, 80));
  std::copy_n(std::vector<float>{1, 2, 3, 4}.data(), 4, z.diff.get());
  ASSERT_TRUE(net->backward(last, 0).ok());
  const Net::Blob& x = blob(*net, "x");
  EXPECT_THAT(values(x.diff, x.shape), testing::ElementsAre(0, 0, 10, 20, 0, 0, 30, 40));

  set(blob(*net, "s"), {1, 1, 1, 0});
  ASSERT_TRUE(net->forward(0, last).ok());
  EXPECT_THAT(values(z.data, z.shape), testing::ElementsAre(10, 20, 30, 40, 50, 60));
}

// Without rows what follows computes nothing: losses and gradients are 0.
TEST(Net, FilterMayLetNoRowThrough) {
  const auto net = make(R"(
    force_backward: true
    layer { name: "in" type: "Input" top: "x" top: "l" top: "s"
            input_param { shape { dim: 4 dim: 2 } shape { dim: 4 } shape { dim: 4 } } }
    layer { name: "f" type: "Filter" bottom: "x" bottom: "l" bottom: "s" top: "y" top: "m"
            propagate_down: true propagate_down: false propagate_down: false }
    layer { name: "ip" type: "InnerProduct" bottom: "y" top: "z"
            inner_product_param { num_output: 3 weight_filler { type: "constant" value: 1 } } }
    layer { name: "relu" type: "ReLU" bottom: "z" top: "z" }
    layer { name: "loss" type: "SoftmaxWithLoss" bottom: "z" bottom: "m" top: "loss"
            propagate_down: true propagate_down: false })");
  const int last = int(net->graph().nodes().size()) - 1;
  const auto pass = [&](std::vector<float> selector) {
    std::ranges::copy(selector, blob(*net, "s").data.get());
    std::fill_n(blob(*net, "x").diff.get(), 8, 7.F);
    net->clear_param_diffs();
    const auto loss = net->forward(0, last);
    EXPECT_TRUE(loss.ok()) << loss.status().message();
    EXPECT_TRUE(net->backward(last, 0).ok());
    return loss.ok() ? *loss : -1;
  };
  EXPECT_GT(pass({1, 0, 0, 1}), 0);
  EXPECT_EQ(pass({0, 0, 0, 0}), 0);
  EXPECT_EQ(blob(*net, "z").shape, (Shape{0, 3}));
  EXPECT_THAT(values(blob(*net, "x").diff, Shape{8}), testing::Each(0.F));
  EXPECT_THAT(net->diff_arena(), testing::Each(0.F));
  EXPECT_GT(pass({1, 0, 0, 1}), 0);
}

TEST(Net, GivesWhatPlanGives) {
  const auto net = make(kNet);
  const Net::Blob& data = blob(*net, "data");
  fill_inputs(data.shape, data.data.get(), blob(*net, "label").data.get());
  const int last = int(net->graph().nodes().size()) - 1;
  const auto loss = net->forward(0, last);
  ASSERT_TRUE(loss.ok()) << loss.status().message();
  ASSERT_TRUE(net->backward(last, 0).ok());

  const Graph graph = build(kNet);
  const auto device = make_cpu_device();
  std::vector<float> weights(net->param_arena().begin(), net->param_arena().end());
  std::vector<float> gradients(weights.size());
  auto plan = Plan::compile(graph, *device, param_pointers(graph, weights.data(), gradients.data()),
                            {.backward = true, .outputs = {}});
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  const auto& inputs = (*plan)->inputs();
  fill_inputs(inputs[0].shape, inputs[0].data, inputs[1].data);
  ThreadPool pool(1);
  EXPECT_TRUE((*plan)->run(pool, {.seed = 3}).ok());
  EXPECT_NEAR(*loss, (*plan)->loss(), 1e-6);
  for (size_t i = 0; i < gradients.size(); ++i) {
    ASSERT_NEAR(net->diff_arena()[i], gradients[i], 1e-5) << i;
  }
  const Plan::Blob& down = (*plan)->input_diffs().front();
  for (int64_t i = 0; i < down.shape.count(); ++i) {
    ASSERT_NEAR(data.diff.get()[i], down.data[i], 1e-6) << i;
  }
}

/// The gradients of one pass over the inputs of fill_inputs().
std::vector<float> gradients_of(const std::string& text) {
  const auto net = make(text);
  const Net::Blob& data = blob(*net, "data");
  fill_inputs(data.shape, data.data.get(), blob(*net, "label").data.get());
  const int last = int(net->graph().nodes().size()) - 1;
  EXPECT_TRUE(net->forward(0, last).ok());
  EXPECT_TRUE(net->backward(last, 0).ok());
  return {net->diff_arena().begin(), net->diff_arena().end()};
}

// A loss is a scalar, and so is a blob that has no shape yet.
TEST(Net, ALossThatAnotherLayerReadsHasItsGradient) {
  const std::string given = std::string(kNet).replace(std::string(kNet).find("top: \"loss\""), 11,
                                                      "top: \"loss\" loss_weight: 0.3");
  for (const std::string& text : {std::string(kNet), given}) {
    const std::string read = R"(layer { name: "read" type: "Silence" bottom: "loss" })";
    EXPECT_EQ(gradients_of(text + read), gradients_of(text));
  }
}

// A layer may own a parameter twice.
TEST(Net, ReadsWeightsThatALayerSharesWithItself) {
  const auto net = make(R"(
    layer { name: "in" type: "Input" top: "x" input_param { shape { dim: 2 dim: 3 } } }
    layer { name: "q" type: "Scale" bottom: "x" top: "y" param { name: "w" } param { name: "w" }
            scale_param { bias_term: true filler { type: "gaussian" } } })");
  const auto bytes = serialize_weights(net->weights(), ModelFormat::kHdf5);
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  const auto weights = parse_weights(std::as_bytes(std::span(*bytes)));
  ASSERT_TRUE(weights.ok()) << weights.status().message();
  const std::vector<float> before(net->param_arena().begin(), net->param_arena().end());
  std::ranges::fill(net->param_arena(), 0.F);
  const Status status = net->copy_from(*weights, nullptr);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(std::vector<float>(net->param_arena().begin(), net->param_arena().end()), before);
}

TEST(Net, RunsAnyPartAgain) {
  const auto net = make(kNet);
  const Net::Blob& data = blob(*net, "data");
  fill_inputs(data.shape, data.data.get(), blob(*net, "label").data.get());
  const int last = int(net->graph().nodes().size()) - 1;
  ASSERT_TRUE(net->forward(0, last).ok());
  ASSERT_TRUE(net->backward(last, 0).ok());
  const std::vector<float> down = values(data.diff, data.shape);
  const std::vector<float> once(net->diff_arena().begin(), net->diff_arena().end());
  net->clear_param_diffs();
  ASSERT_TRUE(net->backward(last, last - 2).ok());
  ASSERT_TRUE(net->backward(last - 3, 0).ok());
  EXPECT_EQ(values(data.diff, data.shape), down);
  EXPECT_EQ(std::vector<float>(net->diff_arena().begin(), net->diff_arena().end()), once);
  EXPECT_THAT(net->forward(2, last + 1).status().message(), HasSubstr("not within 0 to"));
}

TEST(Net, FollowsItsInputsShape) {
  const auto net = make(R"(
    layer { name: "in" type: "Input" top: "x" input_param { shape { dim: 2 dim: 3 dim: 5 } } }
    layer { name: "sum" type: "Flatten" bottom: "x" top: "y" }
    layer { name: "pass" type: "ReLU" bottom: "y" top: "y" }
  )");
  const auto kept = net->blobs()[0].data;
  ASSERT_TRUE(net->reshape_blob(0, {4, 3, 5}).ok());
  EXPECT_EQ(blob(*net, "y").shape, (Shape{2, 15}));
  std::fill_n(net->blobs()[0].data.get(), 60, 2.f);
  ASSERT_TRUE(net->forward(0, 2).ok());
  EXPECT_EQ(blob(*net, "y").shape, (Shape{4, 15}));
  EXPECT_EQ(blob(*net, "y").data.get()[59], 2);
  kept.get()[29] = 1;  // still there, though the blob has moved
  EXPECT_THAT(net->reshape_blob(0, {-1}).message(), HasSubstr("negative"));
  EXPECT_THAT(net->reshape_blob(0, {1 << 20, 1 << 20}).message(), HasSubstr("2^31"));
  ASSERT_TRUE(net->reshape_blob(0, {0, 3, 5}).ok());
  EXPECT_THAT(net->forward(0, 2).status().message(), HasSubstr("has no values"));
}

TEST(Net, RefusesShapesThatItsParametersDoNotFit) {
  const auto net = make(kNet);
  ASSERT_TRUE(net->reshape_blob(0, {6, 3, 12, 8}).ok());
  EXPECT_THAT(net->reshape().message(), HasSubstr("layer 'ip': its inputs now need a parameter 0"));
}

TEST(Net, SharesParameters) {
  const auto net = make(kNet);
  auto other = make(kNet);
  net->param_arena()[0] = 42;
  ASSERT_TRUE(other->share_with(*net, nullptr).ok());
  EXPECT_EQ(other->params()[0].data.get()[0], 42);
  EXPECT_EQ(other->weights().layer(1).blobs(0).data(0), 42);
  ASSERT_TRUE(other->copy_from(make(kNet)->weights(), nullptr).ok());
  EXPECT_NE(net->param_arena()[0], 42);
}

TEST(Net, RefusesAnIndexOfNoRow) {
  const auto net = make(R"(
    layer { name: "in" type: "Input" top: "x" top: "i"
            input_param { shape { dim: 3 dim: 2 } shape { dim: 4 } } }
    layer { name: "pick" type: "BatchReindex" bottom: "x" bottom: "i" top: "y" })");
  float* indices = blob(*net, "i").data.get();
  for (const float bad : {-1.F, 3.F, 1e30F}) {
    indices[2] = bad;
    EXPECT_THAT(net->forward(0, 1).status().message(),
                HasSubstr(fmt::format("layer 'pick': index {:g} at position 2 of", bad)));
  }
  indices[2] = 2;
  EXPECT_TRUE(net->forward(0, 1).ok());
}

// Both would have been memory of more than any blob may have.
TEST(Net, RefusesTopsThatNoBlobCanHold) {
  const auto net = make(R"(
    layer { name: "in" type: "Input" top: "x" input_param { shape { dim: 1 dim: 4 } } }
    layer { name: "tile" type: "Tile" bottom: "x" top: "y"
            tile_param { axis: 0 tiles: 1048576 } })");
  ASSERT_TRUE(net->reshape_blob(0, {1, 4096}).ok());
  const Status status = net->reshape();
  EXPECT_THAT(status.message(), HasSubstr("top 'y': impossible shape 1048576 4096"));
}

// As in Caffe, where a script may feed a net through them.
TEST(Net, ConstantsAreThereAtOnceAndStayWhatTheUserWrites) {
  const auto net = make(R"(
    layer { name: "in" type: "DummyData" top: "x" dummy_data_param {
            shape { dim: 2 dim: 3 } data_filler { type: "constant" value: 4 } } }
    layer { name: "p" type: "Power" bottom: "x" top: "y" power_param { scale: 10 } })");
  const Net::Blob &x = blob(*net, "x"), &y = blob(*net, "y");
  EXPECT_EQ(values(x.data, x.shape), std::vector<float>(6, 4));
  std::fill_n(x.data.get(), 6, 7.F);
  ASSERT_TRUE(net->forward(0, 1).ok());
  EXPECT_EQ(values(y.data, y.shape), std::vector<float>(6, 70));
}

}  // namespace
}  // namespace cafetiere
