// SPDX-License-Identifier: Apache-2.0
// TableStatistics: the statistics of a table's columns needed to encode them as numbers.
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

/// How statistics determine an encoding.
struct EncodingRules {
  uint64_t most_one_hot = 8;     ///< a CATEGORY with at most this many values becomes ONE_HOT
  uint64_t most_values = 50000;  ///< maximum number of values listed for a CATEGORY, most frequent
                                 ///< first
  uint64_t least_count = 1;      ///< minimum number of occurrences of a listed value
  uint64_t most_in_cell = 256;   ///< maximum number of values read from a cell with several values
};

/// The weights of classes in a loss.
struct ClassWeights {
  bool balanced = false;                                  ///< all classes have equal total weight
  std::map<std::string, double, std::less<>> given = {};  ///< by class; others have 1
};

/// Means and deviations of numbers and the values of categories, for any part of a table. Parts are
/// added without rounding: the sum is equal for any partitioning of the same rows.
class TableStatistics {
 public:
  /// Maximum number of distinct values of a column; more are an error.
  static constexpr size_t kMostValues = 2'000'000;

  /// For the requested columns, of which name, kind and size are used. ONE_HOT is counted as
  /// CATEGORY. A CATEGORY of size 0 may have any number of values per cell: numbers, or texts each
  /// terminated by kTextEnd. For an IMAGE the shape is used too, if set: all images are resized to
  /// its height and width.
  static Result<TableStatistics> make(const RowSchema& schema,
                                      std::span<const caffe::TableDataParameter::Column> columns);

  /// Adds rows, encoded as in row_schema.h. Infinite numbers, cells of the wrong size and too many
  /// values are errors that name row and column.
  Status add(int64_t count, std::span<const std::byte> chunk);
  /// The same for rows of the same schema.
  Status add(const RowTable& rows);
  /// Adds the statistics of another part, from its bytes().
  Status merge(std::string_view bytes);
  /// The statistics in serialized form: equal for equal multisets of rows. An error if they have
  /// more than 2 GiB.
  Result<std::string> bytes() const;

  int64_t rows() const { return rows_; }
  /// The average number of occurrences of a value of column i; 0 if it has no values.
  double rows_of_value(size_t i) const;
  /// The encoding of column i. Numbers get mean 0 and variance 1, constants the scale 0. Values are
  /// listed by count, most frequent first, then by bytes; those of a CLASS by value: as numbers if
  /// all are numbers, else by bytes. A WEIGHT is scaled to a mean of 1. Errors: a CLASS of more than
  /// 20 numbers, some with fractions; a WEIGHT with only zeros; an IMAGE without images, or with
  /// images of different sizes that are not resized.
  Result<caffe::TableDataParameter::Column> encoding(size_t i, const EncodingRules& rules) const;
  /// The weights of the classes of column i, a CLASS, as a WEIGHT of that column, scaled so that
  /// the mean over all rows, each multiplied by the row's own weight, if any, is 1. Errors: a
  /// negative weight, a weight of an unknown class, all weights 0. For FLAGS, the weights are those
  /// of each label that is set, by its number, and the mean is over all labels.
  Result<caffe::TableDataParameter::Column> class_weights(size_t i,
                                                          const ClassWeights& weights) const;

 private:
  struct Numbers {
    uint64_t count = 0;
    ExactSum sum, squares;
  };
  struct Counted {
    caffe::TableDataParameter::Column request;
    int place = 0;  ///< index in the schema
    uint64_t missing = 0;
    uint64_t longest = 1;          ///< maximum number of values in a cell, for a CATEGORY of size 0
    std::vector<Numbers> numbers;  // for FLAGS: the weights of the rows where each flag is set
    std::map<std::string, uint64_t, std::less<>> values;
    std::map<std::string, ExactSum, std::less<>> weights;  // for a CLASS, if rows have weights
    std::optional<ImageStatistics> images;                 // for an IMAGE
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
  int weight_ = -1;  // the column of row weights; -1: none
  int64_t rows_ = 0;
};

}  // namespace cafetiere
