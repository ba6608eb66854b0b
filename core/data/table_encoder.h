// SPDX-License-Identifier: Apache-2.0
// TableEncoder: encodes columns of a row as the numbers of a TableData top.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/status.h"
#include "core/data/row_schema.h"
#include "core/data/table_image.h"
#include "core/model/proto/caffe.pb.h"

namespace cafetiere {

/// The number of values per row that a column is encoded as.
int64_t encoded_size(const caffe::TableDataParameter::Column& column);

/// Immutable and thread-safe.
class TableEncoder {
 public:
  using Row = std::span<const std::byte>;

  /// Looks up columns by name. With `lenient`, for the labels of rows to predict, a column that the
  /// schema lacks, a value that is not a known class, flags and a weight read as 0. Otherwise no
  /// value may be missing in a top that is a target.
  static Result<TableEncoder> make(const caffe::TableDataParameter::TableTop& top,
                                   const RowSchema& schema, bool lenient);

  /// Numbers per row.
  int64_t size() const { return size_; }

  /// Writes size() numbers. The error names column and row: text where a number is needed, cells of
  /// the wrong size, infinite numbers, an unknown class.
  Status encode(const RowSchema& schema, Row row, float* out) const;

 private:
  struct TextHash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  using Places = std::unordered_map<std::string, int, TextHash, std::equal_to<>>;
  struct Binding {
    caffe::TableDataParameter::Column column;
    int place;  ///< in the schema; -1 if it is missing there
    std::shared_ptr<const Places> values;
    std::shared_ptr<const ImageEncoder> image;  ///< for an IMAGE
    int64_t size;
    bool lenient;
    bool required;  ///< a missing value is an error
    bool of_flags;  ///< a WEIGHT with values for each label of FLAGS
  };

  static int place_of(const Places& values, std::string_view text);
  Status encode_column(const Binding& binding, const Cell& cell, float* out) const;
  Status encode_numbers(const Binding& binding, const Cell& cell, float* out) const;
  /// The indices of a cell's first values, padded with 0.
  Status encode_values(const Binding& binding, const Cell& cell, float* out) const;
  Status encode_flags(const Binding& binding, const Cell& cell, float* out) const;
  Status encode_weight(const Binding& binding, const Cell& cell, float* out) const;
  Status encode_value(const Binding& binding, const Cell& cell, float* out) const;
  void encode_missing(const Binding& binding, float* out) const;

  std::vector<Binding> bindings_;
  int64_t size_ = 0;
};

}  // namespace cafetiere
