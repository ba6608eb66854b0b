// SPDX-License-Identifier: Apache-2.0
// TableEncoder: the numbers of one top of TableData, made of the columns of a row.
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

/// Numbers that a column gives a row: what its kind says.
int64_t encoded_size(const caffe::TableDataParameter::Column& column);

/// Immutable: any thread may use it.
class TableEncoder {
 public:
  using Row = std::span<const std::byte>;

  /// Columns are looked up by name. With `lenient`, for labels of rows to predict, one that the schema
  /// has not, a value that is no class, flags and a weight read as 0. Otherwise nothing may be missing in a top that
  /// is a target.
  static Result<TableEncoder> make(const caffe::TableDataParameter::TableTop& top,
                                   const RowSchema& schema, bool lenient);

  /// Numbers a row.
  int64_t size() const { return size_; }

  /// Writes size() numbers. The error names column and row: text where a number is wanted, cells of another
  /// size, infinite numbers, a value that is no class.
  Status encode(const RowSchema& schema, Row row, float* out) const;

 private:
  struct TextHash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  using Places = std::unordered_map<std::string, int, TextHash, std::equal_to<>>;
  struct Binding {
    caffe::TableDataParameter::Column column;
    int place;  ///< in the schema, -1 if it is not there
    std::shared_ptr<const Places> values;
    std::shared_ptr<const ImageEncoder> image;  ///< of an IMAGE
    int64_t size;
    bool lenient;
    bool required;  ///< a missing value is an error
    bool of_flags;  ///< a WEIGHT of each label of FLAGS
  };

  Status encode_column(const Binding& binding, const Cell& cell, float* out) const;
  Status encode_numbers(const Binding& binding, const Cell& cell, float* out) const;
  /// The places of a cell's first values, and 0 where there are no more.
  Status encode_values(const Binding& binding, const Cell& cell, float* out) const;
  Status encode_flags(const Binding& binding, const Cell& cell, float* out) const;
  Status encode_weight(const Binding& binding, const Cell& cell, float* out) const;
  Status encode_value(const Binding& binding, const Cell& cell, float* out) const;
  void encode_missing(const Binding& binding, float* out) const;

  std::vector<Binding> bindings_;
  int64_t size_ = 0;
};

}  // namespace cafetiere
