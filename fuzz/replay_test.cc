// SPDX-License-Identifier: Apache-2.0
// Feeds every file of the corpora to its target, in an ordinary build: what a fuzzer has found once
// stays right. A crash or a hang fails the test; leaks show in the asan build.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "core/model/file.h"
#include "fuzz/targets.h"

namespace cafetiere::fuzz {
namespace {

struct NamedTarget {
  const char* name;
  void (*run)(std::string_view bytes);
};

#define CFT_NAMED_TARGET(name) NamedTarget{#name, name},
constexpr NamedTarget kTargets[] = {CFT_FUZZ_TARGETS(CFT_NAMED_TARGET)};
#undef CFT_NAMED_TARGET

class Corpus : public testing::TestWithParam<NamedTarget> {};

TEST_P(Corpus, ComesBack) {
  const std::filesystem::path folder = std::filesystem::path(CFT_FUZZ_CORPUS) / GetParam().name;
  GetParam().run("");
  int files = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    SCOPED_TRACE(file.path().filename().string());
    const auto bytes = read_file(file.path().string());
    ASSERT_TRUE(bytes.ok()) << bytes.status().message();
    GetParam().run(*bytes);
    ++files;
  }
  EXPECT_GT(files, 0);
}

INSTANTIATE_TEST_SUITE_P(Fuzz, Corpus, testing::ValuesIn(kTargets),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace cafetiere::fuzz
