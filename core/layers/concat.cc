// Concat: joins bottoms along one axis; all other axes must agree.
#include <fmt/format.h>

#include <cstring>

#include "core/graph/layer.h"

namespace cafetiere {
namespace {

class Concat : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    CFT_ASSIGN(const int axis, this->axis(s.bottoms[0]));
    s.tops[0] = s.bottoms[0];
    for (size_t i = 1; i < s.bottoms.size(); ++i) {
      Shape same = s.bottoms[i];
      if (same.axes() == s.tops[0].axes()) same[axis] = s.tops[0][axis];
      if (!(same == s.tops[0])) {
        return invalid_argument(fmt::format("bottoms may differ in axis {} alone: {} and {}", axis,
                                            s.bottoms[0].str(), s.bottoms[i].str()));
      }
      s.tops[0][axis] += s.bottoms[i][axis];
    }
    return {};
  }

  Status forward(LayerPlan& plan) const override {
    if (plan.bottoms.size() == 1) {
      plan.tops[0] = plan.bottoms[0];
      return {};
    }
    CFT_ASSIGN(const int axis, this->axis(plan.bottom_shape(0)));
    const Layout layout = pick(plan, axis, plan.bottoms[0]);
    Step step;
    step.name = plan.step("forward");
    step.kernel = std::string("copy ") + layout_name(layout);
    for (TensorId id : plan.bottoms) step.reads.push_back(plan.program.read(id, layout));
    step.writes = {plan.program.write(plan.new_top(0), layout)};
    const std::vector<Piece> pieces = this->pieces(plan, axis, layout);
    step.make = [=, reads = step.reads, write = step.writes[0]](const Binder& at) {
      std::vector<const float*> from;
      for (BufferId id : reads) from.push_back(at(id));
      float* to = at(write);
      return Kernel{int(pieces[0].outer), [=](int o) {
                      for (size_t i = 0; i < pieces.size(); ++i) {
                        std::memcpy(to + o * pieces[i].stride + pieces[i].offset,
                                    from[i] + o * pieces[i].size,
                                    size_t(pieces[i].size) * sizeof(float));
                      }
                    }};
    };
    plan.program.step(std::move(step));
    return {};
  }

  Status backward(LayerPlan& plan) const override {
    if (plan.bottoms.size() == 1) {
      plan.bottom_diffs[0] = plan.top_diffs[0];
      return {};
    }
    CFT_ASSIGN(const int axis, this->axis(plan.bottom_shape(0)));
    const Layout layout = pick(plan, axis, plan.top_diffs[0]);
    const std::vector<Piece> pieces = this->pieces(plan, axis, layout);
    for (size_t i = 0; i < plan.bottoms.size(); ++i) {
      if (!plan.propagate_down[i]) continue;
      Step step;
      step.name = plan.step("backward");
      step.kernel = std::string("copy ") + layout_name(layout);
      step.reads = {plan.program.read(plan.top_diffs[0], layout)};
      step.writes = {plan.program.write(plan.new_bottom_diff(i), layout)};
      step.make = [=, piece = pieces[i], read = step.reads[0],
                   write = step.writes[0]](const Binder& at) {
        const float* from = at(read);
        float* to = at(write);
        return Kernel{int(piece.outer), [=](int o) {
                        std::memcpy(to + o * piece.size, from + o * piece.stride + piece.offset,
                                    size_t(piece.size) * sizeof(float));
                      }};
      };
      plan.program.step(std::move(step));
    }
    return {};
  }

 private:
  /// A bottom's contiguous run inside the top, repeated `outer` times.
  struct Piece {
    int64_t outer, size, offset, stride;
  };

  Result<int> axis(const Shape& bottom) const {
    const caffe::ConcatParameter& p = param().concat_param();
    if (p.has_axis() && p.has_concat_dim()) {
      return invalid_argument("give axis or concat_dim, not both");
    }
    return bottom.axis(p.has_concat_dim() ? int(p.concat_dim()) : p.axis());
  }
  /// Channels join in any layout; other axes only in row-major order.
  static Layout pick(const LayerPlan& plan, int axis, TensorId like) {
    return axis == 1 ? plan.program.layout(like) : Layout::kRowMajor;
  }
  static std::vector<Piece> pieces(const LayerPlan& plan, int axis, Layout layout) {
    std::vector<Piece> list;
    int64_t offset = 0;
    for (size_t i = 0; i < plan.bottoms.size(); ++i) {
      const Shape& shape = plan.bottom_shape(i);
      int64_t outer = shape.count(0, axis), size = shape.count(axis);
      if (axis == 1) {
        const ChannelView view(shape, layout);
        outer = view.outer, size = view.channels * view.inner;
      }
      list.push_back({outer, size, offset, 0});
      offset += size;
    }
    for (Piece& piece : list) piece.stride = offset;
    return list;
  }
};

}  // namespace

extern const LayerType layer_concat{.name = "Concat",
                                    .min_bottoms = 1,
                                    .max_bottoms = -1,
                                    .min_tops = 1,
                                    .max_tops = 1,
                                    .create = create_layer<Concat>};

}  // namespace cafetiere
