// SPDX-License-Identifier: Apache-2.0
#include "core/data/image_distort.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace cafetiere {
namespace {

uint8_t saturated(float value) { return uint8_t(std::clamp(std::nearbyintf(value), 0.F, 255.F)); }

void adjust(Image* image, float factor, float add) {
  std::array<uint8_t, 256> table{};
  for (size_t i = 0; i < table.size(); ++i) table[i] = saturated(float(i) * factor + add);
  for (uint8_t& pixel : image->pixels) pixel = table[pixel];
}

using Triple = std::array<uint8_t, 3>;

/// Blue, green, red to hue (0 to 179), saturation, value.
Triple to_hsv(const uint8_t* p) {
  const int b = p[0], g = p[1], r = p[2];
  const int value = std::max({b, g, r}), range = value - std::min({b, g, r});
  if (range == 0) return {0, 0, uint8_t(value)};
  float hue = 0;
  const auto d = float(range);
  if (value == r) {
    hue = float(g - b) / d;
  } else if (value == g) {
    hue = 2 + float(b - r) / d;
  } else {
    hue = 4 + float(r - g) / d;
  }
  hue *= 30;
  if (hue < 0) hue += 180;
  uint8_t rounded = saturated(hue);
  if (rounded >= 180) rounded = uint8_t(rounded - 180);
  return {rounded, saturated(255 * d / float(value)), uint8_t(value)};
}

void to_bgr(const Triple& hsv, uint8_t* p) {
  const float s = float(hsv[1]) / 255, v = float(hsv[2]);
  float sixth = float(hsv[0] % 180) / 30;
  const int sector = int(sixth);
  sixth -= float(sector);
  const std::array<float, 4> level = {v, v * (1 - s), v * (1 - s * sixth),
                                      v * (1 - s * (1 - sixth))};
  constexpr int kOf[6][3] = {{1, 3, 0}, {1, 0, 2}, {3, 0, 1}, {0, 2, 1}, {0, 1, 3}, {2, 1, 0}};
  for (int c = 0; c < 3; ++c) p[c] = saturated(level[size_t(kOf[sector][c])]);
}

void shuffle_channels(Draws& draws, Image* image) {
  std::array<size_t, 3> order = {0, 1, 2};
  for (size_t left = 3; left > 1; --left)
    std::swap(order[left - 1], order[draws.below(uint32_t(left))]);
  for (size_t i = 0; i < image->pixels.size(); i += 3) {
    const Triple old = {image->pixels[i], image->pixels[i + 1], image->pixels[i + 2]};
    for (size_t c = 0; c < 3; ++c) image->pixels[i + c] = old[order[c]];
  }
}

}  // namespace

void change_hsv(Image* image, float hue, float saturation) {
  for (size_t i = 0; i + 2 < image->pixels.size(); i += 3) {
    Triple hsv = to_hsv(image->pixels.data() + i);
    hsv[0] = saturated(float(hsv[0]) + hue);
    hsv[1] = saturated(float(hsv[1]) * saturation);
    to_bgr(hsv, image->pixels.data() + i);
  }
}

Status check_distortion(const caffe::DistortionParameter& p) {
  if (p.brightness_delta() < 0 || p.hue_delta() < 0) {
    return invalid_argument("distort_param: brightness_delta and hue_delta must not be negative");
  }
  if (p.contrast_lower() < 0 || p.contrast_lower() > p.contrast_upper() ||
      p.saturation_lower() < 0 || p.saturation_lower() > p.saturation_upper()) {
    return invalid_argument(
        "distort_param: contrast and saturation lie between their lower and their upper bound; the "
        "lower must not be negative, nor above the upper");
  }
  return {};
}

void distort(const caffe::DistortionParameter& p, Draws& draws, Image* image) {
  const bool colours = image->channels == 3;
  const auto brightness = [&] {
    const bool on = draws.chance(p.brightness_prob());
    const float delta = draws.between(-p.brightness_delta(), p.brightness_delta());
    if (on) adjust(image, 1, delta);
  };
  const auto contrast = [&] {
    const bool on = draws.chance(p.contrast_prob());
    const float factor = draws.between(p.contrast_lower(), p.contrast_upper());
    if (on) adjust(image, factor, 0);
  };
  const auto saturation_and_hue = [&] {
    const bool deeper = draws.chance(p.saturation_prob()), turned = draws.chance(p.hue_prob());
    const float factor = draws.between(p.saturation_lower(), p.saturation_upper());
    const float delta = draws.between(-p.hue_delta(), p.hue_delta());
    if (colours && deeper) change_hsv(image, 0, factor);
    if (colours && turned) change_hsv(image, delta, 1);
  };
  brightness();
  const bool contrast_first = draws.chance(0.5F);
  if (contrast_first) contrast();
  saturation_and_hue();
  if (!contrast_first) contrast();
  const bool shuffled = draws.chance(p.random_order_prob());
  if (colours && shuffled) shuffle_channels(draws, image);
}

}  // namespace cafetiere
