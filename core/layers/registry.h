// SPDX-License-Identifier: Apache-2.0
// The table of layer types, generated from the files in this folder.
#pragma once

#include "core/graph/layer.h"

namespace cafetiere {

/// All layer types of this library.
LayerTypes layer_types();

}  // namespace cafetiere
