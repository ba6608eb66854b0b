// SPDX-License-Identifier: Apache-2.0
// simulate: the model of cli/scale beside a simulation of the same steps by SimGrid.
//
// Each rank is an actor on a host of its own: it computes for a lognormal time, then sends and
// receives the messages of the exchange; SimGrid shares the links among them. Prints a line of
// JSON. SimGrid's TCP corrections are off: the model's links are payload.
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <simgrid/s4u.hpp>
#include <string>
#include <vector>

#include "cli/scale/exchange_time.h"
#include "cli/scale/stragglers.h"

namespace sg = simgrid::s4u;

namespace cafetiere {
namespace {

struct Run {
  Link link;
  ExchangeKind exchange = ExchangeKind::kTree;
  int ranks = 2;
  double floats = 1e6;
  double seconds = 0.1, spread = 0.05;  // of mathematics
  int steps = 10;
};

int payload;  // what messages point to; only their sizes matter

sg::Mailbox* box(int from, int to) { return sg::Mailbox::by_name(fmt::format("{}>{}", from, to)); }

/// Messages to all `to` and from all `from`, at once.
void exchange(int rank, const std::vector<int>& to, const std::vector<int>& from, double bytes) {
  std::vector<int*> room(from.size());
  std::vector<sg::CommPtr> under_way;
  for (const int peer : to)
    under_way.push_back(box(rank, peer)->put_async(&payload, uint64_t(bytes)));
  for (size_t i = 0; i < from.size(); ++i) {
    under_way.push_back(box(from[i], rank)->get_async<int>(&room[i]));
  }
  for (const sg::CommPtr& message : under_way) message->wait();
}

void all_reduce(int rank, const Run& run) {
  const double part = run.floats * sizeof(float) / run.ranks;
  if (run.exchange == ExchangeKind::kRing) {
    const int next = (rank + 1) % run.ranks, last = (rank + run.ranks - 1) % run.ranks;
    for (int turn = 0; turn < 2 * (run.ranks - 1); ++turn) {
      sg::this_actor::sleep_for(run.link.message_s);
      exchange(rank, {next}, {last}, part);
    }
    return;
  }
  std::vector<int> peers;
  for (int step = 1; step < run.ranks; ++step) peers.push_back((rank + step) % run.ranks);
  for (int phase = 0; phase < 2; ++phase) {  // reduce-scatter, all-gather
    sg::this_actor::sleep_for(run.link.message_s * (run.ranks - 1));
    exchange(rank, peers, peers, part);
  }
}

void train(int rank, const Run& run) {
  std::mt19937 random(static_cast<unsigned>(rank) + 1);
  std::lognormal_distribution<double> factor(0, run.spread);
  for (int step = 0; step < run.steps; ++step) {
    sg::this_actor::sleep_for(run.seconds * factor(random));
    all_reduce(rank, run);
  }
}

void build(const Run& run) {
  auto* zone = sg::create_star_zone("cluster");
  for (int rank = 0; rank < run.ranks; ++rank) {
    auto* host = zone->create_host(fmt::format("host{}", rank), "1Gf");
    const auto line = [&](const char* way) {
      auto* link = zone->create_link(fmt::format("{}{}", way, rank), run.link.rank_rate());
      return sg::LinkInRoute(link->set_latency(run.link.latency_s / 2)->seal());
    };
    zone->add_route(host->get_netpoint(), nullptr, nullptr, nullptr, {line("up")}, false);
    zone->add_route(nullptr, host->get_netpoint(), nullptr, nullptr, {line("down")}, false);
    sg::Actor::create(fmt::format("rank{}", rank), host, [rank, &run] { train(rank, run); });
  }
  zone->seal();
}

/// The model's seconds of a step.
double predict(const Run& run) {
  return run.seconds * mean_of_slowest(run.ranks, run.spread) +
         exchange_seconds(run.link, run.exchange, run.floats, {.ranks = run.ranks});
}

int main_of(int argc, char** argv) {
  if (argc != 8) {
    std::fprintf(stderr, "usage: simulate LINK tree|ring RANKS FLOATS SECONDS SPREAD STEPS\n");
    return 2;
  }
  Run run;
  const auto link = parse_link(argv[1]);
  if (!link.ok()) {
    std::fprintf(stderr, "simulate: %s\n", link.status().message().c_str());
    return 2;
  }
  run.link = *link;
  run.exchange = std::string(argv[2]) == "ring" ? ExchangeKind::kRing : ExchangeKind::kTree;
  run.ranks = std::atoi(argv[3]);
  run.floats = std::atof(argv[4]);
  run.seconds = std::atof(argv[5]);
  run.spread = std::atof(argv[6]);
  run.steps = std::atoi(argv[7]);

  std::vector<std::string> words{"simulate", "--cfg=network/model:CM02",
                                 "--cfg=network/TCP-gamma:0", "--cfg=network/crosstraffic:0",
                                 "--log=root.thres:error"};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  int count = int(arguments.size());
  sg::Engine engine(&count, arguments.data());
  build(run);
  engine.run();
  const double simulated = sg::Engine::get_clock() / run.steps;
  const double predicted = predict(run);
  fmt::print(
      "{{\"link\":\"{}\",\"exchange\":\"{}\",\"ranks\":{},\"simulated_ms\":{:.3f},"
      "\"predicted_ms\":{:.3f},\"difference\":{:.4f}}}\n",
      run.link.name, argv[2], run.ranks, simulated * 1e3, predicted * 1e3,
      predicted / simulated - 1);
  return 0;
}

}  // namespace
}  // namespace cafetiere

int main(int argc, char** argv) { return cafetiere::main_of(argc, argv); }
