// SPDX-License-Identifier: Apache-2.0
// Changes of layout and format beside their definition, an element at a time.
#include "core/device/reorder.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <vector>

#include "core/base/bfloat16.h"

namespace cafetiere {
namespace {

constexpr Layout kLayouts[] = {Layout::kRowMajor, Layout::kPixels, Layout::kChannels,
                               Layout::kFeatures, Layout::kPanels};

/// Runs the step that brings a tensor of a layout to a version.
template <class T>
std::vector<T> reordered(const Shape& shape, Layout from, std::vector<float> in, Version to) {
  std::vector<T> out(in.size());
  const std::vector<void*> addresses{in.data(), out.data()};
  const Kernel kernel =
      reorder_step("x", shape, from, 0, to, 1).make(Binder(addresses, /*run=*/nullptr));
  for (int block = 0; block < kernel.blocks; ++block) kernel.run(block);
  return out;
}

/// The elements at their places in another layout.
std::vector<float> placed(const Shape& shape, Layout from, const std::vector<float>& in,
                          Layout to) {
  const Extents e(shape);
  const Strides a(e, from), b(e, to);
  std::vector<float> out(in.size());
  for (int64_t n = 0; n < e.n; ++n) {
    for (int64_t c = 0; c < e.c; ++c) {
      for (int64_t s = 0; s < e.s; ++s) {
        out[size_t(n * b.n + c * b.c + s * b.s)] = in[size_t(n * a.n + c * a.c + s * a.s)];
      }
    }
  }
  return out;
}

// 41 x 40 pixels of three channels are more than a block; others have whole tiles of 8 and a rest.
TEST(Reorder, EveryElementIsAtItsPlace) {
  for (const Shape& shape : {Shape({2, 3, 41, 40}), Shape({9, 1, 30, 3}), Shape({3, 20, 13, 9}),
                             Shape({70, 11, 5, 1})}) {
    std::vector<float> in(size_t(shape.count()));
    std::iota(in.begin(), in.end(), 0.5F);
    for (Layout from : kLayouts) {
      for (Layout to : kLayouts) {
        const std::vector<float> right = placed(shape, from, in, to);
        EXPECT_EQ(reordered<float>(shape, from, in, to), right)
            << layout_name(from) << " to " << layout_name(to);
        std::vector<uint16_t> rounded;
        for (float x : right) rounded.push_back(to_bfloat16(x));
        EXPECT_EQ(reordered<uint16_t>(shape, from, in, {to, Format::kBFloat16}), rounded)
            << layout_name(from) << " to " << layout_name(to);
      }
    }
  }
}

}  // namespace
}  // namespace cafetiere
