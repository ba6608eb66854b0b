// SPDX-License-Identifier: Apache-2.0
// DummyData: tops set by fillers, for tests and timing. No bottoms, any number of tops.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "core/base/philox.h"
#include "core/graph/filler.h"
#include "core/graph/layer.h"

namespace cafetiere {
namespace {

class DummyData : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    const caffe::DummyDataParameter& p = param().dummy_data_param();
    const int tops = int(s.tops.size());
    if (p.shape_size() > 0 && p.num_size() > 0) {
      return invalid_argument(
          "dummy_data_param takes shape or num/channels/height/width, not both");
    }
    const auto fits = [&](int n) { return n == 1 || n == tops; };
    if (p.data_filler_size() > 0 && !fits(p.data_filler_size())) {
      return invalid_argument("dummy_data_param needs no data_filler, one, or one for each top");
    }
    const bool legacy = p.shape_size() == 0;
    if (legacy ? !(fits(p.num_size()) && fits(p.channels_size()) && fits(p.height_size()) &&
                   fits(p.width_size()))
               : !fits(p.shape_size())) {
      return invalid_argument("dummy_data_param needs one shape, or one for each top");
    }
    for (int i = 0; i < tops; ++i) {
      const auto at = [i](const auto& list) { return int64_t(list.Get(list.size() == 1 ? 0 : i)); };
      if (legacy) {
        s.tops[size_t(i)] = {at(p.num()), at(p.channels()), at(p.height()), at(p.width())};
      } else {
        const auto& dims = p.shape(p.shape_size() == 1 ? 0 : i).dim();
        s.tops[size_t(i)] = Shape(std::vector<int64_t>(dims.begin(), dims.end()));
      }
    }
    return {};
  }

  bool is_constant() const override {
    return std::ranges::all_of(param().dummy_data_param().data_filler(),
                               [](const auto& filler) { return filler.type() == "constant"; });
  }

  Status forward(LoweringContext& plan) const override {
    const caffe::DummyDataParameter& p = param().dummy_data_param();
    for (size_t i = 0; i < plan.tops.size(); ++i) {
      const int which = p.data_filler_size() == 1 ? 0 : int(i);
      const caffe::FillerParameter filler =
          p.data_filler_size() ? p.data_filler(which) : caffe::FillerParameter();
      const TensorId top = plan.new_top(i);
      const Shape shape = plan.top_shapes[i];
      // Checks the filler here, so that it cannot fail in a step.
      std::vector<float> probe(size_t(shape.count()));
      Random random(0);
      CFT_TRY(fill(filler, shape, probe, random));
      Step step;
      step.name = plan.step("fill");
      step.kernel = filler.type();
      step.writes = {plan.program.write(top, Layout::kRowMajor)};
      const std::string purpose = fmt::format("dummy data {} of {}", i, plan.name);
      step.make = [=, write = step.writes[0]](const Binder& at) {
        float* out = at(write);
        const RunContext* run = at.run();
        return Kernel{1, [=](int) {
                        const auto of_pass = uint64_t(run->sub_step);
                        const auto words = Philox::block(
                            Philox::key(run->seed, purpose),
                            {uint32_t(of_pass), uint32_t(of_pass >> 32), uint32_t(run->shard), 0});
                        Random rng(words[0]);
                        (void)fill(filler, shape, std::span(out, size_t(shape.count())), rng);
                      }};
      };
      plan.program.step(std::move(step));
    }
    return {};
  }
  Status backward(LoweringContext&) const override { return {}; }
};

}  // namespace

extern const LayerType layer_dummy_data{.name = "DummyData",
                                        .min_bottoms = 0,
                                        .max_bottoms = 0,
                                        .max_tops = -1,
                                        .create = create_layer<DummyData>};

}  // namespace cafetiere
