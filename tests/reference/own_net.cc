// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/own_net.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <stdexcept>

namespace cafetiere {
namespace {

void check(int code) {
  if (code != CFT_OK) throw std::runtime_error(cft_last_error());
}

std::span<float> values(const cft_blob& blob, float* of) {
  const auto count =
      std::accumulate(blob.dims, blob.dims + blob.axes, int64_t{1}, std::multiplies());
  return {of, size_t(count)};
}

}  // namespace

OwnNet::OwnNet(const std::string& path, const std::string& phase) {
  check(cft_net_create(nlohmann::json{{"path", path}, {"phase", phase}}.dump().c_str(), nullptr,
                       &net_));
  char* text = nullptr;
  check(cft_net_describe(net_, &text));
  const auto described = nlohmann::json::parse(text);
  cft_free(text);
  for (const auto& blob : described["blobs"]) blobs_.push_back(blob["name"]);
  for (size_t number : described["outputs"]) outputs_.push_back(blobs_[number]);
  layers_ = int(described["layers"].size());
}

OwnNet::~OwnNet() { cft_net_destroy(net_); }

void OwnNet::feed(std::span<const float> data, std::span<const float> labels) {
  check(cft_net_set_input(net_, "L", data.data(), labels.data(), int64_t(labels.size())));
}

void OwnNet::forward() { check(cft_net_forward(net_, 0, layers_ - 1, nullptr)); }
void OwnNet::backward() { check(cft_net_backward(net_, layers_ - 1, 0)); }

cft_blob OwnNet::blob(const std::string& name) const {
  const auto found = std::ranges::find(blobs_, name);
  if (found == blobs_.end()) throw std::runtime_error("the net has no blob " + name);
  cft_blob blob{sizeof blob, nullptr, nullptr, 0, {}};
  check(cft_net_blob(net_, int32_t(found - blobs_.begin()), &blob, nullptr));
  return blob;
}

std::span<float> OwnNet::data(const std::string& name) const {
  const cft_blob found = blob(name);
  return values(found, found.data);
}

std::span<float> OwnNet::diff(const std::string& name) const {
  const cft_blob found = blob(name);
  return values(found, found.diff);
}

std::span<float> OwnNet::param(int number) const {
  cft_blob found{sizeof found, nullptr, nullptr, 0, {}};
  check(cft_net_param(net_, number, &found, nullptr));
  return values(found, found.data);
}

std::span<float> OwnNet::param_diff(int number) const {
  cft_blob found{sizeof found, nullptr, nullptr, 0, {}};
  check(cft_net_param(net_, number, &found, nullptr));
  return values(found, found.diff);
}

}  // namespace cafetiere
