// SPDX-License-Identifier: Apache-2.0
// A LevelDB of which one file is the stranger's: all of its records, and what they are as images. The first
// byte says which file; in some forms the checksum that LevelDB asks for is made here, so that the bytes
// behind it are read.
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "core/data/datum.h"
#include "core/data/db.h"
#include "fuzz/targets.h"

namespace {

namespace fs = std::filesystem;
using Files = std::map<std::string, std::string>;

enum Form : unsigned char { kCurrent, kManifest, kLog, kTable, kRecordOfManifest, kRecordOfLog };

/// A folder that goes with its owner.
class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "cafetiere-fuzz-XXXXXX").string();
    if (!mkdtemp(name.data())) std::abort();
    path_ = name;
  }
  ~Folder() {
    std::error_code unseen;
    fs::remove_all(path_, unseen);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

Files read(const fs::path& folder) {
  Files files;
  for (const auto& file : fs::directory_iterator(folder)) {
    std::ifstream in(file.path(), std::ios::binary);
    files[file.path().filename().string()] = {std::istreambuf_iterator<char>(in), {}};
  }
  return files;
}

/// Two databases of the same records: in the log, and in a table.
struct Databases {
  Files of_log, of_table;

  Databases() {
    const Folder folder;
    const std::string path = (folder.path() / "db").string();
    {
      auto db = cafetiere::create_leveldb(path);
      if (!db.ok()) std::abort();
      caffe::Datum record;
      record.set_channels(1);
      record.set_height(2);
      record.set_width(2);
      record.set_data("abcd");
      for (const char* key : {"0", "1", "2"}) (*db)->put(key, record.SerializeAsString());
      if (!(*db)->commit().ok()) std::abort();
    }
    of_log = read(path);
    if (!cafetiere::open_leveldb(path).ok()) std::abort();  // which moves them into a table
    of_table = read(path);
  }
};

/// CRC-32C as LevelDB masks it.
uint32_t checksum(std::string_view bytes) {
  uint32_t crc = ~0U;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (0x82F63B78U & (0U - (crc & 1U)));
  }
  crc = ~crc;
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
}

/// The bytes as one whole record of a log or a manifest.
std::string record_of(std::string_view bytes) {
  const std::string body = std::string(1, '\1') + std::string(bytes.substr(0, 0x7000));
  const uint32_t crc = checksum(body);
  const size_t size = body.size() - 1;
  std::string record;
  for (int i = 0; i < 4; ++i) record.push_back(static_cast<char>(crc >> (8 * i)));
  record.push_back(static_cast<char>(size));
  record.push_back(static_cast<char>(size >> 8));
  return record + body;
}

/// The database with the stranger's bytes in one of its files.
Files with(Form form, std::string_view bytes) {
  static const Databases databases;
  Files files = form == kTable ? databases.of_table : databases.of_log;
  constexpr std::array kBegins{"CURRENT", "MANIFEST", "0", "0", "MANIFEST", "0"};
  const std::string_view end = form == kTable                         ? ".ldb"
                               : form == kLog || form == kRecordOfLog ? ".log"
                                                                      : "";
  for (auto& [name, contents] : files) {
    if (!name.starts_with(kBegins.at(form)) || !name.ends_with(end)) continue;
    contents = form >= kRecordOfManifest ? record_of(bytes) : std::string(bytes);
  }
  return files;
}

}  // namespace

void cafetiere::fuzz::leveldb(std::string_view bytes) {
  if (bytes.empty()) return;
  const Form form = Form(static_cast<unsigned char>(bytes[0]) % (kRecordOfLog + 1));
  const Folder folder;
  for (const auto& [name, contents] : with(form, bytes.substr(1))) {
    std::ofstream(folder.path() / name, std::ios::binary) << contents;
  }
  const auto db = open_leveldb(folder.path().string(), /*counted=*/false);
  if (!db.ok()) return;
  const auto cursor = (*db)->cursor();
  if (!cursor.ok()) return;
  std::vector<uint8_t> planes;
  for (Status at = (*cursor)->first(); at.ok() && (*cursor)->valid(); at = (*cursor)->next()) {
    caffe::Datum record;
    const std::string_view value = (*cursor)->value();
    if (record.ParseFromArray(value.data(), static_cast<int>(value.size()))) {
      (void)datum_pixels(record, ImageColor::kStored, planes);
    }
  }
}
