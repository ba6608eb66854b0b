// SPDX-License-Identifier: Apache-2.0
// The predicted memory of a training against what a process that trains really takes.
#include "core/train/memory_estimate.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "core/layers/registry.h"
#include "core/train/trainer.h"
#include "tests/train/child.h"

namespace cafetiere {
namespace {

constexpr double kMiB = 1 << 20;

std::string conv(const std::string& name, const std::string& bottom, int outputs,
                 const std::string& more) {
  return "layer { name: '" + name + "' type: 'Convolution' bottom: '" + bottom + "' top: '" + name +
         "' convolution_param { num_output: " + std::to_string(outputs) + " " + more +
         " weight_filler { type: 'xavier' } } }\n";
}
std::string relu(const std::string& blob) {
  return "layer { name: 'relu_" + blob + "' type: 'ReLU' bottom: '" + blob + "' top: '" + blob +
         "' }\n";
}
std::string pool(const std::string& name, const std::string& bottom, const std::string& more) {
  return "layer { name: '" + name + "' type: 'Pooling' bottom: '" + bottom + "' top: '" + name +
         "' pooling_param { " + more + " } }\n";
}
std::string norm(const std::string& name, const std::string& bottom) {
  return "layer { name: '" + name + "' type: 'LRN' bottom: '" + bottom + "' top: '" + name +
         "' lrn_param { local_size: 5 alpha: 0.0001 beta: 0.75 } }\n";
}
std::string ip(const std::string& name, const std::string& bottom, int outputs) {
  return "layer { name: '" + name + "' type: 'InnerProduct' bottom: '" + bottom + "' top: '" +
         name + "' inner_product_param { num_output: " + std::to_string(outputs) +
         " weight_filler { type: 'xavier' } } }\n";
}
std::string data(int batch, int channels, int side) {
  return "layer { name: 'data' type: 'MemoryData' top: 'data' top: 'label' memory_data_param {"
         " batch_size: " +
         std::to_string(batch) + " channels: " + std::to_string(channels) +
         " height: " + std::to_string(side) + " width: " + std::to_string(side) + " } }\n";
}
std::string loss(const std::string& scores) {
  return "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: '" + scores +
         "' bottom: 'label' top: 'loss' }\n";
}

std::string lenet() {
  return data(64, 1, 28) + conv("c1", "data", 20, "kernel_size: 5") +
         pool("p1", "c1", "kernel_size: 2 stride: 2") + conv("c2", "p1", 50, "kernel_size: 5") +
         pool("p2", "c2", "kernel_size: 2 stride: 2") + ip("ip1", "p2", 500) + relu("ip1") +
         ip("ip2", "ip1", 10) + loss("ip2");
}

std::string cifar10_quick() {
  return data(100, 3, 32) + conv("c1", "data", 32, "kernel_size: 5 pad: 2") +
         pool("p1", "c1", "kernel_size: 3 stride: 2") + relu("p1") +
         conv("c2", "p1", 32, "kernel_size: 5 pad: 2") + relu("c2") +
         pool("p2", "c2", "pool: AVE kernel_size: 3 stride: 2") +
         conv("c3", "p2", 64, "kernel_size: 5 pad: 2") + relu("c3") +
         pool("p3", "c3", "pool: AVE kernel_size: 3 stride: 2") + ip("ip1", "p3", 64) +
         ip("ip2", "ip1", 10) + loss("ip2");
}

/// AlexNet's shape at a quarter of its inner products and a batch of 8.
std::string alexnet() {
  return data(8, 3, 227) + conv("c1", "data", 96, "kernel_size: 11 stride: 4") + relu("c1") +
         norm("n1", "c1") + pool("p1", "n1", "kernel_size: 3 stride: 2") +
         conv("c2", "p1", 256, "kernel_size: 5 pad: 2 group: 2") + relu("c2") + norm("n2", "c2") +
         pool("p2", "n2", "kernel_size: 3 stride: 2") +
         conv("c3", "p2", 384, "kernel_size: 3 pad: 1") + relu("c3") +
         conv("c4", "c3", 384, "kernel_size: 3 pad: 1 group: 2") + relu("c4") +
         conv("c5", "c4", 256, "kernel_size: 3 pad: 1 group: 2") + relu("c5") +
         pool("p5", "c5", "kernel_size: 3 stride: 2") + ip("fc6", "p5", 1024) + relu("fc6") +
         ip("fc7", "fc6", 1024) + relu("fc7") + ip("fc8", "fc7", 1000) + loss("fc8");
}

/// Always the same zeros.
struct Zeros : Source {
  std::vector<Shape> shapes;
  std::vector<Shape> top_shapes() const override { return shapes; }
  int64_t rows(int, int64_t) const override { return shapes[0][0]; }
  Status fill(int, int64_t, std::span<float* const> tops) override {
    for (size_t i = 0; i < tops.size(); ++i) std::fill_n(tops[i], shapes[i].count(), 0.F);
    return {};
  }
};

Status train(const std::string& net, const std::string& type, const std::string& sync = "",
             int shards = 1) {
  TrainerOptions options;
  options.shards = shards;
  CFT_ASSIGN(options.solver,
             parse_solver("base_lr: 0.001 lr_policy: 'fixed' max_iter: 3 momentum: 0.9 "
                          "snapshot_after_train: false random_seed: 1 type: '" +
                              type + "' sync { period: 1 " + sync + " }",
                          "solver"));
  CFT_ASSIGN(options.net, parse_net(net, "net"));
  options.has_net = true;
  options.threads = 2;
  CFT_ASSIGN(const auto trainer, Trainer::create(std::move(options)));
  Zeros source;
  CFT_ASSIGN(const std::vector<Shape> shapes, trainer->graph().infer(0));
  for (int top : trainer->graph().nodes()[0].tops) source.shapes.push_back(shapes[size_t(top)]);
  return trainer->run(nullptr, {{"data", &source}}, {});
}

/// Of a training that updates the weights while it computes the gradients or, with a mode of its own,
/// afterwards.
Result<MemoryEstimate> predict(const std::string& text, const std::string& type,
                               const std::string& sync = "", int shards = 1) {
  CFT_ASSIGN(const NetText net, parse_net(text, "net"));
  caffe::NetState state;
  state.set_phase(caffe::TRAIN);
  CFT_ASSIGN(const Graph graph, Graph::build(net, state, {.types = layer_types(), .fed = {}}));
  caffe::SolverParameter solver;
  solver.set_type(type);
  CFT_ASSIGN(const auto rule, make_update_rule(solver));
  const auto device = make_cpu_device();
  CFT_ASSIGN(const PlanOutline plan,
             PlanOutline::make(graph, *device,
                               {.backward = true, .outputs = {}, .updates = sync.empty()}));
  const int history = rule->history_per_param();
  MemoryEstimate estimate = estimate_training(graph, plan, history);
  caffe::SyncParameter mode;
  CFT_TRY(merge_sync(sync, "sync", &mode));
  estimate.sync = sync_bytes(graph, mode, history, shards, true);
  return estimate;
}

struct NamedNet {
  const char* name;
  std::string (*text)();
};
class MemoryEstimates : public testing::TestWithParam<NamedNet> {};

TEST_P(MemoryEstimates, AreWithinTenPercentOfWhatATrainingTakes) {
  if (kSanitized) GTEST_SKIP() << "with a sanitizer";
  for (const std::string type : {"SGD", "Adam"}) {
    const auto estimate = predict(GetParam().text(), type);
    ASSERT_TRUE(estimate.ok()) << estimate.status().message();
    const int64_t predicted = estimate->total() - estimate->overhead;
    const int64_t grown = growth_in_child([] { return train(lenet(), "SGD"); },
                                          [&] { return train(GetParam().text(), type); });
    std::printf("%s %s: predicted %.1f MiB, measured %.1f MiB\n", GetParam().name, type.c_str(),
                double(predicted) / kMiB, double(grown) / kMiB);
    EXPECT_NEAR(double(predicted) / double(grown), 1, 0.1);
  }
}

INSTANTIATE_TEST_SUITE_P(Nets, MemoryEstimates,
                         testing::Values(NamedNet{"cifar10_quick", cifar10_quick},
                                         NamedNet{"AlexNet", alexnet}),
                         [](const auto& info) { return std::string(info.param.name); });

struct ModeCase {
  const char* name;
  std::string sync;
  int shards;
};
class MemoryOfModes : public testing::TestWithParam<ModeCase> {};

TEST_P(MemoryOfModes, IsPredicted) {
  if (kSanitized) GTEST_SKIP() << "with a sanitizer";
  const std::string net = data(4, 1, 64) + ip("ip", "data", 2000) + loss("ip");
  const auto& [name, sync, shards] = GetParam();
  const auto estimate = predict(net, "Adam", sync, shards);
  ASSERT_TRUE(estimate.ok()) << estimate.status().message();
  const int64_t predicted = estimate->total() - estimate->overhead;
  const int64_t grown = growth_in_child([] { return train(lenet(), "SGD"); },
                                        [&] { return train(net, "Adam", sync, shards); });
  std::printf("%s: predicted %.1f MiB, measured %.1f MiB\n", name, double(predicted) / kMiB,
              double(grown) / kMiB);
  EXPECT_NEAR(double(predicted) / double(grown), 1, 0.15);
}

INSTANTIATE_TEST_SUITE_P(Modes, MemoryOfModes,
                         testing::Values(ModeCase{"Sums", "mode: 'allreduce'", 8},
                                         ModeCase{"Compressed", "compression: 'topk'", 8},
                                         ModeCase{"AverageOne", "mode: 'average'", 1},
                                         ModeCase{"AverageEight", "mode: 'average'", 8},
                                         ModeCase{"DiLoCo", "mode: 'diloco'", 3},
                                         ModeCase{"Easgd", "mode: 'easgd'", 1},
                                         ModeCase{"Downpour", "mode: 'downpour'", 1}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace cafetiere
