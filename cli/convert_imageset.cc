// SPDX-License-Identifier: Apache-2.0
// convert_imageset: image files from a list as a database for Caffe's Data layer.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <memory>
#include <numeric>
#include <vector>

#include "cli/command.h"
#include "cli/glog.h"
#include "core/base/philox.h"
#include "core/data/datum.h"
#include "core/data/db.h"
#include "core/data/image.h"
#include "core/data/image_list.h"
#include "core/data/order.h"
#include "core/model/file.h"

namespace cafetiere {
namespace {

struct ImagesetFlags {
  std::string root, list, db, backend = "lmdb", encode_type;
  bool gray = false, shuffle = false, check_size = false, encoded = false;
  int resize_width = 0, resize_height = 0;

  bool resizes() const { return resize_width > 0 && resize_height > 0; }
  ImageColor color() const { return gray ? ImageColor::kGray : ImageColor::kColor; }
};

/// The ending of a path in small letters, without the dot.
std::string ending_of(const std::string& path) {
  std::string ending = std::filesystem::path(path).extension();
  if (!ending.empty()) ending.erase(0, 1);
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return ending;
}

bool same_format(const std::string& a, const std::string& b) {
  const auto jpeg = [](const std::string& s) { return s == "jpg" || s == "jpeg"; };
  return a == b || (jpeg(a) && jpeg(b));
}

/// A record of encoded bytes: the file's own where nothing is to be changed.
Result<caffe::Datum> encoded_datum(const ImagesetFlags& flags, const std::string& path,
                                   const std::string& bytes, const Image& image) {
  const std::string ending = ending_of(path);
  const std::string format = flags.encode_type.empty() ? ending : flags.encode_type;
  caffe::Datum datum;
  if (image.channels == 3 && !flags.gray && !flags.resizes() && same_format(ending, format)) {
    datum.set_data(bytes);
  } else {
    CFT_ASSIGN(*datum.mutable_data(), encode_image(image, format));
  }
  datum.set_encoded(true);
  return datum;
}

Result<caffe::Datum> read_datum(const ImagesetFlags& flags, const ImageEntry& entry) {
  const std::string path = flags.root + entry.path;
  CFT_ASSIGN(const std::string bytes, read_file(path));
  CFT_ASSIGN(Image image, decode_image(bytes, flags.color()));
  if (flags.resizes()) image = resize_image(image, flags.resize_height, flags.resize_width);
  if (!flags.encoded) return make_datum(image, entry.label);
  CFT_ASSIGN(caffe::Datum datum, encoded_datum(flags, path, bytes, image));
  datum.set_label(entry.label);
  return datum;
}

Status convert(const ImagesetFlags& flags, const std::vector<ImageEntry>& entries, DbWriter& db,
               const Logger& log) {
  std::vector<uint32_t> order(entries.size());
  std::iota(order.begin(), order.end(), 0u);
  if (flags.shuffle) shuffle(order, Philox::key(1, "convert_imageset"), 0, 0);
  int64_t count = 0;
  size_t first_size = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    const ImageEntry& entry = entries[order[i]];
    const Result<caffe::Datum> datum = read_datum(flags, entry);
    if (!datum.ok()) {
      log.error("{}:{}: Could not open or find file {}: {}", flags.list, entry.line,
                flags.root + entry.path, datum.status().message());
      continue;
    }
    const size_t size = datum->data().size();
    if (first_size == 0) first_size = size;
    if (flags.check_size && size != first_size) {
      return invalid_argument(fmt::format(
          "{}:{}: Incorrect data field size {}, the first image has {}; set -resize_height and "
          "-resize_width",
          flags.list, entry.line, size, first_size));
    }
    db.put(fmt::format("{:08}_{}", i, entry.path), datum->SerializeAsString());
    if (++count % kCommitEvery == 0) {
      CFT_TRY(db.commit());
      log.info("Processed {} files.", count);
    }
  }
  if (count % kCommitEvery != 0) {
    CFT_TRY(db.commit());
    log.info("Processed {} files.", count);
  }
  if (count > 0) return {};
  return invalid_argument(flags.list + ": none of the images could be read; is ROOTFOLDER right?");
}

Status convert_imageset(ImagesetFlags flags) {
  Glog glog(stderr);
  const Logger log = glog.logger();
  if (!flags.encode_type.empty() && !flags.encoded) {
    log.info("encode_type specified, assuming encoded=true.");
    flags.encoded = true;
  }
  CFT_ASSIGN(const std::vector<ImageEntry> entries, read_image_list(flags.list));
  if (flags.shuffle) log.info("Shuffling data");
  log.info("A total of {} images.", entries.size());
  CFT_ASSIGN(const DbBackend backend, parse_db_backend(flags.backend));
  CFT_ASSIGN(const std::unique_ptr<DbWriter> db, create_db(flags.db, backend));
  return convert(flags, entries, *db, log);
}

}  // namespace

Action add_convert_imageset(CLI::App& app) {
  const auto flags = std::make_shared<ImagesetFlags>();
  app.add_option("ROOTFOLDER", flags->root, "prefix of the paths in the list, added unchanged")
      ->required();
  app.add_option("LISTFILE", flags->list, "text file with a line \"path label\" for each image")
      ->required();
  app.add_option("DB_NAME", flags->db, "the database to create")->required();
  app.add_flag("--gray,!--nogray", flags->gray, "convert the images to gray scale");
  app.add_flag("--shuffle,!--noshuffle", flags->shuffle, "write the images in random order");
  app.add_option("--backend", flags->backend, "lmdb (default) or leveldb")
      ->check(CLI::IsMember({"lmdb", "leveldb"}));
  app.add_option("--resize_width", flags->resize_width, "width to resize to; 0: do not resize")
      ->check(CLI::Range(0, 1 << 13));
  app.add_option("--resize_height", flags->resize_height, "height to resize to; 0: do not resize")
      ->check(CLI::Range(0, 1 << 13));
  app.add_flag("--check_size,!--nocheck_size", flags->check_size,
               "refuse images of different sizes");
  app.add_flag("--encoded,!--noencoded", flags->encoded,
               "store the images encoded (JPEG, PNG, WebP)");
  app.add_option("--encode_type", flags->encode_type,
                 "store the images encoded as png, jpg or jpeg");
  return [flags] { return convert_imageset(*flags); };
}

}  // namespace cafetiere
