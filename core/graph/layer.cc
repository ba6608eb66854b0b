// SPDX-License-Identifier: Apache-2.0
#include "core/graph/layer.h"

#include <algorithm>

#include "core/model/dialects.h"
#include "core/model/nearest.h"

namespace cafetiere {

Result<const LayerType*> find_layer_type(LayerTypes types, const std::string& name) {
  std::vector<std::string> names;
  for (const LayerType* type : types) {
    if (type->name == name) return type;
    names.push_back(type->name);
  }
  if (const std::string_view advice = advice_on_type(name); !advice.empty()) {
    return invalid_argument("Unknown layer type: " + name + "; " + std::string(advice));
  }
  std::sort(names.begin(), names.end());
  std::string known;
  for (const std::string& n : names) known += (known.empty() ? "" : ", ") + n;
  return invalid_argument("Unknown layer type: " + name + did_you_mean(name, names) +
                          " (known types: " + known + ")");
}

}  // namespace cafetiere
