// SPDX-License-Identifier: Apache-2.0
// Dot products over images by plain and by wide vectors beside their definition, to the bit.
#include "core/device/cpu/image_dots.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/device/isa.h"
#include "tests/device/drawn.h"

namespace cafetiere::image_dots {
namespace {

using Floats = std::vector<float>;

/// Operands of a run of 3 pixels, which lie among other outputs and columns.
struct Operands {
  PixelRun run;
  Floats diff, src, sums;

  Operands(int64_t columns, int64_t outputs, int64_t images)
      : run{.diff = nullptr,
            .src = nullptr,
            .pixels = 3,
            .columns = columns,
            .outputs = outputs,
            .images = images,
            .diff_step = (outputs + 2) * images,
            .src_step = 2 * images,
            .column_step = 3 * images,
            .sums = nullptr,
            .sums_step = (outputs + 1) * kLanes},
        diff(drawn(run.pixels * run.diff_step, 1)),
        src(drawn(run.pixels * run.src_step + columns * run.column_step, 2)),
        sums(drawn(columns * run.sums_step, 3)) {
    run.diff = diff.data(), run.src = src.data();
  }
  Floats by(AddRun add) const {
    Floats to = sums;
    PixelRun r = run;
    r.sums = to.data();
    add(r);
    return to;
  }
};

void add_as_defined(const PixelRun& r) {
  for (int64_t p = 0; p < r.pixels; ++p) {
    for (int64_t i = 0; i < r.images; ++i) {
      for (int64_t k = 0; k < r.columns; ++k) {
        for (int64_t o = 0; o < r.outputs; ++o) {
          float* const sum = r.sums + k * r.sums_step + o * kLanes + i % kLanes;
          *sum = std::fma(r.diff[p * r.diff_step + o * r.images + i],
                          r.src[p * r.src_step + k * r.column_step + i], *sum);
        }
      }
    }
  }
}

void expect_definition(AddRun add) {
  for (int64_t columns : {1, 2, 3, 4, 5, 6, 11}) {
    for (int64_t outputs = 1; outputs <= kMostOutputs; ++outputs) {
      for (int64_t images : {5, 16, 27, 64}) {
        const Operands operands(columns, outputs, images);
        EXPECT_EQ(operands.by(add), operands.by(add_as_defined))
            << columns << " columns, " << outputs << " outputs, " << images << " images";
      }
    }
  }
}

TEST(ImageDots, PlainVectorsGiveTheBitsOfTheDefinition) { expect_definition(plain_add_run()); }

TEST(ImageDots, WideVectorsGiveTheBitsOfTheDefinition) {
  if (!has_wide_vectors(instruction_set())) GTEST_SKIP() << "no wide vectors";
  expect_definition(wide_add_run());
}

}  // namespace
}  // namespace cafetiere::image_dots
