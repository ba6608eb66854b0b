// SPDX-License-Identifier: Apache-2.0
// An LMDB file: all of its records, and what they are as images.
#include <vector>

#include "core/data/datum.h"
#include "core/data/lmdb_tree.h"
#include "fuzz/targets.h"

void cafetiere::fuzz::lmdb(std::string_view bytes) {
  const auto tree = LmdbTree::open(bytes, "file");
  if (!tree.ok()) return;
  LmdbCursor cursor(*tree);
  std::vector<uint8_t> planes;
  for (Status at = cursor.first(); at.ok() && cursor.valid(); at = cursor.next()) {
    caffe::Datum record;
    const std::string_view value = cursor.value();
    if (record.ParseFromArray(value.data(), static_cast<int>(value.size()))) {
      (void)datum_pixels(record, ImageColor::kStored, planes);
    }
  }
}
