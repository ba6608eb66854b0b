// SPDX-License-Identifier: Apache-2.0
#include "core/base/log_relay.h"

#include <gmock/gmock.h>

#include <vector>

namespace cafetiere {
namespace {

using testing::ElementsAre;

TEST(LogRelay, KeepsTheNewestMessagesForWhoComesLate) {
  LogRelay relay;
  const Logger log = relay.logger();
  for (size_t i = 0; i < LogRelay::kKept + 2; ++i) log.info("{}", i);
  std::vector<std::string> heard;
  relay.listen([&](LogLevel, std::string_view text) { heard.emplace_back(text); });
  ASSERT_EQ(heard.size(), LogRelay::kKept);
  EXPECT_EQ(heard.front(), "2");
  heard.clear();
  log.warning("now");
  relay.listen({});
  log.info("later");
  EXPECT_FALSE(relay.is_heard());
  relay.listen([&](LogLevel, std::string_view text) { heard.emplace_back(text); });
  EXPECT_THAT(heard, ElementsAre("now", "later"));
}

}  // namespace
}  // namespace cafetiere
