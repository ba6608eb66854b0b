// SPDX-License-Identifier: Apache-2.0
// --shape: the shapes of data that is not there, for commands that look at a net and need no values.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <vector>

#include "core/base/log.h"
#include "core/train/feeds.h"

namespace cafetiere {

class ShapeFlags {
 public:
  void add(CLI::App& app);
  /// Reads what was given.
  Status parse();
  /// By top: channels, height and width of a row, or all axes.
  const std::map<std::string, Shape>& by_top() const { return by_top_; }

 private:
  std::vector<std::string> given_;
  std::map<std::string, Shape> by_top_;
};

/// As open_feeds(), but a layer for which `flags` give a shape is not opened, and one that cannot be
/// opened is known by what the net says of its shape. Such a layer has shapes and no feed; `log` tells
/// why. Fails where neither says the shape, and for a shape of a top that is no such layer's.
Result<NetFeeds> open_or_state(const NetChoice& net, const ShapeFlags& flags, uint64_t seed,
                               const Logger& log);

}  // namespace cafetiere
