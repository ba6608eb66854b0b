// SPDX-License-Identifier: Apache-2.0
#include "core/train/nets.h"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>

#include <algorithm>

#include "core/model/file.h"

namespace cafetiere {
namespace {

/// A net and the field of the solver that contains or names it.
struct NamedNet {
  NetText net;
  std::string field;  ///< "net_param" or "net file: <path>"
};

NamedNet inline_net(const caffe::NetParameter& param, const std::string& source,
                    const char* field) {
  return {{param, source, {}, {}}, field};
}

/// A solver's path is relative to the working directory, as in Caffe, or, if no such file exists,
/// to the solver's folder.
Result<NetText> read_net_of(const SolverText& solver, const std::string& path) {
  return read_net(find_beside(path, solver.source));
}

Result<NamedNet> net_file(const SolverText& solver, const std::string& path, const char* field) {
  CFT_ASSIGN(NetText net, read_net_of(solver, path));
  std::string origin = fmt::format("{} file: {}", field, net.source);
  return NamedNet{std::move(net), std::move(origin)};
}

/// The initial phase, overridden by the net's own state, then by the solver's.
caffe::NetState merged(caffe::Phase phase, const NetText& net, const caffe::NetState& extra) {
  caffe::NetState state;
  state.set_phase(phase);
  state.MergeFrom(net.param.state());
  state.MergeFrom(extra);
  return state;
}

/// The net for both phases, if the solver names one.
Result<NamedNet> shared_net(const SolverText& solver) {
  const caffe::SolverParameter& p = solver.param;
  return p.has_net_param() ? inline_net(p.net_param(), solver.source, "net_param")
                           : net_file(solver, p.net(), "net");
}

/// The test nets that a solver names.
Result<std::vector<NamedNet>> named_test_nets(const SolverText& solver) {
  const caffe::SolverParameter& p = solver.param;
  std::vector<NamedNet> nets;
  for (const auto& param : p.test_net_param()) {
    nets.push_back(inline_net(param, solver.source, "test_net_param"));
  }
  for (const std::string& path : p.test_net()) {
    CFT_ASSIGN(NamedNet net, net_file(solver, path, "test_net"));
    nets.push_back(std::move(net));
  }
  const bool shared = p.has_net() || p.has_net_param();
  if (int(nets.size()) > p.test_iter_size() || (!shared && int(nets.size()) < p.test_iter_size())) {
    return invalid_argument(
        fmt::format("{}: test_iter is given {} time(s) for {} test net(s); "
                    "give one for each",
                    solver.source, p.test_iter_size(), nets.size()));
  }
  while (int(nets.size()) < p.test_iter_size()) {
    CFT_ASSIGN(NamedNet net, shared_net(solver));
    nets.push_back(std::move(net));
  }
  return nets;
}

/// Sets the rows of a data layer's batch; false if the layer does not state them.
bool set_batch(uint32_t rows, caffe::LayerParameter& layer) {
  if (layer.has_input_param()) {
    for (auto& shape : *layer.mutable_input_param()->mutable_shape()) {
      if (shape.dim_size() > 0) shape.set_dim(0, rows);
    }
    return true;
  }
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  layer.GetReflection()->ListFields(layer, &fields);
  for (const auto* field : fields) {
    const google::protobuf::Descriptor* type =
        field->is_repeated() ? nullptr : field->message_type();
    const auto* batch = type ? type->FindFieldByName("batch_size") : nullptr;
    if (!batch) continue;
    google::protobuf::Message& param = *layer.GetReflection()->MutableMessage(&layer, field);
    param.GetReflection()->SetUInt32(&param, batch, rows);
    return true;
  }
  return false;
}

/// The choice with the solver's own batch_size.
Result<NetChoice> with_batch(const SolverText& solver, NetChoice choice) {
  const uint32_t rows = solver.param.batch_size();
  if (rows == 0) return choice;
  bool found = false;
  for (auto& layer : *choice.net.param.mutable_layer()) found |= set_batch(rows, layer);
  if (found) return choice;
  return invalid_argument(fmt::format(
      "{}: batch_size is {}, but the training net has no data layer that states a batch: take "
      "batch_size out of the solver",
      solver.source, rows));
}

}  // namespace

Result<NetChoice> training_net(const SolverText& solver, const NetText* given) {
  const caffe::SolverParameter& p = solver.param;
  if (given) {
    return with_batch(solver, {*given, merged(caffe::TRAIN, *given, p.train_state()),
                               "from net file: " + given->source});
  }
  const int named = p.has_net() + p.has_net_param() + p.has_train_net() + p.has_train_net_param();
  if (named != 1) {
    return invalid_argument(fmt::format(
        "{}: give exactly one of net, net_param, train_net and train_net_param; {} are given",
        solver.source, named));
  }
  NamedNet choice;
  if (p.has_train_net()) {
    CFT_ASSIGN(choice, net_file(solver, p.train_net(), "train_net"));
  } else if (p.has_train_net_param()) {
    choice = inline_net(p.train_net_param(), solver.source, "train_net_param");
  } else {
    CFT_ASSIGN(choice, shared_net(solver));
  }
  const bool file = p.has_train_net() || p.has_net();
  const std::string origin =
      file ? "from " + choice.field : fmt::format("specified in {}.", choice.field);
  const caffe::NetState state = merged(caffe::TRAIN, choice.net, p.train_state());
  return with_batch(solver, {std::move(choice.net), state, origin});
}

Result<std::vector<NetChoice>> test_nets(const SolverText& solver, const NetText* given) {
  const caffe::SolverParameter& p = solver.param;
  std::vector<NamedNet> nets;
  if (given) {
    nets.assign(size_t(std::max(1, p.test_iter_size())), {*given, "net file: " + given->source});
  } else {
    CFT_ASSIGN(nets, named_test_nets(solver));
  }
  if (p.test_state_size() != 0 && p.test_state_size() != int(nets.size())) {
    return invalid_argument(fmt::format("{}: test_state is given {} time(s) for {} test net(s)",
                                        solver.source, p.test_state_size(), nets.size()));
  }
  std::vector<NetChoice> choices;
  for (size_t i = 0; i < nets.size(); ++i) {
    const caffe::NetState extra = p.test_state_size() ? p.test_state(int(i)) : caffe::NetState();
    const caffe::NetState state = merged(caffe::TEST, nets[i].net, extra);
    choices.push_back({std::move(nets[i].net), state, "specified by " + nets[i].field});
  }
  return choices;
}

bool has_test_nets(const caffe::SolverParameter& solver) {
  return solver.test_net_param_size() + solver.test_net_size() > 0;
}

Result<caffe::SolverParameter> with_nets_inside(const SolverText& solver) {
  caffe::SolverParameter p = solver.param;
  if (p.has_net()) {
    CFT_ASSIGN(NetText net, read_net_of(solver, p.net()));
    p.mutable_net_param()->Swap(&net.param);
    p.clear_net();
  }
  if (p.has_train_net()) {
    CFT_ASSIGN(NetText net, read_net_of(solver, p.train_net()));
    p.mutable_train_net_param()->Swap(&net.param);
    p.clear_train_net();
  }
  for (const std::string& path : p.test_net()) {
    CFT_ASSIGN(NetText net, read_net_of(solver, path));
    p.add_test_net_param()->Swap(&net.param);
  }
  p.clear_test_net();
  return p;
}

}  // namespace cafetiere
