// SPDX-License-Identifier: Apache-2.0
// Nets whose layers read files, fed by rows of a table instead.
#pragma once

#include <optional>
#include <vector>

#include "core/layers/source.h"
#include "core/train/nets.h"

namespace cafetiere {

/// A layer that is fed from outside; `files`, where it reads files or a database.
struct SourceOfNet {
  caffe::LayerParameter layer;
  std::optional<FileNames> files;
  bool rows = false;  ///< rows of a table may stand for its files
};

/// The layers that are fed from outside in the net's state.
Result<std::vector<SourceOfNet>> source_layers(const NetChoice& net);

/// Replaces the layers that read files or databases by layers of the same name, tops, rules and
/// transformations that rows feed, as far as `forms` has their first top; and Input layers of the
/// same rules by one. All phases.
Status take_rows(const RowForms& forms, NetText* net);

/// The same in the nets that a solver names or carries; all are inside afterwards.
Status take_rows(const RowForms& forms, SolverText* solver);

}  // namespace cafetiere
