// SPDX-License-Identifier: Apache-2.0
// explain: the layers and steps that a net is compiled to, with kernels and reasons, the memory that
// training it will take, and what more ranks would bring.
#include <fmt/format.h>

#include <cstdio>
#include <map>
#include <memory>
#include <optional>

#include "cli/command.h"
#include "cli/explain_scale.h"
#include "cli/flags.h"
#include "cli/loaded_net.h"
#include "cli/table.h"
#include "core/model/prototxt.h"
#include "core/observe/grouped.h"
#include "core/plan/open_memory.h"
#include "core/solver/update_rule.h"
#include "core/train/memory_estimate.h"
#include "core/train/nets.h"

namespace cafetiere {
namespace {

constexpr double kMiB = 1 << 20;

struct ExplainFlags {
  std::string net, solver, phase = "TRAIN";
  int batch = 0;
  StateFlags state;
  ShapeFlags shapes;
  ScaleFlags scale;
};

std::string mib(int64_t bytes) { return fmt::format("{:.2f}", double(bytes) / kMiB); }
std::string mflop(double flops) { return flops > 0 ? fmt::format("{:.1f}", flops / 1e6) : ""; }

int64_t parameters_of(const Node& node, const Graph& graph) {
  int64_t count = 0;
  for (int id : node.params) {
    const Param& p = graph.params()[size_t(id)];
    if (p.layer == node.param.name()) count += p.shape.count();  // shared ones count once
  }
  return count;
}

void print_head(const LoadedNet& net, const PlanOutline& plan) {
  int64_t parameters = 0;
  for (const Param& p : net.graph.params()) parameters += p.shape.count();
  fmt::print("{} (phase {}, device {})\n", net.graph.name(), caffe::Phase_Name(net.graph.phase()),
             net.device->name());
  for (const auto& b : plan.inputs) fmt::print("  in   {} {}\n", b.name, b.shape.str());
  for (const auto& b : plan.outputs) fmt::print("  out  {} {}\n", b.name, b.shape.str());
  fmt::print("  {} parameters\n\n", grouped(double(parameters)));
}

struct LayerWork {
  double forward = 0, backward = 0;  // operations
  int64_t bytes = 0;
};

Status print_layers(const LoadedNet& net, const PlanOutline& plan, int64_t batch) {
  CFT_ASSIGN(const std::vector<Shape> shapes, net.graph.infer(batch));
  std::map<std::string, LayerWork> work;
  for (const StepInfo& step : plan.steps) {
    LayerWork& layer = work[layer_of(step.name, net.graph)];
    (step.backward ? layer.backward : layer.forward) += step.flops;
    layer.bytes += step.bytes;
  }
  Table table({"layer", "type", "top", "parameters", "MFLOP forward", "backward", "MiB moved"});
  for (const Node& node : net.graph.nodes()) {
    const LayerWork& layer = work[node.param.name()];
    const int64_t parameters = parameters_of(node, net.graph);
    table.add({node.param.name(), node.param.type(),
               node.tops.empty() ? "" : shapes[size_t(node.tops[0])].str(),
               parameters > 0 ? grouped(double(parameters)) : "", mflop(layer.forward),
               mflop(layer.backward), layer.bytes > 0 ? mib(layer.bytes) : ""});
  }
  table.print(3);
  return {};
}

/// Takes what stands before "; " off a text: a kernel, and then why others were not chosen.
std::string_view next_part(std::string_view* text) {
  const std::string_view part = text->substr(0, text->find("; "));
  text->remove_prefix(std::min(text->size(), part.size() + 2));
  return part;
}

void print_steps(const PlanOutline& plan) {
  Table table({"step", "kernel", "MFLOP", "MiB moved"});
  double flops = 0;
  int64_t bytes = 0;
  for (const StepInfo& step : plan.steps) {
    std::string_view kernel = step.kernel;
    const std::string_view first = next_part(&kernel);
    table.add({step.name, std::string(first), mflop(step.flops), mib(step.bytes)});
    while (!kernel.empty()) table.add({"", "  " + std::string(next_part(&kernel)), "", ""});
    flops += step.flops;
    bytes += step.bytes;
  }
  table.add({"total", "", mflop(flops), mib(bytes)});
  table.print(2);
}

void print_memory(const MemoryEstimate& memory, const std::string& rule) {
  Table table({"memory predicted", "MiB"});
  table.add({"parameters", mib(memory.parameters)});
  if (!rule.empty()) {
    table.add({"gradients", mib(memory.gradients)});
    table.add({"history of " + rule, mib(memory.history)});
  }
  table.add({"blobs, their gradients and scratch", mib(memory.blobs)});
  table.add({"inputs", mib(memory.inputs)});
  if (memory.test_nets > 0) table.add({"test nets", mib(memory.test_nets)});
  if (memory.debug_info > 0) table.add({"debug_info", mib(memory.debug_info)});
  table.add({"code and bookkeeping", mib(memory.overhead)});
  if (memory.snapshot > 0) {
    table.add({"a step takes", mib(memory.of_a_step())});
    table.add({"while a snapshot is made", mib(memory.snapshot)});
  }
  table.add({"total", mib(memory.total())});
  table.print(1);
}

/// What is explained: the net that was named or the solver's own, in the solver's setting.
struct Subject {
  SolverText solver;
  std::optional<NetText> net;
  NetChoice choice;

