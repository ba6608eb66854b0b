// SPDX-License-Identifier: Apache-2.0
#include "cli/machine.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "tests/support/temp_dir.h"

namespace cafetiere {
namespace {

/// A machine's proc and sys: what /proc/self/cgroup says, and files below /sys/fs/cgroup.
struct Quota {
  const char* name;
  const char* own;
  std::map<std::string, std::string> files;
  int cores;
};

class MachineQuota : public testing::TestWithParam<Quota> {};

TEST_P(MachineQuota, IsWorthSoManyCores) {
  const TempDir root;
  const auto write = [&root](const std::string& name, const std::string& text) {
    const std::filesystem::path path = root.path(name.c_str());
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  };
  write("proc/self/cgroup", GetParam().own);
  for (const auto& [name, text] : GetParam().files) write("sys/fs/cgroup/" + name, text);
  EXPECT_EQ(quota_cores(root.path(".")), GetParam().cores);
}

const Quota kQuotas[] = {
    {"Whole", "0::/\n", {{"cpu.max", "200000 100000\n"}}, 2},
    {"RoundedUp", "0::/\n", {{"cpu.max", "150000 100000\n"}}, 2},
    {"OneAtLeast", "0::/\n", {{"cpu.max", "10000 100000\n"}}, 1},
    {"None", "0::/\n", {{"cpu.max", "max 100000\n"}}, 0},
    {"OfTheGroupAround",
     "0::/pod/box\n",
     {{"pod/cpu.max", "300000 100000\n"}, {"pod/box/cpu.max", "max 100000\n"}},
     3},
    {"TheLeast",
     "0::/pod/box\n",
     {{"pod/cpu.max", "300000 100000\n"}, {"pod/box/cpu.max", "500000 100000\n"}},
     3},
    {"PathOfTheHost", "0::/of/the/host\n", {{"cpu.max", "400000 100000\n"}}, 4},
    {"VersionOne",
     "11:memory:/pod\n4:cpu,cpuacct:/pod\n",
     {{"cpu/pod/cpu.cfs_quota_us", "200000\n"}, {"cpu/pod/cpu.cfs_period_us", "100000\n"}},
     2},
    {"VersionOneNone",
     "4:cpu:/\n",
     {{"cpu/cpu.cfs_quota_us", "-1\n"}, {"cpu/cpu.cfs_period_us", "100000\n"}},
     0},
    {"NoFiles", "0::/\n", {}, 0},
    {"NoGroups", "", {}, 0},
};

INSTANTIATE_TEST_SUITE_P(Cgroups, MachineQuota, testing::ValuesIn(kQuotas),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace cafetiere
