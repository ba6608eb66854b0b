// SPDX-License-Identifier: Apache-2.0
// Every layer that is there against the reference implementation's figures.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>

#include "core/layers/registry.h"
#include "tests/layers/harness.h"
#include "tests/support/npz.h"

namespace cafetiere {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFolder = CFT_GOLDEN_DIR "/layers/";

std::vector<std::string> golden_names() {
  std::vector<std::string> names;
  if (!fs::exists(kFolder)) return names;
  for (const fs::directory_entry& file : fs::directory_iterator(kFolder)) {
    if (file.path().extension() == ".npz") names.push_back(file.path().stem());
  }
  std::ranges::sort(names);
  return names;
}

/// The text of a net. Files that it names lie beside it.
std::string read_text(const std::string& path) {
  std::ifstream file(path);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  return std::regex_replace(text, std::regex("source: \""), std::string("$&") + kFolder);
}

/// Types of the net that this library does not have.
std::string missing_types(const NetText& net) {
  std::string missing;
  for (const caffe::LayerParameter& layer : net.param.layer()) {
    if (!find_layer_type(layer_types(), layer.type()).ok()) missing += layer.type() + " ";
  }
  return missing;
}

using Arrays = std::map<std::string, NpyArray>;

/// Whether the reference gives the layer a gradient.
bool has_gradient(const Arrays& arrays) {
  return std::ranges::any_of(arrays, [](const auto& a) { return a.first.starts_with("topdiff_"); });
}

/// Figures that are not met on purpose: in this one Caffe writes the gradients of windows that lie
/// beyond the image over those of other channels.
bool is_departure(const std::string& name, const std::string& figure) {
  return name == "pool_max_k2s3" && figure == "indiff_x";
}

void expect_figures(const std::vector<float>& actual, const Arrays& arrays,
                    const std::string& name) {
  const auto found = arrays.find(name);
  if (found == arrays.end()) return;
  ASSERT_EQ(actual.size(), found->second.values.size()) << name;
  for (size_t i = 0; i < actual.size(); ++i) {
    const double expected = found->second.values[i];
    ASSERT_NEAR(actual[i], expected, 1e-5 * std::max(1.0, std::abs(expected)))
        << name << "[" << i << "]";
  }
}

std::vector<float> values_of(const Plan::Blob& blob, const float* data) {
  return {data, data + blob.shape.count()};
}

void copy_in(const Arrays& arrays, const std::string& name, float* to) {
  const auto found = arrays.find(name);
  if (found != arrays.end()) std::ranges::copy(found->second.values, to);
}

/// A statistic after a step, a learned parameter as it was.
std::vector<float> after_step(TestNet& net, size_t i) {
  const Param& p = net.graph().params()[i];
  std::vector<float> values(net.param(i).begin(), net.param(i).end());
  if (p.kind == ParamKind::kLearned) return values;
  for (size_t k = 0; k < values.size(); ++k) {
    values[k] = p.fraction * values[k] + net.param_diff(i)[k];
  }
  return values;
}

void run_on(Device& device, const std::string& text, caffe::Phase phase, const Arrays& arrays) {
  SCOPED_TRACE(device.name());
  auto built = TestNet::build(text, phase);
  ASSERT_TRUE(built.ok()) << built.status().message();
  TestNet& net = **built;
  const bool backward = has_gradient(arrays);
  auto plan = net.plan(device, 0, backward);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  const size_t params = net.graph().params().size();
  for (size_t i = 0; i < params; ++i) {
    copy_in(arrays, "param_" + std::to_string(i), net.param(i).data());
  }
  for (const Plan::Blob& b : (*plan)->inputs()) copy_in(arrays, "in_" + b.name, b.data);
  for (const Plan::Blob& b : (*plan)->outputs()) {
    if (backward) copy_in(arrays, "topdiff_" + b.name, b.diff);
  }
  ThreadPool pool(1);
  EXPECT_TRUE((*plan)->run(pool, {}).ok());
  for (const Plan::Blob& b : (*plan)->outputs()) {
    expect_figures(values_of(b, b.data), arrays, "top_" + b.name);
  }
  for (const Plan::Blob& b : (*plan)->input_diffs()) {
    expect_figures(values_of(b, b.data), arrays, "indiff_" + b.name);
  }
  for (size_t i = 0; i < params; ++i) {
    expect_figures(after_step(net, i), arrays, "param_after_" + std::to_string(i));
    if (net.graph().params()[i].kind != ParamKind::kLearned) continue;
    expect_figures({net.param_diff(i).begin(), net.param_diff(i).end()}, arrays,
                   "pdiff_" + std::to_string(i));
  }
}

class Golden : public ::testing::TestWithParam<std::string> {};

TEST_P(Golden, MeetsTheReference) {
  const std::string path = std::string(kFolder) + GetParam();
  const std::string text = read_text(path + ".prototxt");
  auto net = parse_net(text, path + ".prototxt");
  ASSERT_TRUE(net.ok()) << net.status().message();
  if (const std::string missing = missing_types(*net); !missing.empty()) {
    GTEST_SKIP() << "not there yet: " << missing;
  }
  Arrays arrays = read_npz(path + ".npz");
  std::erase_if(arrays, [](const auto& a) { return is_departure(GetParam(), a.first); });
  const caffe::Phase phase = GetParam().ends_with("_test") ? caffe::TEST : caffe::TRAIN;
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    run_on(*device, text, phase, arrays);
  }
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Golden);
INSTANTIATE_TEST_SUITE_P(Layers, Golden, ::testing::ValuesIn(golden_names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace cafetiere
