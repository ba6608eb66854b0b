// SPDX-License-Identifier: Apache-2.0
// RowReader: converts an encoded row to the floats of a net's tops.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/data/image.h"
#include "core/data/mean_file.h"
#include "core/data/row_schema.h"
#include "core/data/table_encoder.h"
#include "core/data/transformer.h"
#include "core/model/proto/caffe.pb.h"
#include "core/tensor/shape.h"

namespace cafetiere {

/// A top of the data layer and the column that feeds it.
struct RowsInput {
  std::string top;
  std::string column;         ///< "" = none: the top reads as zeros
  Shape row_shape;            ///< of a row in its column, before cropping; {} = one value
  int64_t label_classes = 0;  ///< K > 0: values must be integers in [0, K)
  std::optional<caffe::TransformationParameter> transform;
  std::shared_ptr<const MeanImage> mean = nullptr;  ///< replaces transform's mean_file if that file
                                                    ///< is not available
  bool encoded = false;      ///< the column holds the bytes of image files: JPEG, PNG or WebP
  bool interleaved = false;  ///< pixels are stored height x width x channels
  bool transpose = false;    ///< the batch is the last axis of the top
  /// The top's columns, instead of `column`, and how their cells are encoded as numbers.
  std::optional<caffe::TableDataParameter::TableTop> table = std::nullopt;
  bool lenient = false;                                 ///< for `table`: its columns may be missing
  std::optional<int32_t> ignored_label = std::nullopt;  ///< valid beside the label_classes
};

/// Converts numbers of any type to float (a string is parsed as a number), checks their count and
/// labels, decodes images, applies transforms. Immutable and thread-safe.
class RowReader {
 public:
  using Row = std::span<const std::byte>;

  static Result<RowReader> make(const RowSchema& schema, const std::vector<RowsInput>& inputs,
                                bool train, uint64_t seed);

  /// The shapes of a row's tops, after cropping.
  std::vector<Shape> top_shapes() const;

  /// Writes a row as row `index` of each top's batch of `rows` rows; skips null tops. `scratch` is
  /// reused.
  Status read(Row row, const RowPosition& position, std::span<float* const> tops, int64_t index,
              int64_t rows, std::vector<float>& scratch) const;

  /// Checks a row for the number of values, labels, text that is not a number, NaN and infinity;
  /// for an encoded image only the format, since decoding is slow. The error names column, row and
  /// value.
  Status validate(Row row, std::vector<float>& scratch) const;

  /// Checks that each column has as many values as its top, and that each image file can be decoded
  /// and has, or is resized to, the net's input size. Skips columns of `table`, whose cells
  /// TableEncoder checks.
  Status check_form(Row row) const;

 private:
  struct Binding {
    RowsInput input;
    int column;
    int64_t values;  // per row
    std::optional<Transformer> transform;
    Shape out_shape;
    std::optional<TableEncoder> encoder;
  };
  RowReader() = default;
  Status bind(const RowsInput& input, bool train, uint64_t seed);
  Result<Cell> checked_cell(const Binding& binding, Row row) const;
  Result<std::span<const uint8_t>> encoded_image(const Binding& binding, Row row) const;
  Status read_table(const Binding& binding, Row row, float* out) const;
  Status check_classes(const Binding& binding, Row row, std::span<const float> values) const;
  Result<Image> image(const Binding& binding, Row row) const;
  Status read_plain(const Binding& binding, Row row, float* out) const;
  Status read_encoded(const Binding& binding, Row row, const RowPosition& position,
                      float* out) const;
  Status read_transformed(const Binding& binding, Row row, const RowPosition& position,
                          std::vector<float>& scratch, float* out) const;
  Status check_finite(const Binding& binding, Row row, const std::vector<float>& values) const;
  std::string where(const Binding& binding, Row row) const;

  RowSchema schema_;
  std::vector<Binding> bindings_;
};

}  // namespace cafetiere
