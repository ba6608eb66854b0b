// SPDX-License-Identifier: Apache-2.0
// The nets on which layers are compared with the reference: for each type a function that draws one.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "core/model/proto/caffe.pb.h"

namespace cafetiere {

/// Draws from a fixed seed.
class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed) {}
  /// An integer in [from, to].
  int integer(int from, int to) { return from + int(random_() % uint64_t(to - from + 1)); }
  bool coin() { return integer(0, 1) == 1; }
  /// A number in [from, to), a multiple of a 64th so that text says all of it.
  double real(double from, double to) { return from + (to - from) * integer(0, 63) / 64; }
  template <class T>
  T pick(std::initializer_list<T> of) {
    return of.begin()[integer(0, int(of.size()) - 1)];
  }
  /// Values of an input, which are of the kind that its name contains: "label" are integers in
  /// [0, classes), "flag" 0 or 1, "prob" lie in (0.05, 1], all others are normal.
  std::vector<float> values(const std::string& name, size_t count, int classes);

 private:
  std::mt19937_64 random_;
};

/// A net of Input layers and the layer "L". The gradients of inputs that begin with "x" are compared.
struct ParityNet {
  std::string text;
  int classes = 1;
  caffe::Phase phase = caffe::TRAIN;
  bool backward = true;
};

/// A learned blob: for a bottom whose gradient is asked for where those of others cannot be. It comes
/// out as the gradient of parameter 0.
std::string learned(const std::string& top, const std::vector<int64_t>& dims);

/// A layer type and what draws nets for it.
struct ParityCase {
  const char* type;
  ParityNet (*draw)(Draw&);
  int draws = 6;
};

std::vector<ParityCase> vision_cases();
std::vector<ParityCase> common_cases();
std::vector<ParityCase> element_cases();
std::vector<ParityCase> loss_cases();

}  // namespace cafetiere
