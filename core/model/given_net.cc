// SPDX-License-Identifier: Apache-2.0
#include "core/model/given_net.h"

#include <fmt/format.h>

#include <map>

namespace cafetiere {
namespace {

using caffe::LayerParameter;

constexpr const char* kInput = "input";

/// Whether the net ends in a Softmax of an InnerProduct with `scores` outputs.
bool gives_scores(const caffe::NetParameter& net, int64_t scores) {
  const int last = net.layer_size() - 1;
  if (last < 1 || net.layer(last).type() != "Softmax") return false;
  const LayerParameter& before = net.layer(last - 1);
  return before.type() == "InnerProduct" && before.top_size() == 1 &&
         net.layer(last).bottom_size() == 1 && net.layer(last).bottom(0) == before.top(0) &&
         int64_t(before.inner_product_param().num_output()) == scores;
}

/// Maps the blob names of the given net to new names.
class Names {
 public:
  explicit Names(const std::set<std::string>& taken) : taken_(taken) {}

  void set(const std::string& blob, const std::string& name) { names_[blob] = name; }
  std::string of(const std::string& blob) const {
    const auto known = names_.find(blob);
    if (known != names_.end()) return known->second;
    return taken_.contains(blob) && blob != kInput ? "net/" + blob : blob;
  }
  /// The new name of a blob that a layer produces, which differs from an input of the same name.
  std::string made(const LayerParameter& layer, const std::string& blob) {
    const auto known = names_.find(blob);
    const bool in_place = layer.bottom_size() > 0 && layer.bottom(0) == blob;
    if (known == names_.end() && taken_.contains(blob) && !in_place) set(blob, "net/" + blob);
    return of(blob);
  }

 private:
  const std::set<std::string>& taken_;
  std::map<std::string, std::string> names_;
};

}  // namespace

Result<GivenNet> given_net(const caffe::NetParameter& net, int64_t scores,
                           const std::set<std::string>& taken) {
  GivenNet given;
  given.whole = gives_scores(net, scores);
  Names names(taken);
  bool has_input = false;
  for (int i = 0; i < net.layer_size() - (given.whole ? 1 : 0); ++i) {
    LayerParameter layer = net.layer(i);
    if (layer.type() == "Input") {
      if (has_input || layer.top_size() != 1) {
        return invalid_argument("net: it has several inputs, and a table gives one, \"input\"");
      }
      has_input = true;
      names.set(layer.top(0), kInput);
      continue;
    }
    if (taken.contains(layer.name())) {
      return invalid_argument(
          fmt::format("net: layer '{}' is called as one of the table's net: give it another name",
                      layer.name()));
    }
    for (std::string& bottom : *layer.mutable_bottom()) bottom = names.of(bottom);
    for (int t = 0; t < layer.top_size(); ++t) {
      layer.set_top(t, names.made(net.layer(i), net.layer(i).top(t)));
    }
    *given.net.add_layer() = std::move(layer);
  }
  const int last = given.net.layer_size() - 1;
  if (last < 0 || given.net.layer(last).top_size() == 0) {
    return invalid_argument("net: its last layer has no top that scores could be made of");
  }
  given.top = given.net.layer(last).top(0);
  return given;
}

}  // namespace cafetiere
