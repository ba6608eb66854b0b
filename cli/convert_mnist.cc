// SPDX-License-Identifier: Apache-2.0
#include "cli/convert_mnist.h"

#include <fmt/format.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "core/base/philox.h"
#include "core/model/proto/caffe.pb.h"

namespace cafetiere {
namespace {

constexpr uint32_t kImages = 0x803, kLabels = 0x801;  // an IDX file of bytes with 3 axes and with 1
constexpr uint32_t kLargestSide = 4096;

/// An IDX file: a magic number, the sizes of its axes, then bytes. zlib reads plain files as well.
class IdxFile {
 public:
  static Result<IdxFile> open(const std::string& path, uint32_t magic) {
    IdxFile idx(path, gzopen(path.c_str(), "rb"));
    if (!idx.file_) {
      return not_found(fmt::format("cannot open {}: {}", path, std::strerror(errno)));
    }
    CFT_ASSIGN(const uint32_t found, idx.number());
    if (found != magic) {
      return invalid_argument(
          fmt::format("{} starts with {:#x}, but an IDX file of {} starts with {:#x}; were images "
                      "and labels exchanged?",
                      path, found, magic == kImages ? "images" : "labels", magic));
    }
    for (uint32_t axis = 0; axis < (magic & 0xff); ++axis) {
      CFT_ASSIGN(const uint32_t size, idx.number());
      idx.sizes_.push_back(size);
    }
    return idx;
  }

  const std::vector<uint32_t>& sizes() const { return sizes_; }

  Status read(void* to, unsigned bytes) {
    if (gzread(file_.get(), to, bytes) == static_cast<int>(bytes)) return {};
    return io_error(fmt::format("{} is damaged or ends too early; fetch it again", path_));
  }

 private:
  struct Closer {
    void operator()(gzFile_s* file) const { gzclose(file); }
  };
  IdxFile(std::string path, gzFile file) : path_(std::move(path)), file_(file) {}

  /// Numbers are big-endian.
  Result<uint32_t> number() {
    unsigned char b[4];
    CFT_TRY(read(b, sizeof b));
    return uint32_t{b[0]} << 24 | uint32_t{b[1]} << 16 | uint32_t{b[2]} << 8 | b[3];
  }

  std::string path_;
  std::unique_ptr<gzFile_s, Closer> file_;
  std::vector<uint32_t> sizes_;
};

Status check_sizes(const IdxFile& images, const IdxFile& labels) {
  const uint32_t count = images.sizes()[0], height = images.sizes()[1], width = images.sizes()[2];
  if (count != labels.sizes()[0]) {
    return invalid_argument(
        fmt::format("there are {} images but {} labels; use files that belong "
                    "together",
                    count, labels.sizes()[0]));
  }
  if (height < 1 || width < 1 || height > kLargestSide || width > kLargestSide) {
    return invalid_argument(fmt::format("images of {} x {} pixels are not from 1 to {} a side",
                                        height, width, kLargestSide));
  }
  return {};
}

/// A file of images and that of their labels, read digit by digit.
struct Digits {
  IdxFile images, labels;

  static Result<Digits> open(const std::string& images, const std::string& labels) {
    CFT_ASSIGN(IdxFile pixels, IdxFile::open(images, kImages));
    CFT_ASSIGN(IdxFile classes, IdxFile::open(labels, kLabels));
    CFT_TRY(check_sizes(pixels, classes));
    return Digits{std::move(pixels), std::move(classes)};
  }

  int64_t count() const { return images.sizes()[0]; }
  unsigned bytes() const { return images.sizes()[1] * images.sizes()[2]; }
  Status next(char* pixels, char* label) {
    CFT_TRY(images.read(pixels, bytes()));
    return labels.read(label, 1);
  }

  /// A record without its values.
  caffe::Datum datum(int channels) const {
    caffe::Datum datum;
    datum.set_channels(channels);
    datum.set_height(static_cast<int32_t>(images.sizes()[1]));
    datum.set_width(static_cast<int32_t>(images.sizes()[2]));
    return datum;
  }
};

/// Writes record after record under the keys "00000000", "00000001", ...
class Numbered {
 public:
  explicit Numbered(DbWriter* db) : db_(db) {}
  Status put(const caffe::Datum& datum) {
    db_->put(fmt::format("{:08}", count_), datum.SerializeAsString());
    return ++count_ % kCommitEvery == 0 ? db_->commit() : Status();
  }

 private:
  DbWriter* db_;
  int64_t count_ = 0;
};

}  // namespace

Status convert_mnist(const std::string& images, const std::string& labels, const std::string& db,
                     DbBackend backend, const Logger& log) {
  CFT_ASSIGN(Digits digits, Digits::open(images, labels));
  CFT_ASSIGN(const std::unique_ptr<DbWriter> writer, create_db(db, backend));
  Numbered records(writer.get());
  caffe::Datum datum = digits.datum(1);
  datum.mutable_data()->resize(digits.bytes());
  for (int64_t i = 0; i < digits.count(); ++i) {
    char label = 0;
    CFT_TRY(digits.next(datum.mutable_data()->data(), &label));
    datum.set_label(static_cast<unsigned char>(label));
    CFT_TRY(records.put(datum));
  }
  CFT_TRY(writer->commit());
  log.info("Processed {} files.", digits.count());
  return {};
}

Status convert_mnist_pairs(const std::string& images, const std::string& labels,
                           const std::string& db, DbBackend backend, const Logger& log) {
  CFT_ASSIGN(Digits digits, Digits::open(images, labels));
  if (digits.count() == 0) return invalid_argument(images + ": there are no images to pair");
  CFT_ASSIGN(const std::unique_ptr<DbWriter> writer, create_db(db, backend));
  const size_t bytes = digits.bytes(), count = static_cast<size_t>(digits.count());
  std::string pixels, classes;
  for (size_t i = 0; i < count; ++i) {  // grows with what is there, not with what the header says
    pixels.resize((i + 1) * bytes);
    classes.push_back(0);
    CFT_TRY(digits.next(&pixels[i * bytes], &classes[i]));
  }
  const uint64_t key = Philox::key(1, "convert_mnist_pairs");
  Numbered records(writer.get());
  caffe::Datum datum = digits.datum(2);
  for (uint32_t i = 0; i < count; ++i) {
    const auto words = Philox::block(key, {i, 0, 0, 0});
    const size_t a = Philox::below(words[0], uint32_t(count));
    const size_t b = Philox::below(words[1], uint32_t(count));
    datum.set_data(pixels.substr(a * bytes, bytes) + pixels.substr(b * bytes, bytes));
    datum.set_label(classes[a] == classes[b] ? 1 : 0);
    CFT_TRY(records.put(datum));
  }
  CFT_TRY(writer->commit());
  log.info("Processed {} pairs.", count);
  return {};
}

}  // namespace cafetiere
