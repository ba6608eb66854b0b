// SPDX-License-Identifier: Apache-2.0
// A Datum record of a database: its pixels, cropped and scaled. The first byte says how.
#include "core/data/datum.h"

#include "core/data/transformer.h"
#include "fuzz/targets.h"

void cafetiere::fuzz::datum(std::string_view bytes) {
  if (bytes.empty()) return;
  const auto how = static_cast<unsigned char>(bytes[0]);
  caffe::TransformationParameter param;
  param.set_crop_size(how & 7);
  param.set_mirror(how & 8);
  param.set_force_color(how & 16);
  param.set_force_gray(how & 32);
  if (how & 64) param.add_mean_value(100);
  caffe::Datum record;
  if (!record.ParseFromArray(bytes.data() + 1, static_cast<int>(bytes.size() - 1))) return;
  std::vector<uint8_t> planes;
  const auto pixels = datum_pixels(record, datum_color(param), planes);
  if (!pixels.ok()) return;
  const auto transformer = Transformer::make(param, /*train=*/true, pixels->shape, /*seed=*/1);
  if (!transformer.ok()) return;
  std::vector<float> out(static_cast<size_t>(transformer->out_shape().count()));
  if (pixels->bytes.empty()) {
    transformer->apply_floats(std::as_bytes(pixels->floats), {}, out.data());
  } else {
    transformer->apply(pixels->bytes, {}, out.data());
  }
}
