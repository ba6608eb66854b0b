// SPDX-License-Identifier: Apache-2.0
// compute_image_mean: the mean image of a database, for mean_file of a transform_param.
#include <fmt/format.h>

#include <memory>
#include <vector>

#include "cli/command.h"
#include "cli/glog.h"
#include "core/data/datum.h"
#include "core/data/db.h"
#include "core/data/mean_file.h"

namespace cafetiere {
namespace {

constexpr int64_t kReportEvery = 10000;

struct MeanFlags {
  std::string input, output, backend = "lmdb";
};

/// Sums of pixels, in double precision: single precision would lose digits beyond 65,000 images.
struct Sum {
  Shape shape;
  std::vector<double> values;
  int64_t images = 0;

  Status add(const DatumPixels& pixels) {
    if (images++ == 0) {
      shape = pixels.shape;
      values.resize(static_cast<size_t>(shape.count()));
    }
    if (pixels.shape != shape) {
      return invalid_argument(fmt::format("Incorrect data field size {}, the first image has {}",
                                          pixels.shape.str(), shape.str()));
    }
    for (size_t i = 0; i < pixels.bytes.size(); ++i) values[i] += pixels.bytes[i];
    for (size_t i = 0; i < pixels.floats.size(); ++i) values[i] += double(pixels.floats[i]);
    return {};
  }

  MeanImage mean() const {
    MeanImage image{shape, {}};
    for (const double value : values) image.values.push_back(float(value / double(images)));
    return image;
  }
};

Status add_record(const DbCursor& cursor, std::vector<uint8_t>& planes, Sum* sum) {
  caffe::Datum datum;
  const std::string_view value = cursor.value();
  if (!datum.ParseFromArray(value.data(), static_cast<int>(value.size()))) {
    return invalid_argument("its value is not a Datum");
  }
  CFT_ASSIGN(const DatumPixels pixels, datum_pixels(datum, ImageColor::kStored, planes));
  return sum->add(pixels);
}

Result<Sum> add_all(const std::string& path, DbReader& db, const Logger& log) {
  Sum sum;
  std::vector<uint8_t> planes;
  CFT_ASSIGN(const std::unique_ptr<DbCursor> cursor, db.cursor());
  CFT_TRY(cursor->first());
  while (cursor->valid()) {
    CFT_TRY(add_record(*cursor, planes, &sum)
                .with_context(fmt::format("record \"{}\" of \"{}\"", cursor->key(), path)));
    if (sum.images % kReportEvery == 0) log.info("Processed {} files.", sum.images);
    CFT_TRY(cursor->next());
  }
  if (sum.images == 0) return invalid_argument(path + ": the database has no records");
  if (sum.images % kReportEvery != 0) log.info("Processed {} files.", sum.images);
  return sum;
}

Status compute_image_mean(const MeanFlags& flags) {
  Glog glog(stderr);
  const Logger log = glog.logger();
  CFT_ASSIGN(const DbBackend backend, parse_db_backend(flags.backend));
  CFT_ASSIGN(const std::unique_ptr<DbReader> db, open_db(flags.input, backend));
  log.info("Starting iteration");
  CFT_ASSIGN(const Sum sum, add_all(flags.input, *db, log));
  const MeanImage mean = sum.mean();
  if (!flags.output.empty()) {
    log.info("Write to {}", flags.output);
    CFT_TRY(write_mean_image(flags.output, mean));
  }
  log.info("Number of channels: {}", mean.shape[0]);
  const int64_t plane = mean.shape.count(1);
  for (int64_t c = 0; c < mean.shape[0]; ++c) {
    double total = 0;
    for (int64_t i = 0; i < plane; ++i) total += double(mean.values[size_t(c * plane + i)]);
    log.info("mean_value channel [{}]: {:g}", c, total / double(plane));
  }
  return {};
}

}  // namespace

Action add_compute_image_mean(CLI::App& app) {
  const auto flags = std::make_shared<MeanFlags>();
  app.add_option("INPUT_DB", flags->input, "the database")->required();
  app.add_option("OUTPUT_FILE", flags->output, "the .binaryproto file to write");
  app.add_option("--backend", flags->backend, "lmdb (default) or leveldb")
      ->check(CLI::IsMember({"lmdb", "leveldb"}));
  return [flags] { return compute_image_mean(*flags); };
}

}  // namespace cafetiere
