// explain: the steps a net is compiled to, with kernels and reasons, and the memory it will take.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "cli/command.h"
#include "cli/flags.h"
#include "cli/loaded_net.h"
#include "core/observe/grouped.h"

namespace cafetiere {
namespace {

constexpr double kMiB = 1 << 20;

struct ExplainFlags {
  std::string net, phase = "TRAIN";
  int batch = 0;
  StateFlags state;
};

/// Columns as wide as their longest entry, numbers to the right.
class Table {
 public:
  explicit Table(std::vector<std::string> head) { add(std::move(head)); }
  void add(std::vector<std::string> row) {
    widths_.resize(row.size(), 0);
    for (size_t i = 0; i < row.size(); ++i) widths_[i] = std::max(widths_[i], row[i].size());
    rows_.push_back(std::move(row));
  }
  void print(size_t text_columns) const {
    for (const auto& row : rows_) {
      std::string line;
      for (size_t i = 0; i < row.size(); ++i) {
        line += i < text_columns ? fmt::format("{:<{}}  ", row[i], widths_[i])
                                 : fmt::format("{:>{}}  ", row[i], widths_[i]);
      }
      fmt::print("{}\n", line.substr(0, line.find_last_not_of(' ') + 1));
    }
  }

 private:
  std::vector<std::vector<std::string>> rows_;
  std::vector<size_t> widths_;
};

std::string mib(int64_t bytes) { return fmt::format("{:.2f}", double(bytes) / kMiB); }

void print_head(const LoadedNet& net, const Plan& plan) {
  int64_t parameters = 0;
  for (const Param& p : net.graph.params()) parameters += p.shape.count();
  fmt::print("{} (phase {}, device {})\n", net.graph.name(), caffe::Phase_Name(net.graph.phase()),
             net.device->name());
  for (const Plan::Blob& b : plan.inputs()) fmt::print("  in   {} {}\n", b.name, b.shape.str());
  for (const Plan::Blob& b : plan.outputs()) fmt::print("  out  {} {}\n", b.name, b.shape.str());
  fmt::print("  {} parameters\n\n", grouped(double(parameters)));
}

void print_steps(const Plan& plan) {
  Table table({"step", "kernel", "MFLOP", "MiB moved"});
  double flops = 0;
  int64_t bytes = 0;
  for (const Plan::StepInfo& step : plan.describe()) {
    table.add({step.name, step.kernel, step.flops ? fmt::format("{:.1f}", step.flops / 1e6) : "",
               mib(step.bytes)});
    flops += step.flops;
    bytes += step.bytes;
  }
  table.add({"total", "", fmt::format("{:.1f}", flops / 1e6), mib(bytes)});
  table.print(2);
}

void print_memory(const LoadedNet& net, const Plan& plan) {
  const int64_t arena = net.graph.arena_size() * int64_t(sizeof(float));
  int64_t inputs = 0;
  for (const Plan::Blob& b : plan.inputs()) inputs += b.shape.count() * int64_t(sizeof(float));
  Table table({"memory predicted", "MiB"});
  int64_t total = arena + inputs + plan.arena_bytes();
  table.add({"parameters", mib(arena)});
  if (net.graph.phase() == caffe::TRAIN) {
    table.add({"gradients", mib(arena)});
    table.add({"history (SGD; twice that for Adam and AdaDelta)", mib(arena)});
    total += 2 * arena;
  }
  table.add({"inputs", mib(inputs)});
  table.add({"blobs, their gradients and scratch", mib(plan.arena_bytes())});
  table.add({"total", mib(total)});
  fmt::print("\n");
  table.print(1);
}

Status explain(const ExplainFlags& flags) {
  caffe::NetState state;
  state.set_phase(flags.phase == "TRAIN" ? caffe::TRAIN : caffe::TEST);
  flags.state.apply(&state);
  CFT_ASSIGN(const std::unique_ptr<LoadedNet> net, LoadedNet::load(flags.net, state, Logger()));
  const bool train = flags.phase == "TRAIN";
  CFT_ASSIGN(const std::unique_ptr<Plan> plan,
             net->compile({.batch = flags.batch, .backward = train, .outputs = {}}));
  print_head(*net, *plan);
  print_steps(*plan);
  print_memory(*net, *plan);
  return {};
}

}  // namespace

Action add_explain(CLI::App& app) {
  const auto flags = std::make_shared<ExplainFlags>();
  app.add_option("net,--model", flags->net, "the net's prototxt")->required();
  app.add_option("--phase", flags->phase, "TRAIN (default) or TEST")
      ->check(CLI::IsMember({"TRAIN", "TEST"}));
  app.add_option("--batch", flags->batch, "rows of a batch instead of what the net says")
      ->check(CLI::PositiveNumber);
  flags->state.add(app);
  return [flags] { return explain(*flags); };
}

}  // namespace cafetiere
