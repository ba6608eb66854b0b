// SPDX-License-Identifier: Apache-2.0
// convert_cifar_data: CIFAR-10's binary batches as two databases for Caffe's Data layer.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>

#include "cli/command.h"
#include "cli/glog.h"
#include "core/data/db.h"
#include "core/model/file.h"
#include "core/model/proto/caffe.pb.h"

namespace cafetiere {
namespace {

constexpr int kSide = 32, kChannels = 3, kBatches = 5;
constexpr size_t kImage = kSide * kSide * kChannels, kRecord = 1 + kImage;  // label, then planes
constexpr int kBatchImages = 10000;

struct CifarFlags {
  std::string input, output, backend;
};

/// Adds the records of a batch file with keys from `first` on.
Status add_batch(const std::string& path, int first, DbWriter& db) {
  CFT_ASSIGN(const std::string bytes, read_file(path));
  if (bytes.empty() || bytes.size() % kRecord != 0) {
    return invalid_argument(fmt::format(
        "{}: {} bytes are not a whole number of records of {}; use CIFAR-10's binary version", path,
        bytes.size(), kRecord));
  }
  caffe::Datum datum;
  datum.set_channels(kChannels);
  datum.set_height(kSide);
  datum.set_width(kSide);
  for (size_t i = 0; i < bytes.size() / kRecord; ++i) {
    datum.set_label(static_cast<unsigned char>(bytes[i * kRecord]));
    datum.set_data(bytes.substr(i * kRecord + 1, kImage));
    db.put(fmt::format("{:05}", first + static_cast<int>(i)), datum.SerializeAsString());
  }
  return db.commit();
}

Status convert_cifar(const CifarFlags& flags) {
  Glog glog(stderr);
  const Logger log = glog.logger();
  CFT_ASSIGN(const DbBackend backend, parse_db_backend(flags.backend));
  const std::filesystem::path input(flags.input), output(flags.output);
  log.info("Writing Training data");
  CFT_ASSIGN(const std::unique_ptr<DbWriter> train,
             create_db(output / ("cifar10_train_" + flags.backend), backend));
  for (int batch = 0; batch < kBatches; ++batch) {
    log.info("Training Batch {}", batch + 1);
    CFT_TRY(add_batch(input / fmt::format("data_batch_{}.bin", batch + 1), batch * kBatchImages,
                      *train));
  }
  log.info("Writing Testing data");
  CFT_ASSIGN(const std::unique_ptr<DbWriter> test,
             create_db(output / ("cifar10_test_" + flags.backend), backend));
  return add_batch(input / "test_batch.bin", 0, *test);
}

}  // namespace

Action add_convert_cifar(CLI::App& app) {
  const auto flags = std::make_shared<CifarFlags>();
  app.add_option("INPUT_FOLDER", flags->input,
                 "folder with data_batch_1.bin to data_batch_5.bin and test_batch.bin")
      ->required();
  app.add_option("OUTPUT_FOLDER", flags->output, "folder for cifar10_train_* and cifar10_test_*")
      ->required();
  app.add_option("DB_TYPE", flags->backend, "lmdb or leveldb")
      ->required()
      ->check(CLI::IsMember({"lmdb", "leveldb"}));
  return [flags] { return convert_cifar(*flags); };
}

}  // namespace cafetiere
