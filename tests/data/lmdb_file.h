// SPDX-License-Identifier: Apache-2.0
// LMDB files as liblmdb writes them.
#pragma once

#include <gtest/gtest.h>
#include <lmdb.h>

#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/model/file.h"
#include "tests/support/temp_dir.h"

namespace cafetiere {

using Records = std::vector<std::pair<std::string, std::string>>;

/// The file that liblmdb writes in one transaction; `flags` are those of the main database.
inline std::string make_file(const std::function<void(MDB_txn* txn, MDB_dbi db)>& fill,
                             unsigned flags = 0) {
  const TempDir dir;
  MDB_env* env = nullptr;
  MDB_txn* txn = nullptr;
  MDB_dbi db;
  EXPECT_EQ(mdb_env_create(&env), 0);
  EXPECT_EQ(mdb_env_set_mapsize(env, 64 << 20), 0);
  EXPECT_EQ(mdb_env_set_maxdbs(env, 2), 0);
  EXPECT_EQ(mdb_env_open(env, dir.path("").c_str(), 0, 0600), 0);
  EXPECT_EQ(mdb_txn_begin(env, nullptr, 0, &txn), 0);
  EXPECT_EQ(mdb_dbi_open(txn, nullptr, flags, &db), 0);
  fill(txn, db);
  EXPECT_EQ(mdb_txn_commit(txn), 0);
  mdb_env_close(env);
  return *read_file(dir.path("data.mdb"));
}

inline void put(MDB_txn* txn, MDB_dbi db, const std::string& key, const std::string& value) {
  MDB_val k{key.size(), const_cast<char*>(key.data())};
  MDB_val v{value.size(), const_cast<char*>(value.data())};
  EXPECT_EQ(mdb_put(txn, db, &k, &v, 0), 0);
}

inline std::string file_of(const Records& records) {
  return make_file([&](MDB_txn* txn, MDB_dbi db) {
    for (const auto& [key, value] : records) put(txn, db, key, value);
  });
}

/// Keys in order, values from none to some pages.
inline Records some_records(int count) {
  std::mt19937 random(1);
  Records records;
  for (int i = 0; i < count; ++i) {
    const size_t size = i % 50 == 7 ? random() % 20'000 : random() % 300;
    records.emplace_back("key" + std::to_string(1'000'000 + i),
                         std::string(size, static_cast<char>(i)));
  }
  return records;
}

}  // namespace cafetiere
