// SPDX-License-Identifier: Apache-2.0
// Products through three planes of bfloat16: the planes beside their definition, the products beside
// exact sums and float32's own error, and the same bits with AMX and in C++.
#include "core/device/cpu/bf16x6_product.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "core/base/bfloat16.h"
#include "core/device/cpu/bf16_product.h"
#include "core/device/isa.h"
#include "tests/device/drawn.h"

namespace cafetiere::bf16x6 {
namespace {

using Floats = std::vector<float>;

/// Numbers at an address that tiles are loaded from.
class Planes {
 public:
  explicit Planes(int64_t size) : lines_(size_t(size / kBlock)) {
    std::fill_n(data(), size, uint16_t{0x4242});  // unwritten
  }
  uint16_t* data() { return lines_[0].numbers; }
  const uint16_t* data() const { return lines_[0].numbers; }
  uint16_t operator[](size_t i) const { return data()[i]; }
  bool operator==(const Planes& other) const {
    return std::equal(data(), data() + lines_.size() * kBlock, other.data());
  }

 private:
  struct alignas(64) Line {
    uint16_t numbers[kBlock];
  };
  std::vector<Line> lines_;
};

/// A matrix among other numbers, contiguous along its depth or its lanes.
struct Numbers {
  Matrix matrix;
  Floats values;

  Numbers(int64_t lanes, int64_t depth, bool deep, unsigned seed)
      : matrix{nullptr, (deep ? depth : lanes) + 5, deep, lanes, depth},
        values(drawn((deep ? lanes : depth) * matrix.distance, seed)) {}

  size_t index(int64_t lane, int64_t d) const {
    return size_t(matrix.deep ? lane * matrix.distance + d : d * matrix.distance + lane);
  }
  float at(int64_t lane, int64_t d) const {
    const bool inside = lane < matrix.lanes && d < matrix.depth;
    return inside ? values[index(lane, d)] : 0;
  }
  Planes split(const Kernels& by, Lines lines) const {
    Matrix m = matrix;
    m.values = values.data();
    Planes planes(m.size());
    by.split(m, lines, planes.data());
    return planes;
  }
  /// Where a number of a plane is to be.
  size_t place(Lines lines, int64_t lane, int64_t d, int64_t plane) const {
    const int64_t block = lane / kBlock * blocks(matrix.depth) + d / kBlock;
    const int64_t in_half = lane % 16, in_block = d % kBlock;
    const int64_t in_tile = lines == Lines::kLanes
                                ? in_half * kBlock + in_block
                                : in_block / 2 * kBlock + 2 * in_half + in_block % 2;
    return size_t(block * kBlockSize + (plane * 2 + lane % kBlock / 16) * kTile + in_tile);
  }
};

std::vector<std::pair<std::string, const Kernels*>> all_kernels() {
  std::vector<std::pair<std::string, const Kernels*>> list{{"plain", &plain_kernels()}};
  if (instruction_set() == "amx") list.emplace_back("amx", &amx_kernels());
  return list;
}

constexpr std::pair<int64_t, int64_t> kSizes[] = {{1, 1},   {16, 32}, {17, 33}, {32, 64},
                                                  {45, 15}, {64, 16}, {70, 131}};

TEST(Bf16x6, PlanesAddUpToTheNumber) {
  for (const auto& [name, by] : all_kernels()) {
    for (const auto& [lanes, depth] : kSizes) {
      for (const bool deep : {true, false}) {
        for (const Lines lines : {Lines::kLanes, Lines::kPairs}) {
          const Numbers of(lanes, depth, deep, 5);
          const Planes planes = of.split(*by, lines);
          for (int64_t lane = 0; lane < blocks(lanes) * kBlock; ++lane) {
            for (int64_t d = 0; d < blocks(depth) * kBlock; ++d) {
              float rest = of.at(lane, d);
              for (int64_t plane = 0; plane < kPlanes; ++plane) {
                const uint16_t own = planes[of.place(lines, lane, d, plane)];
                ASSERT_EQ(own, to_bfloat16(rest))
                    << name << ", lane " << lane << ", depth " << d << ", plane " << plane;
                rest -= from_bfloat16(own);
              }
              ASSERT_LE(std::abs(rest), std::ldexp(std::abs(of.at(lane, d)), -25));
            }
          }
        }
      }
    }
  }
}

TEST(Bf16x6, RareNumbersHaveTheSamePlanesOnAllProcessors) {
  using Limits = std::numeric_limits<float>;
  Numbers of(32, 32, true, 9);
  const Floats rare = {0.F,
                       -0.F,
                       Limits::denorm_min(),
                       -Limits::min() / 2,
                       Limits::min(),
                       Limits::min() * 1.7F,
                       Limits::max(),
                       std::bit_cast<float>(0x7f7f0000U),
                       1 + Limits::epsilon(),
                       Limits::infinity(),
                       Limits::quiet_NaN()};
  std::copy(rare.begin(), rare.end(), of.values.begin());
  for (const auto& [name, by] : all_kernels()) {
    const Planes planes = of.split(*by, Lines::kLanes);
    EXPECT_TRUE(planes == of.split(plain_kernels(), Lines::kLanes)) << name;
    EXPECT_EQ(planes[2], 0) << "below the least normal number";
    EXPECT_EQ(planes[3], 0x8000);
    EXPECT_TRUE(std::isnan(from_bfloat16(planes[size_t(2 * kTile) + 9]))) << "of infinity";
    EXPECT_TRUE(std::isnan(from_bfloat16(planes[10])));
  }
}

/// A block of a product, and what it is to be.
struct Block {
  Numbers rows, lanes;
  int64_t distance = kBlock + 3;
  Floats before = drawn(kBlock * distance, 3), bias = drawn(kBlock, 4);

