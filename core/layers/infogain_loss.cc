// SPDX-License-Identifier: Apache-2.0
// InfogainLoss: the mean of -sum_l H[label][l] log softmax(x)[l]. Bottoms: scores, labels (one per
// position) and the matrix H, unless infogain_loss_param names a file (a binary BlobProto) that
// holds it; tops: the loss (a scalar) and, optionally, the probabilities. If H is the identity
// matrix, it equals SoftmaxWithLoss.
#include "core/device/vector_math.h"
#include "core/layers/softmax_loss.h"
#include "core/model/blob.h"
#include "core/model/file.h"

namespace cafetiere {
namespace {

class InfogainLoss : public SoftmaxLoss {
 public:
  using SoftmaxLoss::SoftmaxLoss;

  Status shape(LayerShapes& s) const override {
    if (param().loss_param().has_normalize()) {
      return invalid_argument("normalize is deprecated here; use normalization in loss_param");
    }
    CFT_ASSIGN(const ClassScores scores, this->scores(s.bottoms[0], s.bottoms[1]));
    if (s.bottoms.size() > 2) {
      CFT_TRY(check_square(s.bottoms[2], scores.classes, "the third bottom"));
    } else {
      CFT_TRY(read_matrix(scores.classes).status());
    }
    shape_tops(s);
    return {};
  }

  Status forward(LoweringContext& plan) const override {
    CFT_ASSIGN(const ClassScores s, scores(plan.bottom_shape(0), plan.bottom_shape(1)));
    CFT_ASSIGN(const TensorId matrix, this->matrix(plan, s.classes));
    forward_loss(plan, s, matrix, [=](const auto& in, int64_t i) {
      const float* gain = in[2] + s.class_of(in[1][i]) * s.classes;
      double sum = 0;
      for (int64_t c = 0; c < s.classes; ++c) {
        sum -= gain[c] * vec::log(std::max(in[0][s.at(i, c)], kLeastProbability));
      }
      return sum;
    });
    return {};
  }

  /// (softmax(x) * sum(H[label]) - H[label]) * weight / divisor; zero for ignored labels.
  Status backward(LoweringContext& plan) const override {
    if (!plan.propagate_down[0] || plan.top_diffs[0] == kNoTensor) return {};
    CFT_ASSIGN(const ClassScores s, scores(plan.bottom_shape(0), plan.bottom_shape(1)));
    backward_loss(plan, s, [=](const auto& in, int64_t i) {
      const float* gain = in[2] + s.class_of(in[1][i]) * s.classes;
      double sum = 0;
      for (int64_t c = 0; c < s.classes; ++c) sum += gain[c];
      return [prob = in[0], gain, sum = float(sum)](int64_t c, int64_t e) {
        return prob[e] * sum - gain[c];
      };
    });
    return {};
  }

 private:
  Result<ClassScores> scores(const Shape& bottom, const Shape& labels) const {
    return ClassScores::along(bottom, param().infogain_loss_param().axis(), labels);
  }

  static Status check_square(const Shape& shape, int64_t classes, const std::string& what) {
    if (shape.count() == classes * classes) return {};
    return invalid_argument(fmt::format("{} has shape {} but H must be {} x {}: one row a label",
                                        what, shape.str(), classes, classes));
  }

  /// Reads the matrix from the file that the layer names.
  Result<std::vector<float>> read_matrix(int64_t classes) const {
    const std::string& source = param().infogain_loss_param().source();
    if (source.empty()) {
      return invalid_argument("needs H: give it as third bottom or as infogain_loss_param source");
    }
    CFT_ASSIGN(const std::string bytes, read_file(source));
    caffe::BlobProto blob;
    if (!blob.ParseFromString(bytes)) {
      return invalid_argument("infogain_loss_param source " + source +
                              " is not a binary BlobProto");
    }
    CFT_ASSIGN(const Shape shape, blob_shape(blob));
    CFT_TRY(check_square(shape, classes, source));
    std::vector<float> values(size_t(shape.count()));
    CFT_TRY(blob_to_floats(blob, shape, values).with_context(source));
    return values;
  }

  Result<TensorId> matrix(LoweringContext& plan, int64_t classes) const {
    if (plan.bottoms.size() > 2) return TensorId(plan.bottoms[2]);
    CFT_ASSIGN(std::vector<float> values, read_matrix(classes));
    const TensorId id = plan.new_tensor("H", {classes, classes});
    serial_step(plan.program, plan.step("matrix"), {}, {id},
                [values = std::move(values)](const auto&, const auto& out, const RunContext&) {
                  std::ranges::copy(values, out[0]);
                });
    return TensorId(id);
  }
};

}  // namespace

extern const LayerType layer_infogain_loss{
    .name = "InfogainLoss",
    .min_bottoms = 2,
    .max_bottoms = 3,
    .max_tops = 2,
    .create = create_layer<InfogainLoss>,
    .loss = true,
    .no_label = true,
    .labels = [](const caffe::LayerParameter& param, const Shape& scores) {
      return labels_along(scores, param.infogain_loss_param().axis(), param.loss_param());
    }};

}  // namespace cafetiere
