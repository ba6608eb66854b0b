// SPDX-License-Identifier: Apache-2.0
// Structs of earlier and later versions of the header.
#include <gmock/gmock.h>

#include <cstring>

#include "tests/capi/small_training.h"

namespace cafetiere {
namespace {

using testing::HasSubstr;

/// A cft_host as a later version may have it.
struct LaterHost {
  cft_host host;
  void (*added)() = nullptr;
};

struct Net {
  cft_net* net = nullptr;
  ~Net() { cft_net_destroy(net); }
};

int make_net(const cft_host* host, Net* net, const std::string& text = kSmallNet) {
  const nlohmann::json options{{"text", text}, {"phase", "TRAIN"}};
  return cft_net_create(options.dump().c_str(), host, &net->net);
}

TEST(StructSize, AStructOfAnEarlierVersionLacksTheLaterFields) {
  const auto hear = [](void* heard, int, const char*) { *static_cast<bool*>(heard) = true; };
  const auto refuse = [](void*, const char*, int64_t*) { return 1; };
  bool heard = false;
  cft_host host{};
  host.context = &heard, host.log = hear, host.layer_create = refuse;
  host.struct_size = offsetof(cft_host, log);  // what lies behind is not looked at
  std::string text = kSmallNet;
  text.replace(text.find("name: \"ip\""), 10, "name: \"other\"");
  Net silent, telling, other;  // who shares with `other` says which of its layers they lack
  ASSERT_EQ(make_net(nullptr, &other, text), CFT_OK) << cft_last_error();
  ASSERT_EQ(make_net(&host, &silent), CFT_OK) << cft_last_error();
  EXPECT_EQ(cft_net_share_with(silent.net, other.net), CFT_OK) << cft_last_error();
  EXPECT_FALSE(heard);
  host.struct_size = offsetof(cft_host, error);
  ASSERT_EQ(make_net(&host, &telling), CFT_OK) << cft_last_error();
  EXPECT_EQ(cft_net_share_with(telling.net, other.net), CFT_OK) << cft_last_error();
  EXPECT_TRUE(heard);
}

TEST(StructSize, AStructOfALaterVersionMayNotUseItsLaterFields) {
  LaterHost later{};
  later.host.struct_size = sizeof later;
  Net net, refused;
  EXPECT_EQ(make_net(&later.host, &net), CFT_OK) << cft_last_error();
  later.added = [] {};
  EXPECT_EQ(make_net(&later.host, &refused), CFT_INVALID_ARGUMENT);
  EXPECT_THAT(cft_last_error(), HasSubstr("a field that this library"));
}

TEST(StructSize, SizesThatNoVersionHasAreRefused) {
  for (const uint64_t size : {uint64_t{0}, uint64_t{8}, uint64_t{17}, uint64_t{1} << 40}) {
    cft_host host{};
    cft_callbacks callbacks{};
    host.struct_size = callbacks.struct_size = size;
    Net net;
    cft_trainer* trainer = nullptr;
    EXPECT_EQ(make_net(&host, &net), CFT_INVALID_ARGUMENT);
    EXPECT_THAT(cft_last_error(), HasSubstr("set it to sizeof(cft_host)"));
    const std::string options = small_options(0, 1, "").dump();
    EXPECT_EQ(cft_trainer_create(options.c_str(), &callbacks, &trainer), CFT_INVALID_ARGUMENT);
    EXPECT_THAT(cft_last_error(), HasSubstr("set it to sizeof(cft_callbacks)"));
  }
}

TEST(StructSize, ALargerBlobIsFilledWithZeros) {
  struct {
    cft_blob blob;
    int64_t added;
  } later;
  std::memset(&later, 0xff, sizeof later);
  later.blob.struct_size = sizeof later;
  Net net;
  ASSERT_EQ(make_net(nullptr, &net), CFT_OK) << cft_last_error();
  ASSERT_EQ(cft_net_blob(net.net, 0, &later.blob, nullptr), CFT_OK) << cft_last_error();
  EXPECT_EQ(later.blob.axes, 4);
  EXPECT_EQ(later.blob.dims[0], 8);
  EXPECT_EQ(later.added, 0);
  later.blob.struct_size = sizeof(cft_blob) - 8;
  EXPECT_EQ(cft_net_blob(net.net, 0, &later.blob, nullptr), CFT_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace cafetiere
