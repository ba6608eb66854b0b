// SPDX-License-Identifier: Apache-2.0
// check_nets: whether nets can be read here, and the first thing of each that is missing.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"
#include "core/graph/graph.h"
#include "core/graph/phase_rules.h"
#include "core/layers/registry.h"
#include "core/model/prototxt.h"

namespace cafetiere {
namespace {

/// Whether what its layers take is known without files and modules, which may be elsewhere.
bool stands_alone(const caffe::NetParameter& net) {
  for (const caffe::LayerParameter& layer : net.layer()) {
    const Result<const LayerType*> type = find_layer_type(layer_types(), layer.type());
    if (type.ok() && ((*type)->foreign || ((*type)->source && (*type)->open))) return false;
  }
  return true;
}

/// The shapes of a net's blobs and parameters in one phase.
Status describe(const NetText& net, caffe::Phase phase) {
  caffe::NetState state = net.param.state();
  state.set_phase(phase);
  NetText given = net;
  given.param.clear_state();
  CFT_ASSIGN(const caffe::NetParameter kept, filter_net(given.param, state, nullptr));
  if (kept.layer_size() == 0 || !stands_alone(kept)) return {};
  return Graph::build(given, state, {.types = layer_types(), .fed = {}}).status();
}

/// What is missing, if anything is.
Status check_net(const std::string& path) {
  CFT_ASSIGN(const NetText net, read_net(path));
  if (net.param.layer_size() == 0) return invalid_argument(path + ": has no layers");
  for (int i = 0; i < net.param.layer_size(); ++i) {
    const caffe::LayerParameter& layer = net.param.layer(i);
    CFT_TRY(find_layer_type(layer_types(), layer.type())
                .status()
                .with_context(fmt::format("{}:{}: layer '{}'", path, net.layer_lines[size_t(i)],
                                          layer.name())));
  }
  // Many nets are of one phase alone; that in which its layers hang together counts.
  Status status = describe(net, caffe::TEST);
  return status.ok() || describe(net, caffe::TRAIN).ok() ? Status() : status;
}

}  // namespace

Action add_check_nets(CLI::App& app) {
  const auto paths = std::make_shared<std::vector<std::string>>();
  app.add_option("NET", *paths, "prototxt files of nets")->required();
  return [paths]() -> Status {
    size_t read = 0;
    for (const std::string& path : *paths) {
      const Status status = check_net(path);
      read += status.ok();
      fmt::print("{}: {}\n", path, status.ok() ? "ok" : "not ok");
      if (!status.ok()) fmt::print("  {}\n", status.message());
    }
    fmt::print("{} of {} nets can be read\n", read, paths->size());
    if (read == paths->size()) return {};
    return invalid_argument(fmt::format("{} nets need what is not here", paths->size() - read));
  };
}

}  // namespace cafetiere
