// SPDX-License-Identifier: Apache-2.0
// explain: the layers and steps that a net is compiled to, with kernels and reasons, the least time that
// this machine needs for each, the memory that training takes, and what more ranks would bring.
#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "cli/command.h"
#include "cli/explain_scale.h"
#include "cli/explanation.h"
#include "cli/flags.h"
#include "cli/limits_flags.h"
#include "cli/machine.h"
#include "core/base/split_list.h"

namespace cafetiere {
namespace {

struct ExplainFlags {
  std::string net, solver, phase = "TRAIN";
  int batch = 0;
  StateFlags state;
  ShapeFlags shapes;
  ScaleFlags scale;
  LimitsFlags limits;
  std::string precision;
};

Result<Subject> read_subject(const ExplainFlags& flags) {
  if (flags.net.empty() && flags.solver.empty()) {
    return invalid_argument("explain: name a net's prototxt, or a --solver that names one");
  }
  Subject subject;
  subject.train = flags.phase == "TRAIN";
  subject.level = flags.state.level;
  subject.stages = split_list(flags.state.stages);
  subject.shapes = flags.shapes.by_top();
  subject.batch = flags.batch;
  subject.has_solver = !flags.solver.empty();
  if (subject.has_solver) {
    CFT_ASSIGN(subject.solver, read_solver(flags.solver));
  }
  if (!flags.precision.empty()) subject.solver.param.set_precision(flags.precision);
  if (!flags.net.empty()) {
    auto net = read_net(flags.net);
    if (!net.ok()) {
      const auto solver = read_solver(flags.net);  // which is empty where a pipe has been read
      if (solver.ok() && solver->param.ByteSizeLong() > 0) {
        return invalid_argument(
            fmt::format("{} is a solver, not a net: use --solver {}", flags.net, flags.net));
      }
    }
    CFT_ASSIGN(subject.net, std::move(net));
  }
  return subject;
}

/// Prints warnings alone.
Logger notes() {
  return Logger([](LogLevel level, std::string_view text) {
    if (level >= LogLevel::kWarning) fmt::print("note: {}\n", text);
  });
}

Status print_explanation(const ExplainFlags& flags) {
  CFT_ASSIGN(Subject subject, read_subject(flags));
  subject.limits = flags.limits.get(usable_cores());
  CFT_ASSIGN(const Explanation explained, explain(subject, notes()));
  fmt::print("{}", explained.text);
  return flags.scale.ranks > 1 ? print_scale(flags.scale, *explained.net, explained.options)
                               : Status();
}

}  // namespace

Action add_explain(CLI::App& app) {
  const auto flags = std::make_shared<ExplainFlags>();
  app.add_option("net,--model", flags->net, "the net's prototxt (default: the solver's)");
  app.add_option("--solver", flags->solver,
                 "a solver, for its net and all that it keeps in memory (default: SGD alone)");
  app.add_option("--phase", flags->phase, "TRAIN (default) or TEST")
      ->check(CLI::IsMember({"TRAIN", "TEST"}));
  app.add_option("--batch", flags->batch, "batch size, instead of the net's")
      ->check(CLI::Range(1, 1 << 30));
  flags->state.add(app);
  flags->shapes.add(app);
  flags->scale.add(app);
  flags->limits.add(app);
  add_precision(app, &flags->precision);
  return [flags]() -> Status {
    CFT_TRY(flags->shapes.parse());
    return print_explanation(*flags);
  };
}

}  // namespace cafetiere
