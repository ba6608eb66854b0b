// SPDX-License-Identifier: Apache-2.0
// Functions of bfloat16 by AVX-512 beside the same one number at a time.
#include "core/device/wide_map.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <vector>

namespace cafetiere {
namespace {

using Numbers = std::vector<uint16_t>;

/// Numbers of all kinds: zeros, what is smaller than normal, infinities and NaNs among them.
Numbers numbers(size_t count, uint32_t step) {
  const uint16_t special[] = {0, 0x8000, 1, 0x807f, 0x7f80, 0xff80, 0x7fc0, 0x80, 0x7f7f};
  Numbers all(count);
  for (size_t i = 0; i < count; ++i) {
    all[i] = i % 5 == 3 ? special[i / 5 % std::size(special)] : uint16_t(i * step);
  }
  return all;
}

TEST(WideMap, HasTheBitsOfOneNumberAtATime) {
  if (!has_wide_map()) GTEST_SKIP() << "no AVX-512 with bfloat16 here";
  const auto f = [](const std::array<float, 2>& v, int64_t i) {
    return v[0] * (v[1] > 0 ? 1.F : 0.25F) + float(i % 3);
  };
  for (const size_t count : {1, 15, 16, 17, 31, 32, 33, 63, 64, 100, 1000}) {
    const Numbers a = numbers(count, 7919), b = numbers(count, 104729);
    Numbers wanted(count), got(count + 1, 0xabcd);
    for (size_t i = 0; i < count; ++i) {
      wanted[i] = flushed_bfloat16(f({from_bfloat16(a[i]), from_bfloat16(b[i])}, int64_t(i)));
    }
    wanted.push_back(0xabcd);  // nothing is written past the end
    wide_map<2>({a.data(), b.data()}, got.data(), int64_t(count), f);
    EXPECT_EQ(got, wanted) << count;
  }
}

TEST(WideMap, WritesOverItsInput) {
  if (!has_wide_map()) GTEST_SKIP() << "no AVX-512 with bfloat16 here";
  Numbers x = numbers(77, 31), wanted(x.size());
  const auto f = [](const std::array<float, 1>& v, int64_t) { return v[0] / 3; };
  std::ranges::transform(x, wanted.begin(),
                         [&](uint16_t v) { return flushed_bfloat16(f({from_bfloat16(v)}, 0)); });
  wide_map<1>({x.data()}, x.data(), int64_t(x.size()), f);
  EXPECT_EQ(x, wanted);
}

}  // namespace
}  // namespace cafetiere
