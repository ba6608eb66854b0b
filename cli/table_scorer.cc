// SPDX-License-Identifier: Apache-2.0
#include "cli/table_scorer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace cafetiere {

nlohmann::json schema_of(const std::vector<Column>& columns) {
  nlohmann::json all = nlohmann::json::array();
  for (const Column& column : columns) {
    all.push_back({{"name", column.name}, {"type", column_type_name(column.type)}});
  }
  return {{"columns", all}, {"id", ""}};
}

Result<TableScorer> TableScorer::open(SavedTable model, int threads) {
  TableScorer scorer;
  scorer.model_ = std::move(model);
  const nlohmann::json options{{"net", scorer.model_.net},
                               {"schema", schema_of(scorer.model_.columns)},
                               {"outputs", {scorer.model_.output}},
                               {"weights", scorer.model_.weights},
                               {"threads", threads}};
  cft_predictor* made = nullptr;
  CFT_TRY(checked(cft_predictor_create(options.dump().c_str(), nullptr, 0, &made)));
  scorer.predictor_.reset(made);
  CFT_TRY(checked(cft_predictor_row_size(made, 0, &scorer.width_)));
  const size_t thresholds = scorer.model_.thresholds.size();
  if (thresholds > 0 && int64_t(thresholds) != scorer.width_) {
    return invalid_argument(fmt::format("the model has {} thresholds for {} classes or labels",
                                        thresholds, scorer.width_));
  }
  return scorer;
}

bool TableScorer::has_several_numbers() const {
  return model_.output == "prediction" && width_ > 1 && model_.quantiles.empty();
}

Result<std::vector<float>> TableScorer::score(int64_t rows,
                                              const std::vector<std::byte>& chunk) const {
  std::vector<float> values(size_t(rows) * size_t(width_));
  float* const out = values.data();
  CFT_TRY(checked(cft_predictor_run(predictor_.get(), rows, chunk.data(), chunk.size(), &out)));
  return values;
}

size_t TableScorer::best(std::span<const float> row) const {
  if (!model_.classes.empty()) {
    std::vector<double> shares(row.begin(), row.end());
    for (size_t i = 0; i < model_.thresholds.size(); ++i) {
      if (shares[i] > 0) shares[i] /= model_.thresholds[i];  // whose threshold is 0: infinite
    }
    return size_t(std::ranges::max_element(shares) - shares.begin());
  }
  const auto& shares = model_.quantiles;
  const auto nearest =
      std::ranges::min_element(shares, {}, [](double q) { return std::abs(q - 0.5); });
  return size_t(nearest - shares.begin());
}

std::vector<size_t> TableScorer::held(std::span<const float> row) const {
  std::vector<size_t> places;
  for (size_t i = 0; i < row.size(); ++i) {
    if (double(row[i]) > (model_.thresholds.empty() ? 0.5 : model_.thresholds[i])) {
      places.push_back(i);
    }
  }
  return places;
}

}  // namespace cafetiere
