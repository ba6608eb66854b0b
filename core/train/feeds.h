// SPDX-License-Identifier: Apache-2.0
// The sources of a net's data layers: the databases and files that they name.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/log.h"
#include "core/data/source.h"
#include "core/train/nets.h"
#include "core/train/plan_set.h"

namespace cafetiere {

/// The open databases and files of one net.
struct NetFeeds {
  std::vector<std::unique_ptr<Source>> sources;
  std::vector<Feed> feeds;
  std::map<std::string, std::vector<Shape>> shapes;  ///< by layer, for building the graph
  std::vector<std::string> unfed;  ///< source layers that the caller must feed, such as Input
};

/// Opens the files and databases named by the layers of `net` in its state, for `shards` shards.
Result<NetFeeds> open_feeds(const NetChoice& net, uint64_t seed, const Logger& log, int shards = 1);

/// An error if the net has layers that a caller must feed.
Status refuse_unfed(const NetFeeds& feeds, const std::string& net);

}  // namespace cafetiere
