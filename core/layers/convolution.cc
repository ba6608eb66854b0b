// Convolution: y = W * x + b over any number of spatial axes, grouped and dilated.
// Bottom (N.., C, spatial..) to top (N.., num_output, spatial..); all bottoms share the weights.
#include "core/layers/conv_geometry.h"

namespace cafetiere {
namespace {

class Convolution : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    const caffe::ConvolutionParameter& p = param().convolution_param();
    if (s.bottoms.size() != s.tops.size()) {
      return invalid_argument("needs as many tops as bottoms");
    }
    for (size_t i = 0; i < s.bottoms.size(); ++i) {
      if (!(s.bottoms[i] == s.bottoms[0])) {
        return invalid_argument("all bottoms must have one shape: " + s.bottoms[i].str() + " and " +
                                s.bottoms[0].str());
      }
      CFT_ASSIGN(const ConvGeometry g, geometry(s.bottoms[i]));
      CFT_ASSIGN(const int axis, s.bottoms[i].axis(p.axis()));
      std::vector<int64_t> dims(s.bottoms[i].dims().begin(), s.bottoms[i].dims().begin() + axis);
      dims.push_back(g.outputs);
      dims.insert(dims.end(), g.out.begin(), g.out.end());
      s.tops[i] = Shape(std::move(dims));
      if (i > 0) continue;
      std::vector<int64_t> weights{g.outputs, g.channels / g.group};
      weights.insert(weights.end(), g.kernel.begin(), g.kernel.end());
      s.params.push_back({Shape(std::move(weights)), p.weight_filler()});
      if (p.bias_term()) s.params.push_back({Shape{g.outputs}, p.bias_filler()});
    }
    return {};
  }

  Status forward(LayerPlan& plan) const override {
    for (size_t i = 0; i < plan.bottoms.size(); ++i) {
      CFT_ASSIGN(const ConvGeometry g, geometry(plan.bottom_shape(i)));
      const TensorId src = as_batch(plan, plan.bottoms[i], g.n, g.channels, g.in);
      const TensorId dst = plan.new_tensor("top", batch_shape(g.n, g.outputs, g.out));
      plan.device.convolution(plan.program, plan.step("forward"), g, src, plan.params[0],
                              plan.params.size() > 1 ? plan.params[1] : kNoTensor, dst,
                              plan.fuse_relu);
      plan.tops[i] = plan.program.shape(dst) == plan.top_shapes[i]
                         ? dst
                         : plan.program.reshaped(dst, plan.top_shapes[i]);
    }
    return {};
  }

  Status backward(LayerPlan& plan) const override {
    Gradient weights = plan.param_diffs[0];
    Gradient bias = plan.param_diffs.size() > 1 ? plan.param_diffs[1] : Gradient{};
    for (size_t i = 0; i < plan.bottoms.size(); ++i) {
      if (plan.top_diffs[i] == kNoTensor) continue;
      CFT_ASSIGN(const ConvGeometry g, geometry(plan.bottom_shape(i)));
      const TensorId diff = as_batch(plan, plan.top_diffs[i], g.n, g.outputs, g.out);
      if (bias.tensor != kNoTensor) {
        plan.device.channel_sums(plan.program, plan.step("bias gradient"), diff, kNoTensor, bias,
                                 {});
        bias.add = true;
      }
      if (weights.tensor != kNoTensor) {
        const TensorId src = as_batch(plan, plan.bottoms[i], g.n, g.channels, g.in);
        plan.device.convolution_backward_weights(plan.program, plan.step("weight gradient"), g, src,
                                                 diff, weights);
        weights.add = true;
      }
      if (!plan.propagate_down[i]) continue;
      const TensorId down = plan.new_tensor("diff", batch_shape(g.n, g.channels, g.in));
      plan.device.convolution_backward_data(plan.program, plan.step("backward"), g, diff,
                                            plan.params[0], down);
      plan.bottom_diffs[i] = plan.program.shape(down) == plan.bottom_shape(i)
                                 ? down
                                 : plan.program.reshaped(down, plan.bottom_shape(i));
    }
    return {};
  }

 private:
  Result<ConvGeometry> geometry(const Shape& bottom) const {
    CFT_ASSIGN(ConvGeometry g, conv_geometry(param().convolution_param(), bottom));
    for (size_t i = 0; i < g.in.size(); ++i) {
      const int64_t extent = g.dilation[i] * (g.kernel[i] - 1) + 1;
      const int64_t room = g.in[i] + 2 * g.pad[i] - extent;
      if (room < 0) {
        return invalid_argument(
            fmt::format("the kernel ({} with dilation) is larger than the "
                        "padded input ({}) of shape {}",
                        extent, g.in[i] + 2 * g.pad[i], bottom.str()));
      }
      g.out.push_back(room / g.stride[i] + 1);
    }
    return g;
  }
  static Shape batch_shape(int64_t n, int64_t channels, const std::vector<int64_t>& spatial) {
    std::vector<int64_t> dims{n, channels};
    dims.insert(dims.end(), spatial.begin(), spatial.end());
    return Shape(std::move(dims));
  }
  static TensorId as_batch(LayerPlan& plan, TensorId id, int64_t n, int64_t channels,
                           const std::vector<int64_t>& spatial) {
    Shape wanted = batch_shape(n, channels, spatial);
    if (plan.program.shape(id) == wanted) return id;
    return plan.program.reshaped(id, std::move(wanted));
  }
};

}  // namespace

extern const LayerType layer_convolution{.name = "Convolution",
                                         .min_bottoms = 1,
                                         .max_bottoms = -1,
                                         .min_tops = 1,
                                         .max_tops = -1,
                                         .create = create_layer<Convolution>};

}  // namespace cafetiere
