// SPDX-License-Identifier: Apache-2.0
// --shape: the shapes of data that is not there, for commands that look at a net and need no values.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/base/log.h"
#include "core/train/feeds.h"

namespace cafetiere {

/// By top: channels, height and width of a row, or all axes.
using TopShapes = std::map<std::string, Shape>;

/// Adds the option --shape, which may be repeated and is for parse_shape(); `what` is its help.
void add_shape_option(CLI::App& app, std::vector<std::string>* given, const std::string& what);

/// "data=3x227x227" as a name and sizes above 0.
Result<std::pair<std::string, Shape>> parse_shape(const std::string& text);

class ShapeFlags {
 public:
  void add(CLI::App& app);
  /// Reads what was given.
  Status parse();
  const TopShapes& by_top() const { return by_top_; }

 private:
  std::vector<std::string> given_;
  TopShapes by_top_;
};

/// As open_feeds(), but a layer for which `given` has a shape is not opened, and one that cannot be
/// opened is known by what the net says of its shape. Such a layer has shapes and no feed; `log` tells
/// why. Fails where neither says the shape, and for a shape of a top that is no such layer's.
Result<NetFeeds> open_or_state(const NetChoice& net, const TopShapes& given, uint64_t seed,
                               const Logger& log);

}  // namespace cafetiere
