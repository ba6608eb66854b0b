// SPDX-License-Identifier: Apache-2.0
// InnerProduct: y = W x + b, where the axes from `axis` on form one vector of K inputs. Bottom
// (leading.., K..), top (leading.., num_output).
#include <fmt/format.h>

#include "core/graph/layer.h"

namespace cafetiere {
namespace {

class InnerProduct : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    const caffe::InnerProductParameter& p = param().inner_product_param();
    if (p.num_output() == 0) return invalid_argument("num_output must be above 0");
    CFT_ASSIGN(const int axis, s.bottoms[0].axis(p.axis()));
    const int64_t k = s.bottoms[0].count(axis), outputs = p.num_output();
    std::vector<int64_t> dims(s.bottoms[0].dims().begin(), s.bottoms[0].dims().begin() + axis);
    dims.push_back(outputs);
    s.tops[0] = Shape(std::move(dims));
    s.params.push_back({p.transpose() ? Shape{k, outputs} : Shape{outputs, k}, p.weight_filler()});
    if (p.bias_term()) s.params.push_back({Shape{outputs}, p.bias_filler()});
    return {};
  }

  Status forward(LoweringContext& plan) const override {
    CFT_ASSIGN(const InnerProductGeometry g, geometry(plan));
    const TensorId src = plan.program.reshaped(plan.bottoms[0], {g.n, g.k});
    const TensorId dst = plan.new_tensor("top", {g.n, g.outputs});
    plan.device.inner_product(plan.program, plan.step("forward"), g, src, plan.params[0],
                              plan.params.size() > 1 ? plan.params[1] : kNoTensor, dst,
                              plan.fuse_relu);
    plan.tops[0] = plan.program.reshaped(dst, plan.top_shapes[0]);
    return {};
  }

  Status backward(LoweringContext& plan) const override {
    CFT_ASSIGN(const InnerProductGeometry g, geometry(plan));
    const TensorId diff = plan.program.reshaped(plan.top_diffs[0], {g.n, g.outputs});
    if (plan.param_diffs.size() > 1 && plan.param_diffs[1].tensor != kNoTensor) {
      plan.device.channel_sums(plan.program, plan.step("bias gradient"), {.a = diff},
                               plan.param_diffs[1], {});
    }
    if (plan.param_diffs[0].tensor != kNoTensor) {
      const TensorId src = plan.program.reshaped(plan.bottoms[0], {g.n, g.k});
      plan.device.inner_product_backward_weights(plan.program, plan.step("weight gradient"), g, src,
                                                 diff, plan.param_diffs[0]);
    }
    if (!plan.propagate_down[0]) return {};
    const TensorId down = plan.new_tensor("diff", {g.n, g.k});
    plan.device.inner_product_backward_data(plan.program, plan.step("backward"), g, diff,
                                            plan.params[0], down);
    plan.bottom_diffs[0] = plan.program.reshaped(down, plan.bottom_shape(0));
    return {};
  }

 private:
  Result<InnerProductGeometry> geometry(const LoweringContext& plan) const {
    const caffe::InnerProductParameter& p = param().inner_product_param();
    const Shape& bottom = plan.bottom_shape(0);
    CFT_ASSIGN(const int axis, bottom.axis(p.axis()));
    const Shape& weights = plan.program.shape(plan.params[0]);
    const int64_t k = bottom.count(axis);
    if (weights.count() != k * int64_t(p.num_output())) {
      return invalid_argument(fmt::format("the input has {} values, the weights expect {}", k,
                                          weights.count() / p.num_output()));
    }
    return InnerProductGeometry{.n = bottom.count(0, axis),
                                .k = k,
                                .outputs = p.num_output(),
                                .transposed = p.transpose(),
                                .inner = axis > 1 ? bottom.count(1, axis) : 1};
  }
};

}  // namespace

extern const LayerType layer_inner_product{
    .name = "InnerProduct",
    .create = create_layer<InnerProduct>,
    .any_format = true,
    .applies_relu = true,
    .linear_in_channels =
        [](const caffe::LayerParameter& param) {
          const caffe::InnerProductParameter& p = param.inner_product_param();
          return p.axis() == 1 && !p.transpose();
        },
    .rows_apart =
        [](const caffe::LayerParameter& param, const RowPath& rows) {
          return !rows.from(param.inner_product_param().axis());
        }};

}  // namespace cafetiere
