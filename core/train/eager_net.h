// SPDX-License-Identifier: Apache-2.0
// EagerNet: a net to be run layer by layer, with what its data layers name opened and bound to it.
#pragma once

#include <memory>
#include <string>

#include "core/plan/net.h"
#include "core/train/feeds.h"

namespace cafetiere {

/// How such a net is made, and how its solver works.
struct EagerNetOptions {
  Net::Options net;
  Logger log;
  GraphOptions::Maker make_foreign;  ///< as GraphOptions has it
};

/// The sources live as long as the net that reads them.
struct EagerNet {
  NetFeeds feeds;
  std::unique_ptr<Net> net;

  static Result<std::unique_ptr<EagerNet>> create(const NetChoice& choice,
                                                  const EagerNetOptions& options);

  /// Copies weights by layer name from a file of either form; logs the layers that are not used.
  Status copy_from(const std::string& path, const Logger& log);
};

}  // namespace cafetiere
