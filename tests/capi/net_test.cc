// SPDX-License-Identifier: Apache-2.0
// Nets run layer by layer through the C interface: what callers feed them with.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "cafetiere/c_api.h"
#include "tests/capi/handed.h"
#include "tests/support/temp_dir.h"

namespace cafetiere {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

constexpr const char* kFed = R"(
  layer { name: "in" type: "MemoryData" top: "data" top: "label"
          memory_data_param { batch_size: 2 channels: 1 height: 2 width: 2 } }
  layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
          inner_product_param { num_output: 3 } }
)";

struct FreeNet {
  void operator()(cft_net* net) const { cft_net_destroy(net); }
};
using NetHandle = std::unique_ptr<cft_net, FreeNet>;

NetHandle fed_net() {
  cft_net* net = nullptr;
  const std::string options = nlohmann::json{{"text", kFed}}.dump();
  EXPECT_EQ(cft_net_create(options.c_str(), nullptr, &net), 0) << cft_last_error();
  return NetHandle(net);
}

int reshape(const NetHandle& net, std::vector<int64_t> dims) {
  return cft_net_reshape_blob(net.get(), 0, dims.data(), int32_t(dims.size()));
}

/// The values of blob 0.
std::vector<float> images(const NetHandle& net) {
  cft_blob blob{sizeof blob, nullptr, nullptr, 0, {}};
  EXPECT_EQ(cft_net_blob(net.get(), 0, &blob, nullptr), 0);
  return {blob.data, blob.data + 8};
}

TEST(NetInput, ArraysThatDoNotFitAreNotKept) {
  const std::vector<float> first(8, 3.f), refused(18, 5.f), labels(2);
  const NetHandle net = fed_net();
  ASSERT_EQ(cft_net_set_input(net.get(), "in", first.data(), labels.data(), 2), 0);
  ASSERT_EQ(reshape(net, {2, 1, 3, 3}), 0);
  EXPECT_NE(cft_net_set_input(net.get(), "in", refused.data(), labels.data(), 2), 0);
  EXPECT_THAT(cft_last_error(), HasSubstr("its inputs now need a parameter"));
  ASSERT_EQ(reshape(net, {2, 1, 2, 2}), 0);
  ASSERT_EQ(cft_net_forward(net.get(), 0, 1, nullptr), 0) << cft_last_error();
  EXPECT_THAT(images(net), Each(3.f));
}

TEST(NetInput, ABlobWithoutRowsIsRefused) {
  const std::vector<float> data(8), labels(2);
  for (const std::vector<int64_t>& dims : {std::vector<int64_t>{0, 1, 2, 2}, {}}) {
    const NetHandle net = fed_net();
    ASSERT_EQ(reshape(net, dims), 0) << cft_last_error();
    EXPECT_NE(cft_net_set_input(net.get(), "in", data.data(), labels.data(), 2), 0);
    EXPECT_THAT(cft_last_error(), HasSubstr("blob 'data' has shape"));
  }
}

TEST(NetInput, NoArraysAreRefused) {
  const std::vector<float> data(8);
  const NetHandle net = fed_net();
  EXPECT_NE(cft_net_set_input(net.get(), "in", data.data(), nullptr, 2), 0);
  EXPECT_THAT(cft_last_error(), HasSubstr("labels is NULL"));
}

TEST(NetText, ALatin1NameIsDescribed) {
  const TempDir folder;
  const std::string path = folder.write("net.prototxt",
                                        "layer { name: 'caf\xe9' type: 'Input' top: 'caf\xe9' "
                                        "input_param { shape { dim: 1 } } }");
  cft_net* made = nullptr;
  const std::string options = nlohmann::json{{"path", path}}.dump();
  ASSERT_EQ(cft_net_create(options.c_str(), nullptr, &made), 0) << cft_last_error();
  const NetHandle net(made);
  EXPECT_THAT(handed_text(cft_net_describe, net.get()), HasSubstr("caf\xef\xbf\xbd"));
}

}  // namespace
}  // namespace cafetiere
