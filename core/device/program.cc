// SPDX-License-Identifier: Apache-2.0
#include "core/device/program.h"

#include <algorithm>
#include <iterator>

#include "core/device/convert.h"
#include "core/device/device.h"

namespace cafetiere {
namespace {

/// The last version before `want` on the path of conversions from an existing version. Layouts are
/// converted from float32, together with rounding if wanted, and both layouts and formats in host
/// memory.
Version before(const Shape& shape, const Version& have, const Version& want) {
  if (want.space == Space::kDevice) return {want.layout, want.format};
  const bool same_layout = same_order(shape, have.layout, want.layout);
  if (same_layout && have.format == want.format) return have;
  const bool is_source = have.format == Format::kFloat32 && have.space == Space::kHost;
  if (want.format != Format::kFloat32) return is_source ? have : Version(want.layout);
  return same_layout ? Version(want.layout, have.format) : Version(have.layout);
}

}  // namespace

TensorId Program::tensor(std::string name, Shape shape) {
  tensors_.push_back({std::move(name), std::move(shape), {}});
  return static_cast<TensorId>(tensors_.size()) - 1;
}

TensorId Program::external(std::string name, Shape shape) {
  const TensorId id = tensor(std::move(name), std::move(shape));
  const BufferId buffer = scratch(this->shape(id).count());
  buffers_[size_t(buffer)].external = true;
  tensors_[size_t(id)].versions.push_back({Layout::kRowMajor, buffer});
  return id;
}

TensorId Program::reshaped(TensorId id, Shape shape) {
  const bool same_batch =
      shape.axes() > 0 && this->shape(id).axes() > 0 && shape[0] == this->shape(id)[0];
  Version version = first(id);
  if (!same_batch) version.layout = Layout::kRowMajor;
  if (version.layout == Layout::kPixels) version.layout = Layout::kFeatures;
  if (version.layout == Layout::kChannels || version.layout == Layout::kPanels) {
    version.layout = Layout::kRowMajor;
  }
  const BufferId buffer = read(id, version);
  const auto [begin, end] = views_.equal_range(buffer);
  for (auto it = begin; it != end; ++it) {
    const Tensor& known = tensors_[size_t(it->second)];
    if (known.shape == shape && known.versions.front().version.layout == version.layout) {
      return it->second;
    }
  }
  const TensorId view = tensor(name(id), std::move(shape));
  tensors_[size_t(view)].versions.push_back({version, buffer});
  views_.insert({{buffer, id}, {buffer, view}});
  return view;
}

TensorId Program::in_format(TensorId id, Format format) {
  if (first(id).format == format) return id;
  const Version version(first(id).layout, format);
  const BufferId buffer = read(id, version);
  const TensorId copy = tensor(name(id), shape(id));
  tensors_[size_t(copy)].versions.push_back({version, buffer});
  return copy;
}

BufferId Program::read(TensorId id, Version want) {
  const Tensor& t = tensors_[size_t(id)];
  for (const Stored& have : t.versions) {
    const auto& [layout, format, space] = have.version;
    if (format == want.format && space == want.space && same_order(t.shape, layout, want.layout)) {
      return have.buffer;
    }
  }
  const Version via = before(t.shape, first(id), want);
  const Stored from{via, read(id, via)};
  const Stored to{want, scratch(t.shape.count(), want.format, want.space)};
  tensors_[size_t(id)].versions.push_back(to);
  step(conversion(id, from, to));
  return to.buffer;
}

BufferId Program::write(TensorId id, Version want) {
  Tensor& t = tensors_[size_t(id)];
  if (t.versions.empty()) {
    t.versions.push_back({want, scratch(t.shape.count(), want.format, want.space)});
    return t.versions.front().buffer;
  }
  drop_conversions(id);
  const Stored home = t.versions.front();
  if (want.format == home.version.format && want.space == home.version.space) return home.buffer;
  want.layout = home.version.layout;
  const Stored away{want, read(id, want)};
  returning_.emplace_back(id, away);
  return away.buffer;
}

void Program::drop_conversions(TensorId id) {
  const BufferId shared = tensors_[size_t(id)].versions.front().buffer;
  const auto drop = [&](Tensor& t) {
    if (t.versions.front().buffer != shared) return;
    t.versions.erase(t.versions.begin() + 1, t.versions.end());
  };
  drop(tensors_[size_t(id)]);
  const auto [begin, end] = views_.equal_range(shared);
  for (auto it = begin; it != end; ++it) drop(tensors_[size_t(it->second)]);
}

void Program::step(Step step) {
  const std::vector<BufferId> writes = step.writes;
  steps_.push_back(std::move(step));
  for (const auto& [id, away] : std::exchange(returning_, {})) {
    if (std::ranges::find(writes, away.buffer) != writes.end()) {
      steps_.push_back(conversion(id, away, tensors_[size_t(id)].versions.front()));
    } else {
      returning_.emplace_back(id, away);
    }
  }
}

size_t Program::hoist(const std::vector<BufferId>& constants) {
  std::vector<int> writers(buffers_.size(), 0);
  for (const Step& step : steps_) {
    for (BufferId id : step.writes) ++writers[size_t(id)];
  }
  std::vector<bool> constant(buffers_.size(), false);
  for (BufferId id : constants) constant[size_t(id)] = writers[size_t(id)] == 0;
  const auto is_constant = [&](BufferId id) { return bool(constant[size_t(id)]); };
  const auto own = [&](BufferId id) {
    const Buffer& buffer = buffers_[size_t(id)];
    return writers[size_t(id)] == 1 && !buffer.external && buffer.space == Space::kHost;
  };
  const auto hoisted = [&](const Step& step) {
    const bool once = step.space == Space::kHost && !step.reads.empty() && !step.writes.empty() &&
                      std::ranges::all_of(step.reads, is_constant) &&
                      std::ranges::all_of(step.writes, own);
    for (BufferId id : step.writes) constant[size_t(id)] = once;
    return once;
  };
  std::vector<Step> first, others;
  for (Step& step : steps_) {
    const bool once = hoisted(step);
    (once ? first : others).push_back(std::move(step));
  }
  const auto fix = [&](BufferId id) {
    Buffer& buffer = buffers_[size_t(id)];
    buffer.fixed = is_constant(id) && !buffer.external;
  };
  for (const Step& step : others) std::ranges::for_each(step.reads, fix);
  for (size_t id = 0; id < buffers_.size(); ++id) {
    if (buffers_[id].keep) fix(BufferId(id));
  }
  steps_ = std::move(first);
  const size_t count = steps_.size();
  std::ranges::move(others, std::back_inserter(steps_));
  return count;
}

Step Program::conversion(TensorId id, const Stored& from, const Stored& to) const {
  return conversion_step(name(id), shape(id), from.version, from.buffer, to.version, to.buffer,
                         device_ ? device_->queue() : nullptr);
}

Space Program::space_of(const Step& step) const {
  return device_ ? device_->space_of(step) : Space::kHost;
}

BufferId Program::scratch(int64_t count, Format format, Space space) {
  buffers_.push_back({.bytes = count * format_size(format), .format = format, .space = space});
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
