// SPDX-License-Identifier: Apache-2.0
// What the handles of nets and solvers hold that are run step by step.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cafetiere/c_api.h"
#include "core/train/net_solver.h"

namespace cafetiere::capi {

/// Who made the object; lives as long as anything that may call back.
using Host = std::shared_ptr<const cft_host>;

/// Tells a blob's memory and shape in a caller's struct, whose struct_size is set.
Status fill_blob(const BlobView& view, cft_blob* blob);

/// The error of a callback that failed.
Status host_error(const cft_host& host, const std::string& what);

/// Threads, seed, messages and Python layers for nets of this host.
EagerNetOptions eager_net_options(const Host& host, int threads, uint64_t seed);

/// Runs a layer through the host's callbacks.
Result<std::unique_ptr<Layer>> make_host_layer(const Host& host,
                                               const caffe::LayerParameter& param);

/// The number that the host gave a layer; 0 when it is none of a host.
int64_t host_layer_number(const Layer& layer);

}  // namespace cafetiere::capi

struct cft_memory {
  std::shared_ptr<float> data, diff;
};

struct cft_net {
  std::unique_ptr<cafetiere::EagerNet> owned;  ///< null when a solver owns it
  cafetiere::EagerNet* eager = nullptr;
  cafetiere::Logger log;
  /// What callers gave to MemoryData layers.
  std::map<std::string, std::unique_ptr<cafetiere::Source>> fed;
  bool in_solver = false;

  cafetiere::Net& net() const { return *eager->net; }
};

struct cft_solver {
  std::unique_ptr<cafetiere::NetSolver> solver;
  std::vector<std::unique_ptr<cft_net>> nets;  ///< the training net, then the test nets
};
