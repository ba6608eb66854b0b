// SPDX-License-Identifier: Apache-2.0
// The data layers of a net; feeding nets whose layers read files with rows of a table instead.
#pragma once

#include <optional>
#include <vector>

#include "core/layers/source.h"
#include "core/train/nets.h"

namespace cafetiere {

/// The conventional roles of tops, whatever their names in the net: the input of the model, and the
/// values its output is compared with.
enum class TopRole { kOther, kFeatures, kLabel };

/// A layer that is fed from outside; `files` is set if it reads files or a database.
struct SourceOfNet {
  caffe::LayerParameter layer = {};
  std::optional<FileNames> files = std::nullopt;
  bool rows = false;                ///< rows of a table can replace its files
  std::vector<TopRole> roles = {};  ///< per top
};

/// The layers that are fed from outside in the net's state. The first one with two tops provides
/// features and label; if there is none, the first top that is not only a target and the first
/// target do.
Result<std::vector<SourceOfNet>> source_layers(const NetChoice& net);

/// The top of the features; "" for a net without data layers.
Result<std::string> features_top(const NetChoice& net);

/// Replaces the layers that read files or databases with layers of the same name, tops, rules and
/// transformations that are fed with rows, if `forms` contains their first top. Applies to all
/// phases.
Status take_rows(const RowForms& forms, NetText* net);

/// The same for all nets that a solver names or contains; afterwards all are embedded.
Status take_rows(const RowForms& forms, SolverText* solver);

}  // namespace cafetiere
