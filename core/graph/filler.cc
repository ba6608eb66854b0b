// SPDX-License-Identifier: Apache-2.0
#include "core/graph/filler.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/random/bernoulli_distribution.hpp>
#include <boost/random/exponential_distribution.hpp>
#include <boost/random/normal_distribution.hpp>
#include <boost/random/uniform_real_distribution.hpp>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/elementary.h"
#include "core/model/nearest.h"

// Boost's generators call libm's exp, whose last bit may differ between machines; all later draws
// would then differ too.
namespace boost::random::detail {
template <>
float unit_normal_distribution<float>::f(float x) {
  return static_cast<float>(cafetiere::elementary::exp(-(x * x / 2)));
}
template <>
float unit_exponential_distribution<float>::f(float x) {
  return static_cast<float>(cafetiere::elementary::exp(-x));
}
}  // namespace boost::random::detail

namespace cafetiere {
namespace {

using caffe::FillerParameter;
using FillFn = Status (*)(const FillerParameter&, const Shape&, std::span<float>, Random&);

Status fill_constant(const FillerParameter& filler, const Shape&, std::span<float> out, Random&) {
  std::fill(out.begin(), out.end(), filler.value());
  return {};
}

Status fill_uniform(const FillerParameter& filler, const Shape&, std::span<float> out,
                    Random& rng) {
  if (!(filler.min() <= filler.max()) || !std::isfinite(filler.max() - filler.min())) {
    return invalid_argument(
        fmt::format("a uniform filler needs min <= max, both finite; it has min {} and max {}",
                    filler.min(), filler.max()));
  }
  rng.uniform(filler.min(), filler.max(), out);
  return {};
}

Status fill_gaussian(const FillerParameter& filler, const Shape& shape, std::span<float> out,
                     Random& rng) {
  if (!(filler.std() > 0)) {
    return invalid_argument(
        fmt::format("a gaussian filler needs std > 0; it has std {}", filler.std()));
  }
  rng.gaussian(filler.mean(), filler.std(), out);
  if (filler.sparse() == -1) return {};
  if (filler.sparse() < 0 || shape.axes() == 0 || filler.sparse() > shape[0]) {
    return invalid_argument(
        fmt::format("sparse {} of the gaussian filler must lie in [0, outputs] or be -1; the shape "
                    "is {}",
                    filler.sparse(), shape.str()));
  }
  std::vector<float> mask(out.size());
  rng.bernoulli(static_cast<float>(filler.sparse()) / static_cast<float>(shape[0]), mask);
  for (size_t i = 0; i < out.size(); ++i) out[i] *= mask[i];
  return {};
}

Status fill_unit_ball(const FillerParameter&, const Shape& shape, std::span<float> out,
                      Random& rng) {
  rng.uniform(0, 1, out);
  const size_t slice = static_cast<size_t>(shape.count(1));
  for (size_t begin = 0; begin < out.size(); begin += slice) {
    const std::span<float> part = out.subspan(begin, slice);
    float sum = 0;
    for (float x : part) sum += x;
    for (float& x : part) x /= sum;
  }
  return {};
}

/// The fan n of xavier and msra.
float fan(const FillerParameter& filler, const Shape& shape) {
  const int64_t count = shape.count();
  const auto fan_in = static_cast<float>(count / shape[0]);
  const auto fan_out = static_cast<float>(shape.axes() > 1 ? count / shape[1] : count);
  switch (filler.variance_norm()) {
    case FillerParameter::FAN_OUT:
      return fan_out;
    case FillerParameter::AVERAGE:
      return (fan_in + fan_out) / 2.0F;
    default:
      return fan_in;
  }
}

Status fill_xavier(const FillerParameter& filler, const Shape& shape, std::span<float> out,
                   Random& rng) {
  const float scale = std::sqrt(3.0F / fan(filler, shape));
  rng.uniform(-scale, scale, out);
  return {};
}

Status fill_msra(const FillerParameter& filler, const Shape& shape, std::span<float> out,
                 Random& rng) {
  rng.gaussian(0, std::sqrt(2.0F / fan(filler, shape)), out);
  return {};
}

Status fill_bilinear(const FillerParameter&, const Shape& shape, std::span<float> out, Random&) {
  if (shape.axes() != 4 || shape[2] != shape[3]) {
    return invalid_argument("a bilinear filler needs 4 axes and a square kernel; the shape is " +
                            shape.str());
  }
  const int64_t width = shape[3];
  const auto factor = static_cast<int64_t>(std::ceil(static_cast<double>(width) / 2));
  const auto centre =
      static_cast<float>(static_cast<double>(width - 1) / (2.0 * static_cast<double>(factor)));
  const auto weight = [&](int64_t position) {
    return 1 - std::fabs(static_cast<float>(position) / static_cast<float>(factor) - centre);
  };
  for (size_t i = 0; i < out.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    out[i] = weight(at % width) * weight(at / width % width);
  }
  return {};
}

struct Filler {
  std::string_view type;
  FillFn fill;
  bool by_axis;  // needs an axis 0: a scalar has no fan and no slices
};
constexpr std::array kFillers = std::to_array<Filler>({
    {"constant", fill_constant, false},
    {"uniform", fill_uniform, false},
    {"gaussian", fill_gaussian, false},
    {"positive_unitball", fill_unit_ball, true},
    {"xavier", fill_xavier, true},
    {"msra", fill_msra, true},
    {"bilinear", fill_bilinear, true},
});

Status unknown_filler(const std::string& type) {
  std::vector<std::string> names;
  for (const Filler& filler : kFillers) names.emplace_back(filler.type);
  return invalid_argument(fmt::format("Unknown filler name: {} (known: {}){}", type,
                                      fmt::join(names, ", "), did_you_mean(type, names)));
}

}  // namespace

void Random::uniform(float low, float high, std::span<float> out) {
  // The upper bound is made inclusive, as in Caffe; the random stream depends on it.
  const boost::random::uniform_real_distribution<float> distribution(
      low, std::nextafter(high, std::numeric_limits<float>::max()));
  for (float& x : out) x = distribution(engine_);
}

void Random::gaussian(float mean, float deviation, std::span<float> out) {
  boost::random::normal_distribution<float> distribution(mean, deviation);
  for (float& x : out) x = distribution(engine_);
}

void Random::bernoulli(float p, std::span<float> out) {
  const boost::random::bernoulli_distribution<float> distribution(p);
  for (float& x : out) x = distribution(engine_) ? 1.0F : 0.0F;
}

Status fill(const FillerParameter& filler, const Shape& shape, std::span<float> out, Random& rng) {
  const auto* entry = std::find_if(kFillers.begin(), kFillers.end(),
                                   [&](const Filler& f) { return f.type == filler.type(); });
  if (entry == kFillers.end()) return unknown_filler(filler.type());
  if (shape.count() == 0 || static_cast<int64_t>(out.size()) != shape.count()) {
    return invalid_argument(
        fmt::format("a filler cannot fill {} values of shape {}", out.size(), shape.str()));
  }
  if (filler.sparse() != -1 && entry->type != "gaussian") {
    return invalid_argument(
        fmt::format("sparse is for gaussian fillers only; this one is {}", entry->type));
  }
  if (entry->by_axis && shape.axes() == 0) {
    return invalid_argument(fmt::format("a {} filler needs at least one axis", entry->type));
  }
  return entry->fill(filler, shape, out, rng);
}

}  // namespace cafetiere
