// SPDX-License-Identifier: Apache-2.0
#include "core/data/image_resample.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/base/elementary.h"

namespace cafetiere {
namespace {

using Mode = caffe::ResizeParameter::InterpMode;

/// The pixels along an axis that a result is computed from, with their weights.
struct Taps {
  std::vector<int> at;
  std::vector<double> weight;
};

double sine(double x) { return elementary::cos(x - std::numbers::pi / 2); }

/// The weight of a pixel `d` pixels away: cubic convolution with a = -0.75, and the Lanczos window
/// of 4.
double cubic(double d) {
  constexpr double a = -0.75;
  d = std::fabs(d);
  if (d < 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}
double lanczos4(double d) {
  if (std::fabs(d) < 1e-9) return 1;
  if (std::fabs(d) >= 4) return 0;
  const double x = std::numbers::pi * d;
  return 4 * sine(x) * sine(x / 4) / (x * x);
}

/// `reach` pixels on each side of the result's position in the image; border pixels are repeated.
template <class Weight>
Taps around(double place, int reach, int size, Weight weight) {
  Taps taps;
  const int first = int(std::floor(place)) - reach + 1;
  double sum = 0;
  for (int i = first; i < first + 2 * reach; ++i) {
    taps.at.push_back(std::clamp(i, 0, size - 1));
    taps.weight.push_back(weight(place - i));
    sum += taps.weight.back();
  }
  for (double& w : taps.weight) w /= sum;
  return taps;
}

/// The pixels under a result, weighted by the fraction of it that they cover.
Taps under(int result, double scale, int size) {
  Taps taps;
  const double begin = result * scale, end = std::min(begin + scale, double(size));
  for (int i = int(std::floor(begin)); i < size && i < end; ++i) {
    const double part = std::min(end, i + 1.) - std::max(begin, double(i));
    if (part < 1e-9) continue;
    taps.at.push_back(i);
    taps.weight.push_back(part / (end - begin));
  }
  return taps;
}

/// AREA when enlarging: interpolates only near the border between two pixels, as OpenCV does.
Taps area_enlarged(int result, double scale, int size) {
  const int first = int(std::floor(result * scale));
  double part = (result + 1) - (first + 1) / scale;
  part = part <= 0 ? 0 : part - std::floor(part);
  return {{std::min(first, size - 1), std::min(first + 1, size - 1)}, {1 - part, part}};
}

std::vector<Taps> make_taps(int from, int to, Mode mode, bool shrinks) {
  const double scale = double(from) / to;
  std::vector<Taps> taps;
  for (int i = 0; i < to; ++i) {
    const double place = (i + 0.5) * scale - 0.5;
    switch (mode) {
      case caffe::ResizeParameter::AREA:
        taps.push_back(shrinks ? under(i, scale, from) : area_enlarged(i, scale, from));
        break;
      case caffe::ResizeParameter::CUBIC:
        taps.push_back(around(place, 2, from, cubic));
        break;
      case caffe::ResizeParameter::LANCZOS4:
        taps.push_back(around(place, 4, from, lanczos4));
        break;
      default:
        taps.push_back({{std::min(int(i * scale), from - 1)}, {1}});
    }
  }
  return taps;
}

uint8_t byte_of(double value) { return uint8_t(std::clamp(std::nearbyint(value), 0., 255.)); }

}  // namespace

Image resample(const Image& image, int height, int width, Mode mode) {
  if (mode == caffe::ResizeParameter::LINEAR) return resize_image(image, height, width);
  if (image.height == height && image.width == width) return image;
  const bool shrinks = height <= image.height && width <= image.width;
  const auto columns = make_taps(image.width, width, mode, shrinks);
  const auto rows = make_taps(image.height, height, mode, shrinks);
  const auto channels = size_t(image.channels), wide = size_t(width) * channels;
  std::vector<double> narrow(size_t(image.height) * wide);
  for (size_t y = 0; y < size_t(image.height); ++y) {
    const uint8_t* row = image.pixels.data() + y * size_t(image.width) * channels;
    double* to = narrow.data() + y * wide;
    for (const Taps& taps : columns) {
      for (size_t c = 0; c < channels; ++c, ++to) {
        double sum = 0;
        for (size_t k = 0; k < taps.at.size(); ++k) {
          sum += taps.weight[k] * row[size_t(taps.at[k]) * channels + c];
        }
        *to = sum;
      }
    }
  }
  Image out{height, width, image.channels, std::vector<uint8_t>(size_t(height) * wide)};
  uint8_t* to = out.pixels.data();
  for (const Taps& taps : rows) {
    for (size_t x = 0; x < wide; ++x, ++to) {
      double sum = 0;
      for (size_t k = 0; k < taps.at.size(); ++k) {
        sum += taps.weight[k] * narrow[size_t(taps.at[k]) * wide + x];
      }
      *to = byte_of(sum);
    }
  }
  return out;
}

Image part_of(const Image& image, int top, int left, int height, int width) {
  const auto channels = size_t(image.channels), row = size_t(width) * channels;
  Image part{height, width, image.channels, {}};
  part.pixels.reserve(size_t(height) * row);
  for (int y = top; y < top + height; ++y) {
    const size_t at = (size_t(y) * size_t(image.width) + size_t(left)) * channels;
    part.pixels.insert(part.pixels.end(), image.pixels.begin() + int64_t(at),
                       image.pixels.begin() + int64_t(at + row));
  }
  return part;
}

void mirror(Image* image) {
  const auto channels = size_t(image->channels), wide = size_t(image->width);
  for (size_t y = 0; y < size_t(image->height); ++y) {
    uint8_t* line = image->pixels.data() + y * wide * channels;
    for (size_t l = 0, r = wide - 1; l < r; ++l, --r) {
      std::swap_ranges(line + l * channels, line + (l + 1) * channels, line + r * channels);
    }
  }
}

Result<Resizer> Resizer::make(const caffe::ResizeParameter& p) {
  if (p.height() < 1 || p.width() < 1 ||
      int64_t{p.height()} * int64_t{p.width()} > kMaxImagePixels) {
    return invalid_argument(
        fmt::format("resize_param: height {} and width {} must be above 0, and their product at "
                    "most {}",
                    p.height(), p.width(), kMaxImagePixels));
  }
  if (p.resize_mode() == caffe::ResizeParameter::FIT_SMALL_SIZE) {
    return invalid_argument(
        "resize_param: FIT_SMALL_SIZE makes images of several sizes, but a batch has one; use WARP "
        "or FIT_LARGE_SIZE_AND_PAD");
  }
  Resizer r;
  r.height_ = int(p.height()), r.width_ = int(p.width());
  r.fits_ = p.resize_mode() == caffe::ResizeParameter::FIT_LARGE_SIZE_AND_PAD;
  r.pad_mode_ = p.pad_mode();
  r.pad_values_.assign(p.pad_value().begin(), p.pad_value().end());
  for (const int mode : p.interp_mode()) r.modes_.push_back(Mode(mode));
  return r;
}

Image Resizer::apply(const Image& image, Draws& draws, std::vector<Box>* objects) const {
  Mode mode = caffe::ResizeParameter::LINEAR;
  if (!modes_.empty()) mode = modes_[draws.below(uint32_t(modes_.size()))];
  if (!fits_) return resample(image, height_, width_, mode);
  const double ratio = double(image.width) / image.height;
  int h = height_, w = width_;
  if (double(w) / h < ratio) {
    h = std::max(1, int(w / ratio));
  } else {
    w = std::max(1, int(h * ratio));
  }
  const int top = (height_ - h) / 2, left = (width_ - w) / 2;
  for (Box& b : *objects) {
    const auto x = [&](float v) { return (v * float(w) + float(left)) / float(width_); };
    const auto y = [&](float v) { return (v * float(h) + float(top)) / float(height_); };
    b = {x(b.x1), y(b.y1), x(b.x2), y(b.y2)};
  }
  return pad(resample(image, h, w, mode), top, left);
}

Image Resizer::pad(const Image& image, int top, int left) const {
  const auto channels = size_t(image.channels);
  Image out{height_, width_, image.channels, {}};
  out.pixels.reserve(size_t(height_) * size_t(width_) * channels);
  const bool mirrored = pad_mode_ == caffe::ResizeParameter::MIRRORED;
  const auto inside = [mirrored](int i, int size) {
    if (mirrored && size > 1) {
      while (i < 0 || i >= size) i = i < 0 ? -i : 2 * (size - 1) - i;
    }
    return std::clamp(i, 0, size - 1);
  };
  const auto value = [&](size_t c) {
    if (pad_values_.empty()) return uint8_t(0);
    return byte_of(pad_values_[std::min(c, pad_values_.size() - 1)]);
  };
  for (int y = 0; y < height_; ++y) {
    const int row = y - top;
    for (int x = 0; x < width_; ++x) {
      const int column = x - left;
      const bool there = row >= 0 && row < image.height && column >= 0 && column < image.width;
      const size_t at = (size_t(inside(row, image.height)) * size_t(image.width) +
                         size_t(inside(column, image.width))) *
                        channels;
      const bool constant = !there && pad_mode_ == caffe::ResizeParameter::CONSTANT;
      for (size_t c = 0; c < channels; ++c) {
        out.pixels.push_back(constant ? value(c) : image.pixels[at + c]);
      }
    }
  }
  return out;
}

}  // namespace cafetiere
