// SPDX-License-Identifier: Apache-2.0
#include "tests/train/jobs.h"

#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "core/comm/tcp_group.h"
#include "core/model/weights.h"
#include "core/train/rows_feed.h"
#include "core/train/snapshots.h"

namespace cafetiere {
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
  for (int i = 0; i < s.rows; ++i) {
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

namespace {

struct Losses : EventSink {
  std::vector<double> values;
  void progress(const Progress& event) override { values.push_back(event.loss); }
};

Status run_rank(const Job& s, int rank, Group* group, Outcome* out) {
  Losses losses;
  TrainerOptions options;
  CFT_ASSIGN(options.solver, parse_solver(s.solver, "solver"));
  CFT_ASSIGN(options.net, parse_net(s.net, "net"));
  options.has_net = true;
  options.shards = s.shards;
  options.threads = s.threads;
  options.max_iter = s.max_iter;
  options.keep_state = true;
  if (rank == 0) options.events = &losses;
  if (!s.snapshots.empty()) {
    options.solver.param.set_snapshot_prefix(s.snapshots);
    CFT_ASSIGN(const Snapshots snapshots, Snapshots::make(options.solver, {}));
    options.on_checkpoint = [snapshots](const Checkpoint& c) { return snapshots.write(c); };
  }
  CFT_ASSIGN(const auto trainer, Trainer::create(std::move(options)));
  if (s.from) {
    CFT_ASSIGN(auto weights, parse_weights(std::as_bytes(std::span(s.from->model))));
    CFT_ASSIGN(auto state, parse_solver_state(std::as_bytes(std::span(s.from->state))));
    CFT_TRY(trainer->restore(std::move(weights), source_of(std::move(state))));
  }
  if (!s.resume.empty()) CFT_TRY(resume(*trainer, s.resume, {}));
  RowTable rows = part_of_rows(s, rank);
  CFT_ASSIGN(const FedTops fed, bind_rows(trainer->graph(), rows.schema(), {}, false));
  CFT_ASSIGN(const auto source,
             make_rows_source(group, std::move(rows), s.shards, fed, true, trainer->seed()));
  CFT_TRY(trainer->run(group, {{"", source.get(), fed.names()}}, {}));
  if (rank == 0) {
    CFT_ASSIGN(std::string model, trainer->model_bytes());
    CFT_ASSIGN(std::string state, trainer->state_bytes());
    *out = {std::move(model), std::move(state), losses.values, trainer->summary().rows_per_epoch};
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
    options.secret = "a secret of the tests";
    options.generation = "1";
    options.timeout_ms = 60000;
    options.encrypt = s.encrypt;
    options.shared_memory = !s.encrypt;
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

}  // namespace

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

}  // namespace cafetiere
