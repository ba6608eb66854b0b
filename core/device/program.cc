// SPDX-License-Identifier: Apache-2.0
#include "core/device/program.h"

#include <algorithm>

#include "core/device/reorder.h"

namespace cafetiere {

TensorId Program::tensor(std::string name, Shape shape) {
  tensors_.push_back({std::move(name), std::move(shape), {}});
  return static_cast<TensorId>(tensors_.size()) - 1;
}

TensorId Program::external(std::string name, Shape shape) {
  const TensorId id = tensor(std::move(name), std::move(shape));
  buffers_.push_back({this->shape(id).count(), true, false});
  tensors_[size_t(id)].versions.emplace_back(Layout::kRowMajor, BufferId(buffers_.size()) - 1);
  return id;
}

TensorId Program::reshaped(TensorId id, Shape shape) {
  const bool same_batch =
      shape.axes() > 0 && this->shape(id).axes() > 0 && shape[0] == this->shape(id)[0];
  Layout layout = this->layout(id);
  if (!same_batch) layout = Layout::kRowMajor;
  if (layout == Layout::kPixels) layout = Layout::kFeatures;
  if (layout == Layout::kChannels) layout = Layout::kRowMajor;
  const BufferId buffer = read(id, layout);
  const TensorId view = tensor(name(id), std::move(shape));
  tensors_[size_t(view)].versions.emplace_back(layout, buffer);
  return view;
}

BufferId Program::read(TensorId id, Layout layout) {
  const Tensor& t = tensors_[size_t(id)];
  for (const auto& [have, buffer] : t.versions) {
    if (same_order(t.shape, have, layout)) return buffer;
  }
  const auto [from, source] = t.versions.front();
  const BufferId target = scratch(t.shape.count());
  tensors_[size_t(id)].versions.emplace_back(layout, target);
  step(reorder_step(t.name, t.shape, from, source, layout, target));
  return target;
}

BufferId Program::write(TensorId id, Layout layout) {
  Tensor& t = tensors_[size_t(id)];
  if (!t.versions.empty()) return t.versions.front().second;  // external memory: row-major
  const BufferId buffer = scratch(t.shape.count());
  t.versions.emplace_back(layout, buffer);
  return buffer;
}

BufferId Program::scratch(int64_t floats) {
  buffers_.push_back({floats, false, false});
  return static_cast<BufferId>(buffers_.size()) - 1;
}

BufferId Program::keep(TensorId id) {
  const BufferId buffer = read(id, Layout::kRowMajor);
  buffers_[size_t(buffer)].keep = true;
  return buffer;
}

void Program::remark(const std::string& step, const std::string& text) {
  const auto of = std::find_if(steps_.rbegin(), steps_.rend(),
                               [&](const Step& known) { return known.name == step; });
  if (of != steps_.rend()) of->kernel += text;
}

}  // namespace cafetiere