  Block(int64_t rows, int64_t lanes, int64_t depth)
      : rows(rows, depth, true, 1), lanes(lanes, depth, false, 2) {}

  Floats by(const Kernels& kernel, bool add, bool biased, bool relu) const {
    Floats to = before;
    const Planes a = rows.split(kernel, Lines::kLanes), b = lanes.split(kernel, Lines::kPairs);
    const bf16::TileScope scope;
    kernel.multiply(a.data(), b.data(), blocks(rows.matrix.depth),
                    {.to = to.data(),
                     .distance = distance,
                     .rows = rows.matrix.lanes,
                     .lanes = lanes.matrix.lanes,
                     .bias = biased ? bias.data() : nullptr,
                     .add = add,
                     .relu = relu});
    return to;
  }
};

TEST(Bf16x6, ProductsAreMoreExactThanFloat32) {
  for (const auto& [name, by] : all_kernels()) {
    for (const auto& [rows, lanes, depth] :
         {std::array<int64_t, 3>{32, 32, 32}, {5, 32, 100}, {32, 7, 129}, {32, 32, 1000}}) {
      const Block of(rows, lanes, depth);
      const Floats sums = of.by(*by, false, false, false);
      double error = 0, float_error = 0;
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t l = 0; l < lanes; ++l) {
          double exact = 0, squares = 0;
          float plain = 0;
          for (int64_t d = 0; d < depth; ++d) {
            const float a = of.rows.at(r, d), b = of.lanes.at(l, d);
            exact += double(a) * double(b), squares += double(a) * a * double(b) * b;
            plain = std::fma(a, b, plain);
          }
          const double scale = std::sqrt(squares);
          const double own = (double(sums[size_t(r * of.distance + l)]) - exact) / scale;
          const double usual = (double(plain) - exact) / scale;
          ASSERT_LT(std::abs(own), 1.5e-6)
              << name << ", " << rows << " x " << lanes << " x " << depth;
          error += own * own, float_error += usual * usual;
        }
      }
      // Of few terms each error is that of the last rounding.
      if (depth > 64) {
        EXPECT_LT(error, float_error) << name << ", depth " << depth;
      }
    }
  }
}

TEST(Bf16x6, TheBlockIsWrittenAsAskedAndNothingBeside) {
  for (const auto& [name, by] : all_kernels()) {
    for (const auto& [rows, lanes, depth] :
         {std::array<int64_t, 3>{32, 32, 40}, {1, 32, 300}, {32, 3, 300}}) {
      const Block of(rows, lanes, depth);
      const Floats sums = of.by(*by, false, false, false);
      const Floats all = of.by(*by, true, true, true);
      for (int64_t r = 0; r < kBlock; ++r) {
        for (int64_t l = 0; l < of.distance; ++l) {
          const size_t at = size_t(r * of.distance + l);
          if (r >= rows || l >= lanes) {
            ASSERT_EQ(sums[at], of.before[at]) << name << " beside the block";
            ASSERT_EQ(all[at], of.before[at]) << name << " beside the block";
          } else {
            ASSERT_EQ(all[at], std::max(of.before[at] + sums[at] + of.bias[size_t(l)], 0.F));
          }
        }
      }
    }
  }
}

TEST(Bf16x6, AmxGivesTheBitsOfItsDefinition) {
  if (instruction_set() != "amx") GTEST_SKIP() << "needs AMX";
  for (const auto& [rows, lanes, depth] :
       {std::array<int64_t, 3>{32, 32, 32}, {32, 32, 512}, {5, 32, 100}, {32, 7, 129}}) {
    Block of(rows, lanes, depth);
    of.rows.values[3] = 1e-38F, of.lanes.values[5] = 1e-30F;  // products that are no normal numbers
    EXPECT_EQ(of.by(amx_kernels(), true, true, false), of.by(plain_kernels(), true, true, false));
  }
}

}  // namespace
}  // namespace cafetiere::bf16x6
