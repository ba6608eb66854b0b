// SPDX-License-Identifier: Apache-2.0
// The part of the C interface that drives a solver step by step.
#include <nlohmann/json.hpp>

#include "core/capi/boundary.h"
#include "core/capi/eager_handles.h"
#include "core/capi/handles.h"
#include "core/capi/options.h"

namespace cafetiere::capi {
namespace {

std::function<Status()> callback(const Host& host, int (*function)(void*)) {
  if (!function) return {};
  return [host, function]() -> Status {
    return function(host->context) == 0 ? Status() : host_error(*host, "a callback failed");
  };
}

std::unique_ptr<cft_net> borrowed(EagerNet* eager, const Logger& log, bool in_solver) {
  auto net = std::make_unique<cft_net>();
  net->eager = eager;
  net->log = log;
  net->in_solver = in_solver;
  return net;
}

Status create(const char* text, const cft_host* given, cft_solver** out) {
  CFT_ASSIGN(Options o, Options::parse(text));
  const std::string path = o.text("path"), solver_text = o.text("text"), type = o.text("type");
  const int threads = int(o.number("threads", 1, 1, 1024));
  const uint64_t seed = uint64_t(o.number("seed", 1, 0, INT64_MAX));
  CFT_TRY(o.done());
  NetSolver::Options options;
  if (path.empty()) {
    CFT_ASSIGN(options.solver, parse_solver(solver_text, "solver"));
  } else {
    CFT_ASSIGN(options.solver, read_solver(path));
  }
  if (!type.empty()) options.solver.param.set_type(type);
  CFT_ASSIGN(const cft_host callbacks, given_struct(given, "cft_host"));
  const Host host = std::make_shared<cft_host>(callbacks);
  options.net = eager_net_options(host, threads, seed);
  options.on_start = callback(host, host->on_start);
  options.on_pass = callback(host, host->on_pass);
  options.on_gradients_ready = callback(host, host->on_gradients_ready);
  const Logger log = options.net.log;
  auto handle = std::make_unique<cft_solver>();
  CFT_ASSIGN(handle->solver, NetSolver::create(std::move(options)));
  handle->nets.push_back(borrowed(&handle->solver->net(), log, true));
  for (auto& test : handle->solver->test_nets()) {
    handle->nets.push_back(borrowed(test.get(), log, false));
  }
  *out = handle.release();
  return {};
}

}  // namespace
}  // namespace cafetiere::capi

using cafetiere::Status;
namespace capi = cafetiere::capi;

int cft_solver_create(const char* options, const cft_host* host, cft_solver** out) {
  CFT_NOT_NULL(out);
  return capi::guarded([&] { return capi::create(options, host, out); });
}

int cft_solver_describe(const cft_solver* solver, char** out) {
  CFT_NOT_NULL(solver, out);
  return capi::guarded([&] {
    const caffe::SolverParameter& p = solver->solver->param();
    const nlohmann::json json{{"type", p.type()},
                              {"max_iter", p.max_iter()},
                              {"display", p.display()},
                              {"base_lr", p.base_lr()},
                              {"test_nets", solver->nets.size() - 1},
                              {"iter", solver->solver->iter()},
                              {"lr", solver->solver->rate()}};
    return capi::give_json(json, out);
  });
}

int cft_solver_net(cft_solver* solver, int32_t test, cft_net** out) {
  CFT_NOT_NULL(solver, out);
  return capi::guarded([&]() -> Status {
    if (test < -1 || int64_t(test) + 1 >= int64_t(solver->nets.size())) {
      return cafetiere::not_found("the solver has no such test net");
    }
    *out = solver->nets[size_t(test + 1)].get();
    return {};
  });
}

int cft_solver_step(cft_solver* solver, int32_t iterations) {
  CFT_NOT_NULL(solver);
  return capi::guarded([&] { return solver->solver->step(iterations); });
}
int cft_solver_join(cft_solver* solver, cft_group* group) {
  CFT_NOT_NULL(solver, group);
  return capi::guarded([&] {
    return solver->solver->join(
        std::shared_ptr<cafetiere::Group>(group->shared_from_this(), group->group.get()));
  });
}
int cft_solver_solve(cft_solver* solver) {
  CFT_NOT_NULL(solver);
  return capi::guarded([&] { return solver->solver->solve(); });
}
int cft_solver_apply_update(cft_solver* solver) {
  CFT_NOT_NULL(solver);
  return capi::guarded([&] { return solver->solver->apply_update(); });
}
int cft_solver_set_base_lr(cft_solver* solver, float rate) {
  CFT_NOT_NULL(solver);
  return capi::guarded([&] { solver->solver->set_base_lr(rate); });
}
int cft_solver_snapshot(cft_solver* solver) {
  CFT_NOT_NULL(solver);
  return capi::guarded([&] { return solver->solver->snapshot(); });
}
int cft_solver_restore(cft_solver* solver, const char* path) {
  CFT_NOT_NULL(solver, path);
  return capi::guarded([&] { return solver->solver->restore(path); });
}
void cft_solver_destroy(cft_solver* solver) { delete solver; }
