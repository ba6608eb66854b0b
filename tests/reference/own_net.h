// SPDX-License-Identifier: Apache-2.0
// A net of ours, run layer by layer through the C interface, as a script runs it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cafetiere/c_api.h"

namespace cafetiere {

/// Throws std::runtime_error with the library's text where something fails.
class OwnNet {
 public:
  /// Reads a prototxt; `phase` is "TRAIN" or "TEST".
  OwnNet(const std::string& path, const std::string& phase);
  ~OwnNet();
  OwnNet(const OwnNet&) = delete;
  OwnNet& operator=(const OwnNet&) = delete;

  /// Feeds the MemoryData layer "L" from rows that must outlive the net, one a label.
  void feed(std::span<const float> data, std::span<const float> labels);
  void forward();
  void backward();

  /// The names of the blobs that no layer reads.
  const std::vector<std::string>& outputs() const { return outputs_; }
  std::span<float> data(const std::string& blob) const;
  std::span<float> diff(const std::string& blob) const;
  std::span<float> param(int number) const;
  std::span<float> param_diff(int number) const;

 private:
  cft_blob blob(const std::string& name) const;
  cft_net* net_ = nullptr;
  std::vector<std::string> blobs_, outputs_;
  int layers_ = 0;
};

}  // namespace cafetiere
