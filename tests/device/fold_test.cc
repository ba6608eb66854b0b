// SPDX-License-Identifier: Apache-2.0
// Reductions have the bits of sixteen running values, however few terms there are.
#include "core/device/cpu/fold.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <limits>
#include <vector>

namespace cafetiere {
namespace {

float sum(float a, float b) { return a + b; }
float larger(float a, float b) { return a < b ? b : a; }

/// The definition.
float folded(const std::vector<float>& terms, float start, float (*join)(float, float)) {
  std::array<float, 16> lanes;
  lanes.fill(start);
  for (size_t i = 0; i < terms.size(); ++i) lanes[i % 16] = join(lanes[i % 16], terms[i]);
  for (const float lane : lanes) start = join(start, lane);
  return start;
}

TEST(Fold, HasTheBitsOfSixteenRunningValues) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const float odd : {0.3F, -0.F, inf, std::numeric_limits<float>::quiet_NaN()}) {
    for (size_t count = 1; count < 50; ++count) {
      std::vector<float> terms(count);
      for (size_t i = 0; i < count; ++i) terms[i] = i % 5 == 1 ? odd : 1.F / float(i + 3) - 0.2F;
      if (count % 3 == 0) std::swap(terms.front(), terms.back());
      const auto term = [&](int64_t i) { return terms[size_t(i)]; };
      SCOPED_TRACE(testing::Message() << count << " terms with " << odd);
      EXPECT_EQ(std::bit_cast<uint32_t>(fold(int64_t(count), 0.F, term, sum)),
                std::bit_cast<uint32_t>(folded(terms, 0, sum)));
      EXPECT_EQ(std::bit_cast<uint32_t>(fold(int64_t(count), terms[0], term, larger)),
                std::bit_cast<uint32_t>(folded(terms, terms[0], larger)));
    }
  }
}

}  // namespace
}  // namespace cafetiere
