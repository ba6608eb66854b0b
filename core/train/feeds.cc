// SPDX-License-Identifier: Apache-2.0
#include "core/train/feeds.h"

#include <fmt/format.h>

#include "core/graph/phase_rules.h"
#include "core/layers/registry.h"

namespace cafetiere {

namespace {

/// The rows of all sources go through one plan, so their batch sizes must be equal.
Status check_batch(const NetFeeds& feeds, const std::string& layer, int64_t rows) {
  if (feeds.feeds.empty() || feeds.sources[0]->rows(0, 0) == rows) return {};
  return invalid_argument(
      fmt::format("layers '{}' and '{}' give batches of {} and {} rows; make batch_size equal",
                  feeds.feeds[0].layer, layer, feeds.sources[0]->rows(0, 0), rows));
}

}  // namespace

Result<NetFeeds> open_feeds(const NetChoice& net, uint64_t seed, const Logger& log, int shards) {
  CFT_ASSIGN(const caffe::NetParameter filtered, filter_net(net.net.param, net.state, nullptr));
  const bool train = net.state.phase() == caffe::TRAIN;
  NetFeeds feeds;
  for (const caffe::LayerParameter& layer : filtered.layer()) {
    const auto type = find_layer_type(layer_types(), layer.type());
    if (!type.ok() || !(*type)->source) continue;  // the graph rejects unknown types
    if (!(*type)->open) {
      feeds.unfed.push_back(layer.name());
      continue;
    }
    Result<std::unique_ptr<Source>> source = (*type)->open(layer, {train, shards, seed, log});
    if (!source.ok()) return source.status().with_context(net.net.source);
    CFT_TRY(check_batch(feeds, layer.name(), (*source)->rows(0, 0)).with_context(net.net.source));
    feeds.shapes[layer.name()] = (*source)->top_shapes();
    feeds.feeds.push_back({layer.name(), source->get()});
    feeds.sources.push_back(*std::move(source));
  }
  return feeds;
}

Status refuse_unfed(const NetFeeds& feeds, const std::string& net) {
  if (feeds.unfed.empty()) return {};
  return invalid_argument(
      fmt::format("{}: layer '{}' is fed by a program, which the command line cannot do; use a "
                  "layer that names its data, such as Data or ImageData",
                  net, feeds.unfed.front()));
}

}  // namespace cafetiere
