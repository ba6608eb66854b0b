// SPDX-License-Identifier: Apache-2.0
// Reshape: replaces the axes [axis, axis + num_axes) with shape.dim, where 0 copies the bottom's
// axis at that position and at most one -1 is inferred from the count.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/layers/reshaping.h"

namespace cafetiere {
namespace {

class Reshape : public ReshapingLayer {
 public:
  using ReshapingLayer::ReshapingLayer;

  Status shape(LayerShapes& s) const override {
    const Shape& b = s.bottoms[0];
    CFT_ASSIGN(const Range replaced, range(b));
    std::vector<int64_t> dims(b.dims().begin(), b.dims().begin() + replaced.begin);
    CFT_TRY(append_given(b, replaced.begin, dims));
    dims.insert(dims.end(), b.dims().begin() + replaced.end, b.dims().end());
    CFT_TRY(infer(b.count(), dims));
    s.tops[0] = Shape(std::move(dims));
    if (s.tops[0].count() == b.count()) return {};
    return invalid_argument(
        fmt::format("the top's shape {} does not have as many elements as the bottom's, {}",
                    s.tops[0].str(), b.str()));
  }

 private:
  struct Range {
    int begin, end;
  };

  /// The replaced axes. A negative axis counts from past the last one: -1 appends axes.
  Result<Range> range(const Shape& b) const {
    const caffe::ReshapeParameter& p = param().reshape_param();
    const int begin = p.axis() < 0 ? b.axes() + p.axis() + 1 : p.axis();
    const int end = p.num_axes() == -1 ? b.axes() : begin + p.num_axes();
    if (begin >= 0 && begin <= end && end <= b.axes()) return Range{begin, end};
    return invalid_argument(fmt::format("axis {} and num_axes {} do not fit the bottom's shape {}",
                                        p.axis(), p.num_axes(), b.str()));
  }

  /// Appends shape.dim with its zeros resolved.
  Status append_given(const Shape& b, int begin, std::vector<int64_t>& dims) const {
    const auto& given = param().reshape_param().shape().dim();
    for (int i = 0; i < given.size(); ++i) {
      int64_t dim = given[i];
      if (dim < -1) return invalid_argument(fmt::format("shape.dim {} is below -1", dim));
      if (dim == 0) {
        if (begin + i >= b.axes()) {
          return invalid_argument(
              fmt::format("shape.dim 0 copies axis {}, which the bottom's shape {} does not have",
                          begin + i, b.str()));
        }
        dim = b[begin + i];
      }
      dims.push_back(dim);
    }
    return {};
  }

  /// Replaces -1 with the remaining factor of `count`.
  static Status infer(int64_t count, std::vector<int64_t>& dims) {
    int64_t* unknown = nullptr;
    int64_t known = 1;
    for (int64_t& dim : dims) {
      if (dim != -1) {
        if (!__builtin_mul_overflow(known, dim, &known)) continue;
        return invalid_argument(
            fmt::format("the top's shape {} is too large", fmt::join(dims, " ")));
      }
      if (unknown) return invalid_argument("shape may have at most one dim of -1");
      unknown = &dim;
    }
    if (!unknown) return {};
    if (known == 0 || count % known != 0) {
      return invalid_argument(fmt::format(
          "dim -1 cannot be inferred: {} elements are not a multiple of {}", count, known));
    }
    *unknown = count / known;
    return {};
  }
};

}  // namespace

extern const LayerType layer_reshape{.name = "Reshape",
                                     .create = create_layer<Reshape>,
                                     .any_format = true,
                                     .rows_apart = ReshapingLayer::keeps_rows};

}  // namespace cafetiere
