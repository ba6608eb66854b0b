// SPDX-License-Identifier: Apache-2.0
// Images on their way into a net, beside what decoding alone costs: JPEG files of 500 x 375 that look
// like photographs, drawn here, decoded by TurboJPEG into pixels, and read by the engine: decoded,
// resized to 256 x 256, cropped to 227, mirrored at random, the mean subtracted.
//
//   jpeg_bench [FILES [ROUNDS]]
//
// One thread; seconds of its CPU time, both sides in turns, file by file. Prints JSON: files a
// CPU-second of both, and the median over rounds of their ratio, with the least and the greatest.
#include <turbojpeg.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <nlohmann/json.hpp>
#include <random>

#include "core/data/image.h"
#include "core/data/row_reader.h"

namespace {

using namespace cafetiere;  // NOLINT: a program of this library

constexpr int kHeight = 375, kWidth = 500, kSize = 256, kCrop = 227;

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) + double(now.tv_nsec) * 1e-9;
}

/// Smooth colours, like those of a sky or a wall: values on a grid, interpolated.
class Field {
 public:
  Field(std::mt19937& random, int cells, float height) : cells_(cells) {
    for (int i = 0; i < (cells + 1) * (cells + 1); ++i) {
      values_.push_back(height * (float(random() >> 8) / float(1 << 24) - 0.5F));
    }
  }
  float at(float y, float x) const {
    const float v = y * float(cells_), h = x * float(cells_);
    const int row = std::min(int(v), cells_ - 1), column = std::min(int(h), cells_ - 1);
    const float* corner = &values_[size_t(row * (cells_ + 1) + column)];
    const auto mix = [&](const float* pair) {
      return pair[0] + (pair[1] - pair[0]) * (h - float(column));
    };
    const float upper = mix(corner), lower = mix(corner + cells_ + 1);
    return upper + (lower - upper) * (v - float(row));
  }

 private:
  int cells_;
  std::vector<float> values_;
};

/// A shaded ball: edges, of which photographs are full.
struct Ball {
  float y, x, radius, color[3];

  explicit Ball(std::mt19937& random) {
    const auto unit = [&] { return float(random() >> 8) / float(1 << 24); };
    y = unit(), x = unit(), radius = 0.03F + 0.2F * unit() * unit();
    for (float& c : color) c = 255 * unit();
  }
};

/// Colours, balls, texture in three sizes and the grain of a sensor.
Image photograph(uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<Field> colors, textures;
  for (int c = 0; c < 3; ++c) colors.emplace_back(random, 4, 200.F);
  for (int cells : {20, 60, 180}) textures.emplace_back(random, cells, 36.F);
  std::vector<Ball> balls;
  for (int i = 0; i < 25; ++i) balls.emplace_back(random);
  Image image{kHeight, kWidth, 3, {}};
  image.pixels.reserve(size_t(kHeight) * kWidth * 3);
  for (int row = 0; row < kHeight; ++row) {
    for (int column = 0; column < kWidth; ++column) {
      const float y = float(row) / kHeight, x = float(column) / kWidth;
      float light = float(random() % 13) - 6;
      for (const Field& texture : textures) light += texture.at(y, x);
      const Ball* front = nullptr;
      float shade = 0;
      for (const Ball& ball : balls) {
        const float far = std::hypot(y - ball.y, x - ball.x) / ball.radius;
        if (far < 1) front = &ball, shade = 1 - far * far;
      }
      for (size_t c = 0; c < 3; ++c) {
        const float base =
            front ? front->color[c] * (0.4F + 0.6F * shade) : 128 + colors[c].at(y, x);
        image.pixels.push_back(uint8_t(std::clamp(base + light, 0.F, 255.F)));
      }
    }
  }
  return image;
}

/// A row of one binary column.
std::vector<std::byte> row_of(const std::string& file) {
  const auto size = uint32_t(file.size());
  std::vector<std::byte> row(sizeof size + size);
  std::memcpy(row.data(), &size, sizeof size);
  std::memcpy(row.data() + sizeof size, file.data(), size);
  return row;
}

Result<RowReader> reader() {
  CFT_ASSIGN(const RowSchema schema,
             RowSchema::parse(R"({"columns": [{"name": "image", "type": "u8", "resize": true}]})"));
  RowsInput input;
  input.top = "data", input.column = "image", input.row_shape = {3, kSize, kSize};
  input.encoded = true;
  input.transform.emplace();
  input.transform->set_crop_size(kCrop);
  input.transform->set_mirror(true);
  for (float mean : {104.F, 117.F, 123.F}) input.transform->add_mean_value(mean);
  return RowReader::make(schema, {input}, true, 1);
}

/// Seconds of decoding each file with the library, and of reading its row.
Status round(const std::vector<std::string>& files, const RowReader& reader, double* library,
             double* engine) {
  const tjhandle turbo = tjInitDecompress();
  std::vector<uint8_t> pixels(size_t(kHeight) * kWidth * 3);
  std::vector<float> top(size_t(3 * kCrop * kCrop)), scratch;
  float* const tops[] = {top.data()};
  *library = *engine = 0;
  for (size_t i = 0; i < files.size(); ++i) {
    const std::vector<std::byte> row = row_of(files[i]);
    const double begun = cpu_seconds();
    const auto* bytes = reinterpret_cast<const unsigned char*>(files[i].data());
    if (tjDecompress2(turbo, bytes, files[i].size(), pixels.data(), kWidth, 0, kHeight, TJPF_BGR,
                      0)) {
      return internal_error(tjGetErrorStr2(turbo));
    }
    const double between = cpu_seconds();
    CFT_TRY(reader.read(row, {.row = int64_t(i)}, tops, 0, 1, scratch));
    *library += between - begun;
    *engine += cpu_seconds() - between;
  }
  tjDestroy(turbo);
  return {};
}

Status run(int files, int rounds) {
  std::vector<std::string> photographs;
  size_t bytes = 0;
  for (int i = 0; i < files; ++i) {
    CFT_ASSIGN(std::string file, encode_image(photograph(uint32_t(i)), "jpg"));
    bytes += file.size();
    photographs.push_back(std::move(file));
  }
  CFT_ASSIGN(const RowReader rows, reader());
  std::vector<double> ratios, decoded, read;
  for (int i = 0; i < rounds; ++i) {
    double library = 0, engine = 0;
    CFT_TRY(round(photographs, rows, &library, &engine));
    decoded.push_back(files / library);
    read.push_back(files / engine);
    ratios.push_back(library / engine);
  }
  for (auto* list : {&ratios, &decoded, &read}) std::sort(list->begin(), list->end());
  const size_t middle = ratios.size() / 2;
  const nlohmann::json json{{"files", files},
                            {"bytes_per_file", bytes / size_t(files)},
                            {"decoded_per_cpu_s", decoded[middle]},
                            {"read_per_cpu_s", read[middle]},
                            {"ratio", ratios[middle]},
                            {"ratio_least", ratios.front()},
                            {"ratio_greatest", ratios.back()}};
  std::printf("%s\n", json.dump().c_str());
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const int files = argc > 1 ? std::atoi(argv[1]) : 1000,
            rounds = argc > 2 ? std::atoi(argv[2]) : 5;
  if (files < 1 || rounds < 1) {
    std::fprintf(stderr, "usage: jpeg_bench [FILES [ROUNDS]]\n");
    return 2;
  }
  const Status status = run(files, rounds);
  if (!status.ok()) std::fprintf(stderr, "jpeg_bench: %s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}
