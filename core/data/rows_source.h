// RowsSource: the batches of a table of rows.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/data/sampler.h"
#include "core/data/shard_store.h"
#include "core/data/source.h"
#include "core/data/transformer.h"

namespace cafetiere {

/// One top of the data layer and the column that feeds it.
struct RowsInput {
  std::string top;
  std::string column;
  Shape row_shape;  ///< of one row as the column holds it, before cropping; {} = one value
  int64_t label_classes = 0;  ///< K > 0: values must be whole numbers in [0, K)
  std::optional<caffe::TransformationParameter> transform;
};

/// Turns rows of a ShardStore into batches: the sampler's rows, columns as floats, transformed.
/// Numbers of any type are converted; a string column is read as a number.
class RowsSource : public Source {
 public:
  /// `batch`: rows a shard and sub-step; `train` decides where transforms crop.
  static Result<std::unique_ptr<RowsSource>> make(std::shared_ptr<const ShardStore> store,
                                                  const std::vector<RowsInput>& inputs,
                                                  int64_t batch, bool train, uint64_t seed);

  std::vector<Shape> top_shapes() const override;
  int64_t rows(int shard, int64_t sub_step) const override {
    return sampler_.rows(shard, sub_step);
  }
  Status fill(int shard, int64_t sub_step, std::span<float* const> tops) override;

  /// Epochs, and the rows of all shards.
  const Sampler& sampler() const { return sampler_; }

  /// Checks every row of the owned shards: number of values, labels, text that is no number, NaN
  /// and infinity. The error names column, row and value.
  Status validate() const;

 private:
  struct Binding {
    RowsInput input;
    int column;
    int64_t values;  // a row
    std::optional<Transformer> transform;
    Shape out_shape;
  };
  using Row = std::span<const std::byte>;

  RowsSource(std::shared_ptr<const ShardStore> store, Sampler sampler)
      : store_(std::move(store)), sampler_(std::move(sampler)) {}
  Status bind(const RowsInput& input, bool train, uint64_t seed);
  Result<Cell> checked_cell(const Binding& binding, Row row) const;
  Status read(const Binding& binding, Row row, float* out) const;
  Status read_transformed(const Binding& binding, Row row, const RowPosition& position,
                          std::vector<float>& scratch, float* out) const;
  Status check_finite(const Binding& binding, Row row, const std::vector<float>& values) const;
  std::string where(const Binding& binding, Row row) const;

  std::shared_ptr<const ShardStore> store_;
  Sampler sampler_;
  std::vector<Binding> bindings_;
};

}  // namespace cafetiere
