// The same bits on any number of ranks: weights, history and logged losses of a training with four
// virtual shards, whoever holds which shard, over any transport, with any number of threads.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <thread>

#include "core/comm/tcp_group.h"
#include "core/model/weights.h"
#include "core/train/rows_feed.h"
#include "core/train/trainer.h"

namespace cafetiere {
namespace {

constexpr int kShards = 4;
constexpr int kRows = 10007;  // prime: every epoch ends in a short tail

const char* const kSolver = R"(
  base_lr: 0.01 momentum: 0.9 weight_decay: 0.0005 lr_policy: "inv" gamma: 0.0001 power: 0.75
  max_iter: 50 display: 1 random_seed: 7 clip_gradients: 1.5 iter_size: 2)";

const char* const kLeNet = R"(
  name: "LeNet"
  layer { name: "mnist" type: "MemoryData" top: "data" top: "label"
    transform_param { scale: 0.00390625 }
    memory_data_param { batch_size: 32 channels: 1 height: 28 width: 28 } }
  layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
    param { lr_mult: 1 } param { lr_mult: 2 }
    convolution_param { num_output: 20 kernel_size: 5 weight_filler { type: "xavier" } } }
  layer { name: "pool1" type: "Pooling" bottom: "conv1" top: "pool1"
    pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
  layer { name: "conv2" type: "Convolution" bottom: "pool1" top: "conv2"
    param { lr_mult: 1 } param { lr_mult: 2 }
    convolution_param { num_output: 50 kernel_size: 5 weight_filler { type: "xavier" } } }
  layer { name: "pool2" type: "Pooling" bottom: "conv2" top: "pool2"
    pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
  layer { name: "ip1" type: "InnerProduct" bottom: "pool2" top: "ip1"
    inner_product_param { num_output: 500 weight_filler { type: "xavier" } } }
  layer { name: "relu1" type: "ReLU" bottom: "ip1" top: "ip1" }
  layer { name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2"
    inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
  layer { name: "accuracy" type: "Accuracy" bottom: "ip2" bottom: "label" top: "accuracy" }
  layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "label" top: "loss" })";

// Everything whose result could depend on who computes it: random masks, statistics of a batch,
// sums over neighbours, random crops and mirrors.
const char* const kMixedNet = R"(
  name: "mixed"
  layer { name: "rows" type: "MemoryData" top: "data" top: "label"
    transform_param { scale: 0.01 mirror: true crop_size: 10 mean_value: 100 }
    memory_data_param { batch_size: 32 channels: 1 height: 12 width: 12 } }
  layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
    convolution_param { num_output: 8 kernel_size: 3 pad: 1 weight_filler { type: "msra" } } }
  layer { name: "bn1" type: "BatchNorm" bottom: "conv1" top: "conv1" }
  layer { name: "scale1" type: "Scale" bottom: "conv1" top: "conv1" scale_param { bias_term: true } }
  layer { name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" }
  layer { name: "norm1" type: "LRN" bottom: "conv1" top: "norm1"
    lrn_param { local_size: 3 alpha: 0.5 beta: 0.75 } }
  layer { name: "pool1" type: "Pooling" bottom: "norm1" top: "pool1"
    pooling_param { pool: AVE kernel_size: 3 stride: 2 } }
  layer { name: "drop1" type: "Dropout" bottom: "pool1" top: "pool1"
    dropout_param { dropout_ratio: 0.3 } }
  layer { name: "ip" type: "InnerProduct" bottom: "pool1" top: "ip"
    inner_product_param { num_output: 10 weight_filler { type: "gaussian" std: 0.05 } } }
  layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" })";

struct Losses : EventSink {
  std::vector<double> values;
  void progress(const Progress& event) override { values.push_back(event.loss); }
};

struct Outcome {
  std::string model, state;
  std::vector<double> losses;
  std::vector<int64_t> rows_per_epoch;
};

struct Job {
  const char* net;
  int pixels;
  int ranks = 1;
  int threads = 1;
  bool tcp = false;
  int max_iter = 50;
  const Outcome* from = nullptr;
  std::string solver = kSolver;
};

RowTable part_of_rows(const Job& s, int rank) {
  Result<RowSchema> schema = RowSchema::parse(
      R"({"columns": [{"name": "data", "type": "u8"}, {"name": "label", "type": "i32"}], "id": ""})");
  RowTable table(*schema);
  std::mt19937 random(99);
  std::string chunk;
  int64_t count = 0;
  const auto put = [&](const void* bytes, uint32_t size) {
    chunk.append(reinterpret_cast<const char*>(&size), 4);
    chunk.append(static_cast<const char*>(bytes), size);
  };
  for (int i = 0; i < kRows; ++i) {
    std::vector<uint8_t> image(size_t(s.pixels));
    for (uint8_t& pixel : image) pixel = uint8_t(random() >> 24);
    const int32_t label = int32_t(image[0] / 26);
    // Uneven and unlike for each number of ranks, as partitions of a table are.
    if (int((unsigned(i) * 2654435761u >> 16) % unsigned(s.ranks)) != rank) continue;
    put(image.data(), uint32_t(image.size()));
    put(&label, 4);
    ++count;
  }
  EXPECT_TRUE(table.append(count, std::as_bytes(std::span(chunk))).ok());
  return table;
}

Status run_rank(const Job& s, int rank, Group* group, Outcome* out) {
  Losses losses;
  TrainerOptions options;
  CFT_ASSIGN(options.solver, parse_solver(s.solver, "solver"));
  CFT_ASSIGN(options.net, parse_net(s.net, "net"));
  options.has_net = true;
  options.shards = kShards;
  options.threads = s.threads;
  options.max_iter = s.max_iter;
  if (rank == 0) options.events = &losses;
  CFT_ASSIGN(const auto trainer, Trainer::create(std::move(options)));
  if (s.from) {
    CFT_ASSIGN(const auto weights, parse_weights(std::as_bytes(std::span(s.from->model))));
    CFT_ASSIGN(const auto state, parse_solver_state(std::as_bytes(std::span(s.from->state))));
    CFT_TRY(trainer->restore(&weights, &state));
  }
  RowTable rows = part_of_rows(s, rank);
  CFT_ASSIGN(const FedLayer fed, bind_rows(trainer->graph(), rows.schema(), {}, false));
  CFT_ASSIGN(const auto source,
             make_rows_source(group, std::move(rows), kShards, fed, true, trainer->seed()));
  CFT_TRY(trainer->run(group, {{fed.node->param.name(), source.get()}}, {}));
  if (rank == 0) {
    *out = {trainer->model_bytes(), trainer->last_checkpoint().state, losses.values,
            trainer->summary().rows_per_epoch};
  }
  return {};
}

std::vector<std::unique_ptr<Group>> make_groups(const Job& s) {
  if (s.ranks == 1) return std::vector<std::unique_ptr<Group>>(1);
  if (!s.tcp) return make_local_groups(s.ranks);
  std::vector<std::unique_ptr<TcpGroup>> groups;
  std::vector<std::string> addresses;
  for (int r = 0; r < s.ranks; ++r) {
    GroupOptions options;
    options.rank = r;
    options.size = s.ranks;
    options.secret = "s3cret";
    options.generation = "1";
    options.timeout_ms = 60000;
    groups.push_back(std::move(*TcpGroup::listen(options)));
    addresses.push_back(groups.back()->address());
  }
  std::vector<std::thread> threads;
  for (auto& g : groups) {
    threads.emplace_back([&] { EXPECT_TRUE(g->connect(addresses).ok()); });
  }
  for (auto& t : threads) t.join();
  std::vector<std::unique_ptr<Group>> list;
  for (auto& g : groups) list.push_back(std::move(g));
  return list;
}

Outcome train(const Job& s) {
  std::vector<std::unique_ptr<Group>> groups = make_groups(s);
  Outcome outcome;
  std::vector<std::thread> threads;
  for (int r = 0; r < s.ranks; ++r) {
    threads.emplace_back([&, r] {
      const Status status = run_rank(s, r, groups[size_t(r)].get(), &outcome);
      EXPECT_TRUE(status.ok()) << "rank " << r << ": " << status.message();
    });
  }
  for (auto& t : threads) t.join();
  return outcome;
}

void expect_same(const Outcome& a, const Outcome& b, const std::string& what) {
  EXPECT_EQ(a.model == b.model, true) << "weights differ: " << what;
  EXPECT_EQ(a.state == b.state, true) << "history differs: " << what;
  EXPECT_EQ(a.losses, b.losses) << "losses differ: " << what;
}

class Equality : public testing::TestWithParam<std::pair<const char*, int>> {};

TEST_P(Equality, AnyRanksThreadsAndTransport) {
  const auto [net, pixels] = GetParam();
  const Outcome one = train({.net = net, .pixels = pixels});
  ASSERT_EQ(one.losses.size(), 50u);
  ASSERT_FALSE(one.model.empty());
  for (const Job& s :
       {Job{net, pixels, 1, 2, false}, Job{net, pixels, 2, 1, false}, Job{net, pixels, 2, 2, true},
        Job{net, pixels, 3, 1, true}, Job{net, pixels, 3, 2, false}, Job{net, pixels, 4, 1, true},
        Job{net, pixels, 4, 1, false}}) {
    expect_same(one, train(s),
                std::to_string(s.ranks) + " ranks, " + std::to_string(s.threads) + " threads, " +
                    (s.tcp ? "TCP" : "in process"));
  }
}

TEST_P(Equality, StoppedAndResumedOnAnotherNumberOfRanks) {
  const auto [net, pixels] = GetParam();
  const Outcome whole = train({.net = net, .pixels = pixels, .ranks = 2});
  const Outcome half = train({.net = net, .pixels = pixels, .ranks = 2, .max_iter = 23});
  const Outcome rest = train({.net = net, .pixels = pixels, .ranks = 3, .from = &half});
  EXPECT_EQ(whole.model == rest.model, true) << "weights differ";
  EXPECT_EQ(whole.state == rest.state, true) << "history differs";
  std::vector<double> losses = half.losses;
  losses.insert(losses.end(), rest.losses.begin(), rest.losses.end());
  EXPECT_EQ(whole.losses, losses);
}

TEST_P(Equality, EveryRowOnceAnEpoch) {
  const auto [net, pixels] = GetParam();
  const Outcome o = train({.net = net, .pixels = pixels, .ranks = 3});
  ASSERT_GE(o.rows_per_epoch.size(), 2u);
  EXPECT_EQ(o.rows_per_epoch[0], kRows);
}

/// Rules of their own kind: decay beside the step, and norms of whole blobs that slices cut.
TEST(Rules, HaveTheSameBitsOnAnyNumberOfRanks) {
  for (const std::string type : {"AdamW", "LAMB"}) {
    const std::string solver = "type: '" + type + R"(' momentum: 0.9 weight_decay: 0.01
      base_lr: 0.002 lr_policy: "cosine" min_lr: 0.0001 warmup_iter: 4 warmup_start: 0.1
      max_iter: 12 display: 1 random_seed: 7 clip_gradients: 1.5)";
    const auto job = [&](int ranks, int threads) {
      return Job{.net = kLeNet,
                 .pixels = 28 * 28,
                 .ranks = ranks,
                 .threads = threads,
                 .max_iter = 12,
                 .solver = solver};
    };
    const Outcome one = train(job(1, 1));
    ASSERT_EQ(one.losses.size(), 12U);
    EXPECT_LT(one.losses.back(), one.losses.front()) << type;
    for (int ranks = 2; ranks <= 4; ++ranks) {
      expect_same(one, train(job(ranks, 2)), type + " on " + std::to_string(ranks) + " ranks");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Nets, Equality,
                         testing::Values(std::pair(kLeNet, 28 * 28), std::pair(kMixedNet, 144)),
                         [](const auto& info) { return info.index == 0 ? "LeNet" : "Mixed"; });

}  // namespace
}  // namespace cafetiere
