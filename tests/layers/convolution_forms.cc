// SPDX-License-Identifier: Apache-2.0
// Which form of convolution each shape gets, and what `explain` says of the others.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "core/device/device.h"

namespace cafetiere {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

using Dims = std::vector<int64_t>;

struct Channels {
  int64_t in, out, group;
};

/// A convolution with four outputs along each axis.
ConvGeometry geometry(int64_t n, const Channels& c, const Dims& kernel) {
  ConvGeometry g{n, c.in, c.out, c.group, {}, {}, kernel, {}, {}, {}};
  for (int64_t size : kernel) {
    g.in.push_back(size + 3), g.out.push_back(4);
    g.stride.push_back(1), g.pad.push_back(0), g.dilation.push_back(1);
  }
  return g;
}

Shape shape(int64_t n, int64_t channels, const Dims& pixels) {
  Dims dims{n, channels};
  dims.insert(dims.end(), pixels.begin(), pixels.end());
  return Shape(dims);
}

/// What the steps "y", "dx" and "dw" say of their kernels.
std::array<std::string, 3> kernels(const ConvGeometry& g) {
  const auto cpu = make_cpu_device();
  Program p;
  Dims weight{g.outputs, g.channels / g.group};
  weight.insert(weight.end(), g.kernel.begin(), g.kernel.end());
  const TensorId x = p.external("x", shape(g.n, g.channels, g.in));
  const TensorId w = p.external("w", Shape(weight));
  const TensorId dy = p.external("dy", shape(g.n, g.outputs, g.out));
  const TensorId y = p.tensor("y", p.shape(dy));
  const TensorId dx = p.tensor("dx", p.shape(x)), dw = p.tensor("dw", p.shape(w));
  cpu->convolution(p, "y", g, x, w, kNoTensor, y, false);
  cpu->convolution_backward_data(p, "dx", g, dy, w, dx);
  cpu->convolution_backward_weights(p, "dw", g, x, dy, {dw});
  std::array<std::string, 3> found;
  for (const Step& step : p.steps()) {
    if (step.name == "y") found[0] = step.kernel;
    if (step.name == "dx") found[1] = step.kernel;
    if (step.name == "dw") found[2] = step.kernel;
  }
  return found;
}

/// w: Winograd, c: channels last, i: batch innermost, d: depthwise, r: as the reference device does it.
char letter(const std::string& kernel) {
  if (kernel.starts_with("Winograd")) return 'w';
  if (kernel.starts_with("brgemm NSC")) return 'c';
  if (kernel.starts_with("brgemm SCN")) return 'i';
  if (kernel.starts_with("brgemm, lanes are outputs")) return 'i';
  if (kernel.starts_with("vector NSC, depthwise")) return 'd';
  return kernel.starts_with("ref") ? 'r' : '?';
}

/// The forms of forward pass, data and weight gradient for 7 and for 8 images, a kernel a column.
std::string choices(const Channels& c, const std::vector<Dims>& sizes) {
  std::string line = fmt::format("{:>2} to {:>3} / {:<2}", c.in, c.out, c.group);
  for (const Dims& size : sizes) {
    for (int64_t n : {7, 8}) {
      line += n == 7 ? "  " : " ";
      for (const std::string& of : kernels(geometry(n, c, size))) line += letter(of);
    }
  }
  return line + '\n';
}

TEST(ConvolutionForms, AreChosenByShape) {
  const std::vector<Dims> planes{{1, 1}, {5, 5}, {64, 4}, {65, 2}, {17, 17}};
  const std::vector<Dims> others{{3}, {300}, {1, 1, 1}, {2, 2, 2}};
  std::string all = "\n";
  for (const Channels& c : std::vector<Channels>{{3, 32, 1},
                                                 {3, 20, 1},
                                                 {15, 64, 1},
                                                 {16, 16, 1},
                                                 {20, 50, 1},
                                                 {63, 65, 1},
                                                 {65, 65, 1},
                                                 {96, 256, 2},
                                                 {40, 20, 2},
                                                 {6, 6, 6},
                                                 {32, 32, 32},
                                                 {32, 64, 32}}) {
    all += choices(c, planes);
  }
  for (const Channels& c : std::vector<Channels>{{3, 32, 1}, {20, 50, 1}, {8, 8, 8}}) {
    all += choices(c, others);
  }
  EXPECT_EQ(all, R"(
 3 to  32 / 1   ccc iii  ccc cic  ccc cic  iii iii  ccc ccc
 3 to  20 / 1   ccc iii  ccc iii  ccc iii  iii iii  ccc rrr
15 to  64 / 1   ccc iii  ccc cic  ccc cic  iii iii  ccc ccc
16 to  16 / 1   ccc ccc  ccc ccc  ccc ccc  iii iii  ccc ccc
20 to  50 / 1   ccc iii  ccc wiw  ccc iii  iii iii  ccc rrr
63 to  65 / 1   ccc iii  ccc wiw  ccc iii  iii iii  ccc rrr
65 to  65 / 1   ccc ccc  ccc ccc  ccc ccc  iii iii  ccc ccc
96 to 256 / 2   ccc ccc  www www  ccc ccc  iii iii  ccc ccc
40 to  20 / 2   ccc iii  ccc iii  ccc iii  iii iii  ccc rrr
 6 to   6 / 6   ddd ddd  ddd ddd  ddd ddd  ddd ddd  ddd ddd
32 to  32 / 32  ddd ddd  ddd ddd  ddd ddd  ddd ddd  ddd ddd
32 to  64 / 32  ccc iii  ccc iii  ccc iii  iii iii  ccc rrr
 3 to  32 / 1   ccc cic  ccc ccc  ccc iii  rrr rrr
20 to  50 / 1   ccc iii  ccc rrr  ccc iii  rrr rrr
 8 to   8 / 8   ddd ddd  ddd ddd  ddd ddd  rrr rrr
)");
}

TEST(ConvolutionForms, WinogradTakesWideKernels) {
  std::string all = "\n";
  for (const Channels& c : std::vector<Channels>{
           {3, 32, 1}, {24, 32, 1}, {32, 32, 1}, {36, 64, 1}, {96, 256, 2}, {48, 48, 2}}) {
    all += choices(c, {{3, 3}});
  }
  EXPECT_EQ(all, R"(
 3 to  32 / 1   ccc cic
24 to  32 / 1   ccc ccc
32 to  32 / 1   www www
36 to  64 / 1   ccc wiw
96 to 256 / 2   www www
48 to  48 / 2   ccc ccc
)");
  ConvGeometry g = geometry(8, {32, 32, 1}, {3, 3});
  g.stride[1] = 2, g.in[1] = 9;
  EXPECT_THAT(kernels(g)[0], HasSubstr("; not Winograd: not 3 x 3 or 5 x 5 with stride 1"));
}

// What explain shows: the form that is taken, and why those before it in the list are not.
TEST(ConvolutionForms, SayWhyOthersAreNot) {
  const auto said = [](int64_t n, const Channels& c, const Dims& kernel) {
    return kernels(geometry(n, c, kernel));
  };
  EXPECT_EQ(said(8, {6, 6, 6}, {5, 5})[0], "vector NSC, depthwise");
  EXPECT_EQ(said(8, {96, 256, 2}, {5, 5})[0],
            "Winograd 2 x 2, brgemm NSC, lanes are channels (48 to 128 channels); not depthwise: "
            "48 to 128 channels a group");
  EXPECT_EQ(said(8, {96, 256, 2}, {1, 1})[0],
            "brgemm NSC, lanes are channels (48 to 128 channels); not depthwise: 48 to 128 "
            "channels a group; not Winograd: not 3 x 3 or 5 x 5 with stride 1");
  EXPECT_EQ(said(8, {20, 50, 1}, {5, 5})[0],
            "Winograd 2 x 2, brgemm SCN, lanes are images (20 to 50 channels); not depthwise: 1 "
            "group; not Winograd: 20 to 50 channels; not channels last: 20 to 50 channels leave "
            "lanes empty");
  EXPECT_EQ(said(8, {10, 50, 1}, {5, 5})[0],
            "brgemm SCN, lanes are images (10 to 50 channels); not depthwise: 1 group; not "
            "Winograd: 10 to 50 channels; not channels last: 10 to 50 channels leave lanes empty; "
            "not Winograd over images: 10 to 50 channels");
  EXPECT_THAT(said(8, {3, 32, 1}, {5, 5})[1],
              HasSubstr("; not channels last: a source of 3 channels leaves lanes empty"));
  EXPECT_THAT(said(16, {1, 20, 1}, {5, 5})[2],
              StartsWith("dot products over images SCN (1 to 20 channels), 4 parts; "));
  EXPECT_THAT(said(15, {1, 20, 1}, {5, 5})[2],
              HasSubstr("; not dot products over images: 15 images"));
  EXPECT_THAT(said(16, {3, 60, 1}, {7, 7})[2],
              HasSubstr("; not dot products over images: 141120 sums"));
  EXPECT_THAT(said(16, {5, 20, 1}, {5, 5})[2],
              HasSubstr("; not dot products over images: 5 to 20 channels"));
  EXPECT_THAT(said(1, {3, 32, 1}, {65, 2})[2], HasSubstr("; not channels last: 65 kernel rows"));
  EXPECT_THAT(said(8, {20, 50, 1}, {17, 17})[0],
              AllOf(StartsWith("ref; "), EndsWith("; not batch innermost: 289 kernel elements")));
  EXPECT_EQ(
      said(8, {8, 8, 8}, {2, 2, 2})[2],
      "ref; not depthwise: 3 spatial axes; not Winograd: 3 spatial axes; not channels last: 3 "
      "spatial axes; not Winograd over images: 3 spatial axes; not dot products over images: 3 "
      "spatial axes; not outputs innermost: 3 spatial axes");
}

}  // namespace
}  // namespace cafetiere
