// SPDX-License-Identifier: Apache-2.0
// TableStatistics: what must be known of a table's columns to encode them as numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/data/exact_sum.h"
#include "core/data/row_table.h"
#include "core/data/table_image.h"
#include "core/model/proto/caffe.pb.h"

namespace cafetiere {

/// How statistics become an encoding.
struct EncodingRules {
  uint64_t most_one_hot = 8;  ///< a CATEGORY of so many values at most becomes ONE_HOT
  uint64_t most_values =
      50000;                 ///< the most frequent values of a CATEGORY; others are "none of those"
  uint64_t least_count = 1;  ///< occurrences of a value that is listed
  uint64_t most_in_cell = 256;  ///< values of a cell of several that are read, the first ones
};

/// What the rows of a class count in a loss.
struct ClassWeights {
  bool balanced = false;                             ///< all classes together as much as each other
  std::map<std::string, double, std::less<>> given;  ///< by class; others have 1
};

/// Means and deviations of numbers and the values of categories, of any part of a table. Parts are added
/// without rounding: the sum is the same for any partitioning of the same rows.
class TableStatistics {
 public:
  /// Different values of one column, beyond which it is refused.
  static constexpr size_t kMostValues = 2'000'000;

  /// Of the columns asked for, of which name, kind and size are read. ONE_HOT is counted as CATEGORY. A
  /// CATEGORY of size 0 has any number of values in a cell: numbers, or texts that each end with kTextEnd.
  /// Of an IMAGE the shape is read too, if it has one: all images are resized to its height and width.
  static Result<TableStatistics> make(const RowSchema& schema,
                                      std::span<const caffe::TableDataParameter::Column> columns);

  /// Counts rows, encoded as in row_schema.h. Infinite numbers, cells of another size and too many values
  /// are errors that name row and column.
  Status add(int64_t count, std::span<const std::byte> chunk);
  /// The same of rows of its schema.
  Status add(const RowTable& rows);
  /// Adds what bytes() of another part gave.
  Status merge(std::string_view bytes);
  /// The statistics as bytes: equal for equal multisets of rows.
  std::string bytes() const;

  int64_t rows() const { return rows_; }
  /// How often a value of column i occurs, on average; 0 if it has none.
  double rows_of_value(size_t i) const;
  /// The encoding of column i. Numbers get mean 0 and variance 1, a constant the scale 0. Values are listed
  /// by count, most frequent first, then by their bytes; those of a CLASS by value: as numbers where all
  /// are such, else as bytes.
  /// A WEIGHT is scaled to the mean 1; an error if all are 0. So is an IMAGE without images, or with images of
  /// several sizes that are not resized.
  Result<caffe::TableDataParameter::Column> encoding(size_t i, const EncodingRules& rules) const;
  /// What the rows of each class of column i, a CLASS, weigh, as a WEIGHT of that column: such that the
  /// mean over all rows, each times its own weight where there are any, is 1. Errors: a weight that is
  /// negative or of no class, all 0.
  /// Of FLAGS the weights are those of each label that holds, by its number, and the mean is over all labels.
  Result<caffe::TableDataParameter::Column> class_weights(size_t i,
                                                          const ClassWeights& weights) const;

 private:
  struct Numbers {
    uint64_t count = 0;
    ExactSum sum, squares;
  };
  struct Counted {
    caffe::TableDataParameter::Column request;
    int place = 0;  ///< in the schema
    uint64_t missing = 0;
    uint64_t longest = 1;          ///< values in a cell, of a CATEGORY of size 0
    std::vector<Numbers> numbers;  // of FLAGS: the weight of the rows where each holds
    std::map<std::string, uint64_t, std::less<>> values;
    std::map<std::string, ExactSum, std::less<>> weights;  // of a CLASS, if rows have any
    std::optional<ImageStatistics> images;                 // of an IMAGE
  };
  explicit TableStatistics(RowSchema schema) : schema_(std::move(schema)) {}

  Status add_cell(Counted& column, const Cell& cell, double weight);
  Status add_numbers(Counted& column, const Cell& cell);
  Status add_flags(Counted& column, const Cell& cell, double weight);
  Result<caffe::TableDataParameter::Column> flag_weights(const Counted& column,
                                                         const ClassWeights& weights) const;
  Status add_value(Counted& column, std::string_view value, uint64_t count);

  RowSchema schema_;
  std::vector<Counted> columns_;
  int weight_ = -1;  // the column of the rows' weights, if there is one
  int64_t rows_ = 0;
};

}  // namespace cafetiere
