// SPDX-License-Identifier: Apache-2.0
// What every element-wise layer is held to.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace cafetiere {

struct ActivationCase {
  std::string type;
  std::string fields;                   ///< "elu_param { alpha: 2 }"
  std::function<double(double)> value;  ///< the formula in double precision
  std::function<double(double)> slope;
  std::vector<double> points = {-1e4,  -100, -30,  -10,  -5.5, -3.5, -2, -1,   -.5,
                                -1e-3, 1e-3, 0.25, 0.75, 2,    3.5,  5,  10.5, 100};
  bool whole_line = true;  ///< the function is defined for all x, not only from -1.75 on
};

/// Values and slopes at the points, within 2e-6 or 2.5e-7 of the formulas; NaN stays NaN; gradients by
/// differences; the same results in every layout, in place too.
void check_activation(const ActivationCase& c);

}  // namespace cafetiere
