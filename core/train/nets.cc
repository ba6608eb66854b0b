#include "core/train/nets.h"

#include <fmt/format.h>

#include <algorithm>

namespace cafetiere {
namespace {

NetText inline_net(const caffe::NetParameter& param, const std::string& source) {
  return {param, source, {}, {}};
}

/// Start phase, then the net's own state, then the solver's.
caffe::NetState merged(caffe::Phase phase, const NetText& net, const caffe::NetState& extra) {
  caffe::NetState state;
  state.set_phase(phase);
  state.MergeFrom(net.param.state());
  state.MergeFrom(extra);
  return state;
}

/// The net that serves both phases, if the solver names one.
Result<NetText> shared_net(const SolverText& solver) {
  const caffe::SolverParameter& p = solver.param;
  return p.has_net_param() ? Result<NetText>(inline_net(p.net_param(), solver.source))
                           : read_net(p.net());
}

}  // namespace

Result<NetChoice> training_net(const SolverText& solver, const NetText* given) {
  const caffe::SolverParameter& p = solver.param;
  if (given) return NetChoice{*given, merged(caffe::TRAIN, *given, p.train_state())};
  const int named = p.has_net() + p.has_net_param() + p.has_train_net() + p.has_train_net_param();
  if (named != 1) {
    return invalid_argument(fmt::format(
        "{}: give exactly one of net, net_param, train_net and train_net_param; {} are given",
        solver.source, named));
  }
  NetText net;
  if (p.has_train_net()) {
    CFT_ASSIGN(net, read_net(p.train_net()));
  } else if (p.has_train_net_param()) {
    net = inline_net(p.train_net_param(), solver.source);
  } else {
    CFT_ASSIGN(net, shared_net(solver));
  }
  const caffe::NetState state = merged(caffe::TRAIN, net, p.train_state());
  return NetChoice{std::move(net), state};
}

Result<std::vector<NetChoice>> test_nets(const SolverText& solver, const NetText* given) {
  const caffe::SolverParameter& p = solver.param;
  std::vector<NetText> nets;
  if (given) {
    nets.assign(size_t(std::max(1, p.test_iter_size())), *given);
  } else {
    for (const auto& param : p.test_net_param()) nets.push_back(inline_net(param, solver.source));
    for (const std::string& path : p.test_net()) {
      CFT_ASSIGN(NetText net, read_net(path));
      nets.push_back(std::move(net));
    }
    const bool shared = p.has_net() || p.has_net_param();
    if (int(nets.size()) > p.test_iter_size() ||
        (!shared && int(nets.size()) < p.test_iter_size())) {
      return invalid_argument(
          fmt::format("{}: test_iter is given {} time(s) for {} test net(s); "
                      "give one for each",
                      solver.source, p.test_iter_size(), nets.size()));
    }
    while (int(nets.size()) < p.test_iter_size()) {
      CFT_ASSIGN(NetText net, shared_net(solver));
      nets.push_back(std::move(net));
    }
  }
  if (p.test_state_size() != 0 && p.test_state_size() != int(nets.size())) {
    return invalid_argument(fmt::format("{}: test_state is given {} time(s) for {} test net(s)",
                                        solver.source, p.test_state_size(), nets.size()));
  }
  std::vector<NetChoice> choices;
  for (size_t i = 0; i < nets.size(); ++i) {
    const caffe::NetState extra = p.test_state_size() ? p.test_state(int(i)) : caffe::NetState();
    const caffe::NetState state = merged(caffe::TEST, nets[i], extra);
    choices.push_back({std::move(nets[i]), state});
  }
  return choices;
}

}  // namespace cafetiere
