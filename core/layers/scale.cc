// Scale: y = a x [+ b], a and b spanning `num_axes` axes from `axis` on. One bottom: a is learned;
// two bottoms: a is the second. Blobs: [a][, b].
#include <fmt/format.h>

#include "core/device/map.h"
#include "core/graph/layer.h"

namespace cafetiere {
namespace {

class Scale : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    const caffe::ScaleParameter& p = param().scale_param();
    CFT_ASSIGN(const Span span,
               geometry(s.bottoms[0], s.bottoms.size() > 1 ? &s.bottoms[1] : nullptr));
    s.tops[0] = s.bottoms[0];
    if (s.bottoms.size() == 1) {
      caffe::FillerParameter one;
      one.set_value(1);
      s.params.push_back({span.scale, p.has_filler() ? p.filler() : one});
    }
    if (p.bias_term()) s.params.push_back({span.scale, p.bias_filler()});
    return {};
  }

  Status forward(LayerPlan& plan) const override {
    CFT_ASSIGN(const Operands o, operands(plan));
    const TensorId top = plan.new_tensor("top", plan.program.shape(o.x));
    if (o.bias == kNoTensor) {
      map_channels<1, 1>(plan.program, plan.step("forward"),
                         [](const auto& x, const auto& c) { return x[0] * c[0]; }, top, {o.x},
                         {o.scale});
    } else {
      map_channels<1, 2>(plan.program, plan.step("forward"),
                         [](const auto& x, const auto& c) { return x[0] * c[0] + c[1]; }, top,
                         {o.x}, {o.scale, o.bias});
    }
    plan.tops[0] = o.direct ? top : plan.program.reshaped(top, plan.top_shapes[0]);
    return {};
  }

  Status backward(LayerPlan& plan) const override {
    CFT_ASSIGN(const Operands o, operands(plan));
    const bool learned = plan.bottoms.size() == 1;
    const TensorId dy = view(plan, plan.top_diffs[0], o.direct, plan.program.shape(o.x));
    Gradient bias, scale;
    if (param().scale_param().bias_term()) bias = plan.param_diffs.back();
    TensorId side = kNoTensor;
    if (learned) {
      scale = plan.param_diffs[0];
    } else if (plan.propagate_down[1]) {
      side = plan.new_tensor("scale diff", {plan.program.shape(o.x)[1]});
      scale = Gradient::plain(side);
    }
    const bool dot = scale.tensor != kNoTensor;
    if (dot || bias.tensor != kNoTensor) {
      plan.device.channel_sums(plan.program, plan.step("gradients"), dy, dot ? o.x : kNoTensor,
                               bias, scale);
    }
    if (side != kNoTensor) {
      plan.bottom_diffs[1] = plan.program.reshaped(side, plan.bottom_shape(1));
    }
    if (!plan.propagate_down[0]) return {};
    const TensorId down = plan.new_tensor("diff", plan.program.shape(o.x));
    map_channels<1, 1>(plan.program, plan.step("backward"),
                       [](const auto& d, const auto& c) { return d[0] * c[0]; }, down, {dy},
                       {o.scale});
    plan.bottom_diffs[0] = o.direct ? down : plan.program.reshaped(down, plan.bottom_shape(0));
    return {};
  }

 private:
  struct Span {
    Shape scale;
    int64_t outer, dim, inner;
    bool direct;  ///< the scale runs over axis 1 alone: no reshaping
  };
  struct Operands {
    TensorId x, scale, bias;
    bool direct;
  };

  Result<Span> geometry(const Shape& bottom, const Shape* given) const {
    const caffe::ScaleParameter& p = param().scale_param();
    CFT_ASSIGN(const int axis, bottom.axis(p.axis()));
    int axes = given ? given->axes() : p.num_axes() < 0 ? bottom.axes() - axis : p.num_axes();
    if (axis + axes > bottom.axes()) {
      return invalid_argument(fmt::format("the scale spans {} axes from axis {}, beyond shape {}",
                                          axes, axis, bottom.str()));
    }
    const auto first = bottom.dims().begin() + axis;
    Shape scale(std::vector<int64_t>(first, first + axes));
    if (given && !(*given == scale)) {
      return invalid_argument(fmt::format("the second bottom has shape {} but must match {}",
                                          given->str(), scale.str()));
    }
    return Span{scale, bottom.count(0, axis), bottom.count(axis, axis + axes),
                bottom.count(axis + axes), axis == 1 && axes == 1};
  }

  static TensorId view(LayerPlan& plan, TensorId id, bool direct, const Shape& shape) {
    return direct ? id : plan.program.reshaped(id, shape);
  }

  Result<Operands> operands(LayerPlan& plan) const {
    const bool two = plan.bottoms.size() > 1;
    const Shape* given = two ? &plan.bottom_shape(1) : nullptr;
    CFT_ASSIGN(const Span s, geometry(plan.bottom_shape(0), given));
    const TensorId x = view(plan, plan.bottoms[0], s.direct, {s.outer, s.dim, s.inner});
    const TensorId scale = two ? plan.program.reshaped(plan.bottoms[1], {s.dim}) : plan.params[0];
    const bool bias = param().scale_param().bias_term();
    return Operands{x, scale, bias ? plan.params.back() : kNoTensor, s.direct};
  }
};

}  // namespace

extern const LayerType layer_scale{.name = "Scale",
                                   .min_bottoms = 1,
                                   .max_bottoms = 2,
                                   .min_tops = 1,
                                   .max_tops = 1,
                                   .create = create_layer<Scale>};

}  // namespace cafetiere