  const NetText* given() const { return net ? &*net : nullptr; }
};

Result<Subject> read_subject(const ExplainFlags& flags) {
  if (flags.net.empty() && flags.solver.empty()) {
    return invalid_argument("explain: name a net's prototxt, or a --solver that names one");
  }
  Subject subject;
  if (!flags.solver.empty()) {
    CFT_ASSIGN(subject.solver, read_solver(flags.solver));
  }
  if (!flags.net.empty()) {
    CFT_ASSIGN(subject.net, read_net(flags.net));
  }
  std::vector<NetChoice> tests;
  if (flags.phase == "TEST") {
    CFT_ASSIGN(tests, test_nets(subject.solver, subject.given()));
  }
  if (!tests.empty()) {
    subject.choice = std::move(tests.front());
  } else {
    CFT_ASSIGN(subject.choice, training_net(subject.solver, subject.given()));
  }
  subject.choice.state.set_phase(flags.phase == "TEST" ? caffe::TEST : caffe::TRAIN);
  flags.state.apply(&subject.choice.state);
  return subject;
}

/// The nets that the solver tests with.
Result<std::vector<NetChoice>> tests_of(const Subject& subject) {
  const caffe::SolverParameter& p = subject.solver.param;
  const bool tested = p.test_interval() > 0 && (p.test_iter_size() > 0 || has_test_nets(p));
  return tested ? test_nets(subject.solver, subject.given()) : std::vector<NetChoice>();
}

Result<MemoryEstimate> training_memory(const Subject& subject, const ShapeFlags& shapes,
                                       const LoadedNet& net, const PlanOutline& plan) {
  const caffe::SolverParameter& p = subject.solver.param;
  CFT_ASSIGN(const auto rule, make_update_rule(p));
  MemoryEstimate memory = estimate_training(net.graph, plan, rule->history_per_param());
  if (subject.solver.source.empty()) return memory;
  memory.snapshot = snapshot_bytes(net.graph, p, rule->history_per_param());
  if (p.debug_info() && p.display() > 0) {
    CFT_ASSIGN(memory.debug_info, open_net_bytes(net.graph));
  }
  CFT_ASSIGN(const std::vector<NetChoice> tests, tests_of(subject));
  for (const NetChoice& choice : tests) {
    CFT_ASSIGN(const std::unique_ptr<LoadedNet> test, LoadedNet::load(choice, Logger(), &shapes));
    CFT_ASSIGN(const PlanOutline test_plan, test->outline({}));
    memory.test_nets += test_net_bytes(net.graph, test->graph, test_plan);
  }
  return memory;
}

/// Prints warnings alone.
Logger notes() {
  return Logger([](LogLevel level, std::string_view text) {
    if (level >= LogLevel::kWarning) fmt::print("note: {}\n", text);
  });
}

Status explain(const ExplainFlags& flags) {
  const bool train = flags.phase == "TRAIN";
  CFT_ASSIGN(const Subject subject, read_subject(flags));
  CFT_ASSIGN(const std::unique_ptr<LoadedNet> net,
             LoadedNet::load(subject.choice, notes(), &flags.shapes));
  const PlanOptions options{.batch = flags.batch, .backward = train, .outputs = {}};
  CFT_ASSIGN(const PlanOutline plan, net->outline(options));
  print_head(*net, plan);
  CFT_TRY(print_layers(*net, plan, flags.batch));
  print_steps(plan);
  MemoryEstimate memory = estimate_scoring(net->graph, plan);
  if (train) {
    CFT_ASSIGN(memory, training_memory(subject, flags.shapes, *net, plan));
  }
  print_memory(memory, train ? subject.solver.param.type() : "");
  return flags.scale.ranks > 1 ? print_scale(flags.scale, *net, options) : Status();
}

}  // namespace

Action add_explain(CLI::App& app) {
  const auto flags = std::make_shared<ExplainFlags>();
  app.add_option("net,--model", flags->net, "the net's prototxt (default: the solver's)");
  app.add_option("--solver", flags->solver,
                 "a solver, for its net and all that it keeps in memory (default: SGD alone)");
  app.add_option("--phase", flags->phase, "TRAIN (default) or TEST")
      ->check(CLI::IsMember({"TRAIN", "TEST"}));
  app.add_option("--batch", flags->batch, "rows of a batch instead of what the net says")
      ->check(CLI::PositiveNumber);
  flags->state.add(app);
  flags->shapes.add(app);
  flags->scale.add(app);
  return [flags]() -> Status {
    CFT_TRY(flags->shapes.parse());
    return explain(*flags);
  };
}

}  // namespace cafetiere
