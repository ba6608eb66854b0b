// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/cases.h"

#include <fmt/format.h>

#include "tests/layers/harness.h"

namespace cafetiere {

std::vector<float> Draw::values(const std::string& name, size_t count, int classes) {
  const auto is = [&](const char* kind) { return name.find(kind) != std::string::npos; };
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& v : values) {
    if (is("label")) {
      v = float(integer(0, classes - 1));
    } else if (is("flag")) {
      v = integer(0, 3) > 0 ? 1.F : 0.F;
    } else if (is("prob")) {
      v = std::uniform_real_distribution<float>(0.05F, 1)(random_);
    } else {
      v = normal(random_);
    }
  }
  return values;
}

std::string learned(const std::string& top, const std::vector<int64_t>& dims) {
  return layer("Parameter", fmt::format("name: 'learned_{0}' top: '{0}'", top),
               fmt::format("parameter_param {{ shape {{ dim: {} }} }}", fmt::join(dims, " dim: ")));
}

}  // namespace cafetiere
