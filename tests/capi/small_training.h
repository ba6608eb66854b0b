// SPDX-License-Identifier: Apache-2.0
// A training of a few parameters through the C interface.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "cafetiere/c_api.h"
#include "tests/capi/handed.h"
#include "tests/data/rows.h"

namespace cafetiere {

inline constexpr const char* kSmallSolver =
    "base_lr: 0.01 momentum: 0.9 lr_policy: 'fixed' max_iter: 40 random_seed: 3";
inline constexpr const char* kSmallNet = R"(
  name: "small"
  layer { name: "rows" type: "MemoryData" top: "data" top: "label"
    memory_data_param { batch_size: 8 channels: 4 height: 1 width: 1 } }
  layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
    inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
  layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" })";
inline constexpr const char* kSmallSchema =
    R"({"columns": [{"name": "data", "type": "f32"}, {"name": "label", "type": "i32"}], "id": ""})";

/// 50 rows.
inline cft_rows* small_rows(int rank) {
  constexpr int64_t kCount = 50;
  RowBytes bytes;
  for (int i = 0; i < kCount; ++i) {
    bytes.add_all(std::vector<float>{float(i % 7), float(rank), float(i % 3), 1})
        .add<int32_t>(i % 3);
  }
  cft_rows* rows = nullptr;
  EXPECT_EQ(cft_rows_create(kSmallSchema, &rows), 0) << cft_last_error();
  EXPECT_EQ(cft_rows_append(rows, kCount, bytes.span().data(), bytes.span().size()), 0)
      << cft_last_error();
  return rows;
}

inline nlohmann::json small_options(int rank, int size, const std::string& sync) {
  return {
      {"solver", kSmallSolver}, {"net", kSmallNet}, {"sync", sync}, {"rank", rank}, {"size", size}};
}

/// Groups of ranks of this process that have met, over TCP. `before`: once they listen.
inline std::vector<cft_group*> small_groups(
    int size, const std::function<void(const std::vector<std::string>&)>& before = {}) {
  std::vector<cft_group*> groups(static_cast<size_t>(size));
  std::vector<std::string> addresses;
  for (int rank = 0; rank < size; ++rank) {
    const nlohmann::json options{{"rank", rank},
                                 {"size", size},
                                 {"secret", "sixteen bytes at least"},
                                 {"timeout_ms", 30000}};
    EXPECT_EQ(cft_group_create(options.dump().c_str(), &groups[size_t(rank)]), 0)
        << cft_last_error();
    addresses.push_back(handed_text(cft_group_address, groups[size_t(rank)]));
  }
  if (before) before(addresses);
  std::vector<std::thread> threads;
  for (cft_group* group : groups) {
    threads.emplace_back([&, group] {
      EXPECT_EQ(cft_group_connect(group, nlohmann::json(addresses).dump().c_str()), 0)
          << cft_last_error();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return groups;
}

}  // namespace cafetiere
