// SPDX-License-Identifier: Apache-2.0
// The data layers of a net, and nets whose layers read files, fed by rows of a table instead.
#pragma once

#include <optional>
#include <vector>

#include "core/layers/source.h"
#include "core/train/nets.h"

namespace cafetiere {

/// The names that programs have for two of the tops, whatever the net calls them: what it computes
/// from, and what that is compared with.
enum class TopRole { kOther, kFeatures, kLabel };

/// A layer that is fed from outside; `files`, where it reads files or a database.
struct SourceOfNet {
  caffe::LayerParameter layer = {};
  std::optional<FileNames> files = std::nullopt;
  bool rows = false;                ///< rows of a table may stand for its files
  std::vector<TopRole> roles = {};  ///< of each top
};

/// The layers that are fed from outside in the net's state. The first with two tops has features and
/// label; where there is none, the first top that is more than a target and the first target.
Result<std::vector<SourceOfNet>> source_layers(const NetChoice& net);

/// The top of the features; "" of a net without data layers.
Result<std::string> features_top(const NetChoice& net);

/// Replaces the layers that read files or databases by layers of the same name, tops, rules and
/// transformations that rows feed, as far as `forms` has their first top. All phases.
Status take_rows(const RowForms& forms, NetText* net);

/// The same in the nets that a solver names or carries; all are inside afterwards.
Status take_rows(const RowForms& forms, SolverText* solver);

}  // namespace cafetiere
