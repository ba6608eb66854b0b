// SPDX-License-Identifier: Apache-2.0
// Initialisation of parameters: Caffe's fillers with Caffe's random sequence.
#pragma once

#include <boost/random/mersenne_twister.hpp>
#include <cstdint>
#include <span>

#include "core/base/status.h"
#include "core/model/proto/caffe.pb.h"
#include "core/tensor/shape.h"

namespace cafetiere {

/// The single random stream that a net's fillers draw from, in the order of layers and blobs. Equal
/// seeds give the same weights as in Caffe (built with Boost 1.56 or later).
class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}

  /// The underlying generator, for Boost's distributions.
  boost::random::mt19937& engine() { return engine_; }

  /// The next 32 bits; Caffe seeds private generators (shuffling, transformers) with it.
  uint32_t next() { return engine_(); }

  /// Fill `out` with values uniform in [low, high], with normal values, or with 1 with probability
  /// p, else 0.
  void uniform(float low, float high, std::span<float> out);
  void gaussian(float mean, float deviation, std::span<float> out);
  void bernoulli(float p, std::span<float> out);

 private:
  boost::random::mt19937 engine_;
};

/// Fills a blob of `shape` (out.size() == shape.count()) according to `filler`. An error names the
/// invalid field of the filler; the caller adds the layer's name.
Status fill(const caffe::FillerParameter& filler, const Shape& shape, std::span<float> out,
            Random& rng);

}  // namespace cafetiere
