// SPDX-License-Identifier: Apache-2.0
// Filter: the size of its tops depends on the selector's values, so no plan can run it; a net that runs
// layer by layer does, as the reference's.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/layers/harness.h"
#include "tests/reference/cases.h"
#include "tests/reference/own_net.h"
#include "tests/reference/reference.h"

namespace cafetiere {
namespace {

using parity::Arrays;

TEST(ReferenceFilter, LetsTheSameRowsThrough) {
  if (!reference_is_there()) GTEST_SKIP() << "tools/reference_caffe has not been run";
  const TempDir folder;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    SCOPED_TRACE(seed);
    Draw draw(seed);
    const int rows = draw.integer(6, 12), size = draw.integer(1, 7);
    const std::string path = folder.path("filter");
    write_text(path + ".prototxt",
               "state { phase: TRAIN }\n" + learned("x", {rows, size, 2}) +
                   input("x_other", {rows, 3}) + input("flag", {rows}) +
                   layer("Filter",
                         "bottom: 'x' bottom: 'x_other' bottom: 'flag' top: 'y0' top: 'y1' "
                         "propagate_down: true propagate_down: false propagate_down: false "
                         "loss_weight: 1 loss_weight: 0"));
    Arrays in = {{"param_0", draw.values("x", size_t(rows * size * 2), 1)},
                 {"in_x_other", draw.values("x", size_t(rows * 3), 1)},
                 {"in_flag", draw.values("flag", size_t(rows), 1)}};
    const auto kept = size_t(std::ranges::count(in.at("in_flag"), 1.F));
    in["topdiff_y0"] = draw.values("x", kept * size_t(size) * 2, 1);
    parity::write_arrays(path + ".in", in);
    ASSERT_EQ(run_reference({"layers", folder.path(""), "filter"}), "");
    const Arrays out = parity::read_arrays(path + ".out");
    OwnNet net(path + ".prototxt", "TRAIN");
    std::ranges::copy(in.at("param_0"), net.param(0).begin());
    for (const char* blob : {"x_other", "flag"}) {
      std::ranges::copy(in.at(std::string("in_") + blob), net.data(blob).begin());
    }
    net.forward();
    std::ranges::copy(in.at("topdiff_y0"), net.diff("y0").begin());
    net.backward();
    for (const char* blob : {"y0", "y1"}) {
      EXPECT_TRUE(std::ranges::equal(net.data(blob), out.at(std::string("top_") + blob))) << blob;
    }
    EXPECT_TRUE(std::ranges::equal(net.param_diff(0), out.at("pdiff_0")));
  }
}

}  // namespace
}  // namespace cafetiere
