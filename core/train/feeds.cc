#include "core/train/feeds.h"

#include <fmt/format.h>

#include "core/data/db_source.h"
#include "core/graph/phase_rules.h"

namespace cafetiere {

Result<NetFeeds> open_feeds(const NetChoice& net, uint64_t seed, const Logger& log) {
  CFT_ASSIGN(const caffe::NetParameter filtered, filter_net(net.net.param, net.state, nullptr));
  const bool train = net.state.phase() == caffe::TRAIN;
  NetFeeds feeds;
  for (const caffe::LayerParameter& layer : filtered.layer()) {
    if (layer.type() == "Input" || layer.type() == "MemoryData") {
      feeds.unfed.push_back(layer.name());
    }
    if (layer.type() != "Data") continue;
    Result<std::unique_ptr<DbSource>> source = DbSource::make(layer, train, 1, seed, log);
    if (!source.ok()) return source.status().with_context(net.net.source);
    feeds.shapes[layer.name()] = (*source)->top_shapes();
    feeds.feeds.push_back({layer.name(), source->get()});
    feeds.sources.push_back(*std::move(source));
  }
  return feeds;
}

Status refuse_unfed(const NetFeeds& feeds, const std::string& net) {
  if (feeds.unfed.empty()) return {};
  return invalid_argument(
      fmt::format("{}: layer '{}' is fed by a caller, which the command line is "
                  "not; use a Data layer that names a database",
                  net, feeds.unfed.front()));
}

}  // namespace cafetiere
