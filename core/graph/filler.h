// SPDX-License-Identifier: Apache-2.0
// How parameters get their first values: Caffe's fillers with Caffe's random sequence.
#pragma once

#include <boost/random/mersenne_twister.hpp>
#include <cstdint>
#include <span>

#include "core/base/status.h"
#include "core/model/proto/caffe.pb.h"
#include "core/tensor/shape.h"

namespace cafetiere {

/// The one stream that a net's fillers draw from, in the order of layers and of their blobs. The
/// same seed gives the same weights as in Caffe (built with Boost 1.56 or later).
class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}

  /// The generator itself, for Boost's distributions.
  boost::random::mt19937& engine() { return engine_; }

  /// The next 32 bits; what Caffe seeds private generators (shuffles, transformers) with.
  uint32_t next() { return engine_(); }

  /// Uniform in [low, high], normal, and 1 with probability p else 0.
  void uniform(float low, float high, std::span<float> out);
  void gaussian(float mean, float deviation, std::span<float> out);
  void bernoulli(float p, std::span<float> out);

 private:
  boost::random::mt19937 engine_;
};

/// Fills a blob of `shape` (out.size() == shape.count()) as `filler` says. An error says which
/// value of the filler does not fit; the caller adds the layer's name.
Status fill(const caffe::FillerParameter& filler, const Shape& shape, std::span<float> out,
            Random& rng);

}  // namespace cafetiere
