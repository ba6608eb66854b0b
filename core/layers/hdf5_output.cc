// SPDX-License-Identifier: Apache-2.0
// HDF5Output: appends its bottoms, data and labels, to the datasets "data" and "label" of a file,
// batch by batch. No tops.
#include <fmt/format.h>

#include <mutex>

#include "core/device/row_major.h"
#include "core/device/run_error.h"
#include "core/graph/layer.h"
#include "core/model/hdf5_append.h"

namespace cafetiere {
namespace {

/// The file that all plans of a net write to, created when the first of them runs. A failure ends
/// the run and truncates the file, so that a partial file is never taken for a complete one.
class Output {
 public:
  explicit Output(std::string path) : path_(std::move(path)) {}

  Status append(const Shape& data, const float* values, const Shape& label, const float* labels) {
    const std::lock_guard lock(mutex_);
    if (!failed_.ok()) return failed_;
    failed_ = open();
    if (!failed_.ok()) return failed_;
    failed_ = file_->append("data", data, {values, size_t(data.count())});
    if (failed_.ok()) failed_ = file_->append("label", label, {labels, size_t(label.count())});
    if (failed_.ok()) return {};
    file_.reset();
    (void)Hdf5Appender::create(path_);  // report the first failure only
    return failed_;
  }

 private:
  Status open() {
    if (file_) return {};
    CFT_ASSIGN(file_, Hdf5Appender::create(path_));
    return {};
  }

  std::string path_;
  std::mutex mutex_;
  std::unique_ptr<Hdf5Appender> file_;  // guarded by mutex_
  Status failed_;                       // guarded by mutex_
};

class Hdf5Output : public Layer {
 public:
  explicit Hdf5Output(const caffe::LayerParameter& param)
      : Layer(param), output_(std::make_shared<Output>(param.hdf5_output_param().file_name())) {}

  Status shape(LayerShapes& s) const override {
    if (param().hdf5_output_param().file_name().empty()) {
      return invalid_argument("hdf5_output_param has no file_name; name the file to write");
    }
    for (const Shape& bottom : s.bottoms) {
      if (bottom.axes() < 1 || bottom.axes() > 4) {
        return invalid_argument("a bottom has the shape " + bottom.str() +
                                ", but 1 to 4 axes are written; flatten it first");
      }
    }
    if (s.bottoms[0][0] == s.bottoms[1][0]) return {};
    return invalid_argument(
        fmt::format("{} rows of data, but {} labels", s.bottoms[0][0], s.bottoms[1][0]));
  }

  Status forward(LoweringContext& plan) const override {
    const Shape data = four_axes(plan.bottom_shape(0)), label = four_axes(plan.bottom_shape(1));
    serial_step(plan.program, plan.step("write"), {plan.bottoms[0], plan.bottoms[1]}, {},
                [=, output = output_, where = "layer '" + param().name() + "'"](
                    const auto& in, const auto&, const RunContext& run) {
                  Status status = output->append(data, in[0], label, in[1]);
                  if (!status.ok()) run.error->report(std::move(status).with_context(where));
                });
    return {};
  }

  Status backward(LoweringContext&) const override { return {}; }

 private:
  /// Caffe's legacy shape of a blob: number, channels, height, width.
  static Shape four_axes(const Shape& shape) {
    std::vector<int64_t> dims = shape.dims();
    dims.resize(4, 1);
    return Shape(std::move(dims));
  }

  std::shared_ptr<Output> output_;
};

}  // namespace

extern const LayerType layer_hdf5_output{.name = "HDF5Output",
                                         .min_bottoms = 2,
                                         .max_bottoms = 2,
                                         .min_tops = 0,
                                         .max_tops = 0,
                                         .create = create_layer<Hdf5Output>};

}  // namespace cafetiere
