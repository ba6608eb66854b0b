// SPDX-License-Identifier: Apache-2.0
// EagerNet: a net that runs layer by layer, with the sources that its data layers name.
#pragma once

#include <memory>
#include <string>

#include "core/plan/net.h"
#include "core/train/feeds.h"

namespace cafetiere {

/// Options for creating an eager net and its solver.
struct EagerNetOptions {
  Net::Options net;
  Logger log;
  GraphOptions::Maker make_foreign;  ///< as in GraphOptions
};

/// An eager net with its sources, which live as long as the net.
struct EagerNet {
  NetFeeds feeds;
  std::unique_ptr<Net> net;

  static Result<std::unique_ptr<EagerNet>> create(const NetChoice& choice,
                                                  const EagerNetOptions& options);

  /// Copies weights by layer name from a file of either format; logs the layers that are ignored.
  Status copy_from(const std::string& path, const Logger& log);
};

}  // namespace cafetiere
