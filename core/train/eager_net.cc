// SPDX-License-Identifier: Apache-2.0
#include "core/train/eager_net.h"

#include "core/layers/registry.h"
#include "core/model/weights.h"

namespace cafetiere {

Result<std::unique_ptr<EagerNet>> EagerNet::create(const NetChoice& choice,
                                                   const EagerNetOptions& options) {
  auto open = std::make_unique<EagerNet>();
  for (const std::string& note : choice.net.notes) options.log.info("{}", note);
  CFT_ASSIGN(open->feeds, open_feeds(choice, options.net.seed, options.log));
  CFT_ASSIGN(Graph graph, Graph::build(choice.net, choice.state,
                                       {.types = layer_types(),
                                        .make_foreign = options.make_foreign,
                                        .fed = open->feeds.shapes}));
  CFT_ASSIGN(open->net, Net::create(std::move(graph), options.net));
  for (const Feed& feed : open->feeds.feeds) CFT_TRY(open->net->feed(feed.layer, feed.source));
  return open;
}

Status EagerNet::copy_from(const std::string& path, const Logger& log) {
  CFT_ASSIGN(const StoredWeights weights, StoredWeights::open(path));
  std::vector<std::string> ignored;
  CFT_TRY(net->copy_from(weights, &ignored).with_context(path));
  for (const std::string& name : ignored) log.info("Ignoring source layer {}", name);
  return {};
}

}  // namespace cafetiere
