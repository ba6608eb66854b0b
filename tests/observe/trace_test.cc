// SPDX-License-Identifier: Apache-2.0
#include "core/observe/trace.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace cafetiere {
namespace {

TEST(Trace, IsWhatChromeReads) {
  Trace trace(3);
  {
    const Trace::Span outer(&trace, "step", "outer");
    const Trace::Span inner(&trace, "exchange", "inner \"quoted\"");
    const Trace::Span nowhere(nullptr, "step", "not kept");
  }
  const auto json = nlohmann::json::parse(trace.to_json());
  std::map<std::string, nlohmann::json> spans;
  for (const auto& event : json["traceEvents"]) {
    if (event["ph"] == "X") spans[event["name"]] = event;
    EXPECT_EQ(event["pid"], 3);
  }
  ASSERT_EQ(spans.size(), 2U);
  const auto &outer = spans["outer"], &inner = spans["inner \"quoted\""];
  EXPECT_NE(outer["tid"], inner["tid"]);
  EXPECT_LE(outer["ts"].get<double>(), inner["ts"].get<double>());
  EXPECT_GE(outer["dur"].get<double>(), inner["dur"].get<double>());
}

TEST(Trace, SaysWhereItCannotBeWritten) {
  EXPECT_EQ(Trace(0).write("no/such/folder/trace.json").code(), ErrorCode::kIo);
}

}  // namespace
}  // namespace cafetiere
