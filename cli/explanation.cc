// SPDX-License-Identifier: Apache-2.0
#include "cli/explanation.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include "cli/limits_flags.h"
#include "cli/table.h"
#include "cli/time_report.h"
#include "core/observe/grouped.h"
#include "core/plan/eager_memory.h"
#include "core/solver/update_rule.h"
#include "core/train/immediate_update.h"
#include "core/train/memory_estimate.h"
#include "core/train/nets.h"

namespace cafetiere {
namespace {

constexpr double kMiB = 1 << 20;

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

std::string head(const LoadedNet& net, const PlanOutline& plan) {
  std::string text = fmt::format("{} (phase {}, device {})\n", net.graph.name(),
                                 caffe::Phase_Name(net.graph.phase()), net.device->name());
  for (const auto& b : plan.inputs) text += fmt::format("  in   {} {}\n", b.name, b.shape.str());
  for (const auto& b : plan.outputs) text += fmt::format("  out  {} {}\n", b.name, b.shape.str());
  return text + fmt::format("  {} parameters\n\n", grouped(double(net.graph.parameter_count())));
}

struct LayerWork {
  double forward = 0, backward = 0;  // operations
  int64_t bytes = 0;
};

Result<std::string> layers(const LoadedNet& net, const PlanOutline& plan, int64_t batch) {
  CFT_ASSIGN(const std::vector<Shape> shapes, net.graph.infer(batch));
  std::map<std::string, LayerWork> work;
  for (const StepInfo& step : plan.steps) {
    LayerWork& layer = work[layer_of(step.name, net.graph)];
    (step.backward ? layer.backward : layer.forward) += step.flops;
    layer.bytes += step.bytes;
  }
  Table table({"layer", "type", "top", "parameters", "MFLOP forward", "backward", "MiB"});
  for (const Node& node : net.graph.nodes()) {
    const LayerWork& layer = work[node.param.name()];
    const int64_t parameters = parameters_of(node, net.graph);
    table.add({node.param.name(), node.param.type(),
               node.tops.empty() ? "" : shapes[size_t(node.tops[0])].str(),
               parameters > 0 ? grouped(double(parameters)) : "", mflop(layer.forward),
               mflop(layer.backward), layer.bytes > 0 ? mib(layer.bytes) : ""});
  }
  return table.text(3);
}

/// Takes what stands before "; " off a text: a kernel, and then why others were not chosen.
std::string_view next_part(std::string_view* text) {
  const std::string_view part = text->substr(0, text->find("; "));
  text->remove_prefix(std::min(text->size(), part.size() + 2));
  return part;
}

/// Cuts a text at spaces, so that no piece but a single word is longer.
std::vector<std::string> wrapped(std::string_view text, size_t width) {
  std::vector<std::string> lines;
  while (text.size() > width) {
    size_t end = text.rfind(' ', width);
    if (end == text.npos || end == 0) end = text.find(' ');
    if (end == text.npos) break;
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  lines.emplace_back(text);
  return lines;
}

/// A kernel's own lines, and indented ones of why others were not chosen.
std::vector<std::string> kernel_lines(std::string_view kernel) {
  constexpr size_t kWidth = 22;
  std::vector<std::string> lines;
  const char* indent = "";
  for (std::string_view part = next_part(&kernel); !part.empty(); part = next_part(&kernel)) {
    for (const std::string& line : wrapped(part, kWidth)) {
      lines.push_back(std::exchange(indent, "  ") + line);
    }
  }
  return lines;
}

/// A row a step; with limits, the least time that they leave it and what sets that.
std::string steps(const PlanOutline& plan, const MachineLimits* limits) {
  std::vector<std::string> head{"step", "kernel", "format", "MFLOP", "MiB"};
  if (limits) head.insert(head.end(), {"least ms", "by"});
  Table table(head);
  const auto row = [&](std::vector<std::string> cells, double seconds, const std::string& by) {
    if (limits) cells.insert(cells.end(), {fmt::format("{:.3f}", seconds * 1e3), by});
    table.add(std::move(cells));
  };
  double flops = 0, seconds = 0;
  int64_t bytes = 0;
  for (const StepInfo& step : plan.steps) {
    const Roofline least = limits ? roofline(work_of(step), *limits) : Roofline();
    std::vector<std::string> lines = kernel_lines(step.kernel);
    if (lines.empty()) lines.emplace_back();
    row({step.name, lines[0], short_format(step.format), mflop(step.flops), mib(step.bytes)},
        least.seconds, least.by);
    for (size_t i = 1; i < lines.size(); ++i) {
      std::vector<std::string> rest(head.size());
      rest[1] = lines[i];
      table.add(std::move(rest));
    }
    flops += step.flops, bytes += step.bytes, seconds += least.seconds;
  }
  row({"total", "", "", mflop(flops), mib(bytes)}, seconds, "");
  return table.text(3) + (limits ? summary(*limits) + "\n" : "");
}

std::string memory_table(const MemoryEstimate& memory, const std::string& rule) {
  Table table({"memory predicted", "MiB"});
  table.add({"parameters", mib(memory.parameters)});
  if (!rule.empty()) {
    if (memory.gradients > 0) table.add({"gradients", mib(memory.gradients)});
    table.add({"history of " + rule, mib(memory.history)});
  }
  const bool among_blobs = !rule.empty() && memory.gradients == 0;
  if (memory.sync > 0) table.add({"what the mode of sync keeps", mib(memory.sync)});
  table.add(
      {among_blobs ? "blobs, all gradients and scratch" : "blobs, their gradients and scratch",
       mib(memory.blobs)});
  table.add({"inputs", mib(memory.inputs)});
  if (memory.test_nets > 0) table.add({"test nets", mib(memory.test_nets)});
  if (memory.debug_info > 0) table.add({"debug_info", mib(memory.debug_info)});
  table.add({"code and bookkeeping", mib(memory.overhead)});
  if (memory.snapshot > 0) {
    table.add({"a step takes", mib(memory.of_a_step())});
    table.add({"while a snapshot is made", mib(memory.snapshot)});
  }
  table.add({"total", mib(memory.total())});
  return table.text(1);
}

/// The net that was named or the solver's own, in its state.
Result<NetChoice> choose(const Subject& subject) {
  NetChoice choice;
  if (subject.train) {
    CFT_ASSIGN(choice, training_net(subject.solver, subject.given()));
  } else {
    CFT_ASSIGN(std::vector<NetChoice> tests, test_nets(subject.solver, subject.given()));
    if (tests.empty()) {
      CFT_ASSIGN(choice, training_net(subject.solver, subject.given()));
    } else {
      choice = std::move(tests.front());
    }
  }
  choice.state.set_phase(subject.train ? caffe::TRAIN : caffe::TEST);
  choice.state.set_level(subject.level);
  for (const std::string& stage : subject.stages) choice.state.add_stage(stage);
  return choice;
}

/// The nets that the solver tests with.
Result<std::vector<NetChoice>> tests_of(const Subject& subject) {
  const caffe::SolverParameter& p = subject.solver.param;
  const bool tested = p.test_interval() > 0 && (p.test_iter_size() > 0 || has_test_nets(p));
  return tested ? test_nets(subject.solver, subject.given()) : std::vector<NetChoice>();
}

Result<MemoryEstimate> training_memory(const Subject& subject, const LoadedNet& net,
                                       const PlanOutline& plan) {
  const caffe::SolverParameter& p = subject.solver.param;
  CFT_ASSIGN(const auto rule, make_update_rule(p));
  MemoryEstimate memory = estimate_training(net.graph, plan, rule->history_per_param());
  if (!subject.has_solver) return memory;
  memory.sync = sync_bytes(net.graph, p.sync(), rule->history_per_param(), 1, true);
  memory.snapshot = snapshot_bytes(net.graph, p, rule->history_per_param());
  if (p.debug_info() && p.display() > 0) {
    CFT_ASSIGN(memory.debug_info, open_net_bytes(net.graph));
  }
  CFT_ASSIGN(const std::vector<NetChoice> tests, tests_of(subject));
  for (const NetChoice& choice : tests) {
    CFT_ASSIGN(const std::unique_ptr<LoadedNet> test,
               LoadedNet::load(choice, Logger(), &subject.shapes));
    CFT_TRY(test->use_precision(p.precision()));
    CFT_ASSIGN(const PlanOutline test_plan, test->outline({}));
    memory.test_nets += test_net_bytes(net.graph, test->graph, test_plan);
  }
  return memory;
}

/// Of an update that reads the gradients, and reads and writes weights and history.
Result<double> update_seconds(const Subject& subject, const Graph& graph) {
  CFT_ASSIGN(const auto rule, make_update_rule(subject.solver.param));
  const int64_t values = graph.parameter_count() * (3 + 2 * rule->history_per_param());
  const StepWork work{.flops = 0, .bytes = values * int64_t(sizeof(float))};
  return roofline(work, *subject.limits).seconds;
}

}  // namespace

Result<Explanation> explain(const Subject& subject, const Logger& log) {
  Explanation result;
  CFT_ASSIGN(const NetChoice choice, choose(subject));
  CFT_ASSIGN(result.net, LoadedNet::load(choice, log, &subject.shapes));
  CFT_TRY(result.net->use_precision(subject.solver.param.precision()));
  result.options = {.batch = subject.batch, .backward = subject.train, .outputs = {}};
  const LoadedNet& net = *result.net;
  PlanOptions alone = result.options;
  if (subject.train) {
    CFT_ASSIGN(const auto rule, make_update_rule(subject.solver.param));
    alone.updates = ImmediateUpdate::suits(subject.solver.param, *rule);
  }
  CFT_ASSIGN(const PlanOutline plan, net.outline(alone));
  CFT_ASSIGN(const std::string layer_table, layers(net, plan, subject.batch));
  MemoryEstimate memory = estimate_scoring(net.graph, plan);
  if (subject.train) {
    CFT_ASSIGN(memory, training_memory(subject, net, plan));
  }
  if (subject.limits) {
    CFT_ASSIGN(const PlanOutline pass, net.outline(result.options));
    for (const StepInfo& step : pass.steps) {
      result.least_seconds += roofline(work_of(step), *subject.limits).seconds;
    }
  }
  if (subject.limits && subject.train) {
    CFT_ASSIGN(result.update_seconds, update_seconds(subject, net.graph));
  }
  result.text = head(net, plan) + layer_table +
                steps(plan, subject.limits ? &*subject.limits : nullptr) +
                memory_table(memory, subject.train ? subject.solver.param.type() : "");
  return result;
}

}  // namespace cafetiere
