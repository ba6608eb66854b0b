// SPDX-License-Identifier: Apache-2.0
// Layers that are run through the callbacks of a cft_host.
#include <fmt/format.h>

#include <algorithm>

#include "core/capi/boundary.h"
#include "core/capi/eager_handles.h"
#include "core/model/prototxt.h"

namespace cafetiere::capi {
namespace {

Result<Shape> shape_of(const cft_blob& blob) {
  if (blob.axes < 0 || blob.axes > CFT_MAX_AXES) {
    return invalid_argument(fmt::format("a layer gave a blob {} axes", blob.axes));
  }
  return Shape(std::vector<int64_t>(blob.dims, blob.dims + blob.axes));
}

/// Blobs of a call, and the array of pointers to them that crosses the boundary.
class CallBlobs {
 public:
  void resize(size_t count) {
    blobs_.assign(count, {sizeof(cft_blob), nullptr, nullptr, 0, {}});
    pointers_.resize(count);
    for (size_t i = 0; i < count; ++i) pointers_[i] = &blobs_[i];
  }
  Status fill(std::span<const BlobView> views) {
    resize(views.size());
    for (size_t i = 0; i < views.size(); ++i) CFT_TRY(fill_blob(views[i], &blobs_[i]));
    return {};
  }
  cft_blob& operator[](size_t i) { return blobs_[i]; }
  int size() const { return int(blobs_.size()); }
  cft_blob* const* pointers() const { return pointers_.data(); }

 private:
  std::vector<cft_blob> blobs_;
  std::vector<cft_blob*> pointers_;
};

/// A call under construction, with the blobs that it points to.
struct Call {
  CallBlobs bottoms, tops, params;
  std::vector<uint8_t> down;
  cft_layer_call call{};
};

class HostLayer : public ExternalLayer {
 public:
  HostLayer(const caffe::LayerParameter& param, Host host, int64_t id)
      : ExternalLayer(param), host_(std::move(host)), id_(id) {}
  ~HostLayer() override {
    if (host_->layer_destroy) host_->layer_destroy(host_->context, id_);
  }

  int64_t number() const { return id_; }

  /// The first call sets the layer up; each one asks for the tops' shapes.
  Status shape(LayerShapes& s) const override {
    Call c;
    c.bottoms.resize(s.bottoms.size());
    for (size_t i = 0; i < s.bottoms.size(); ++i) {
      CFT_TRY(fill_blob({s.bottoms[i], nullptr, nullptr}, &c.bottoms[i]));
    }
    c.tops.resize(s.tops.size());
    if (!set_up_) {
      c.params.resize(CFT_MAX_LAYER_PARAMS);
      CFT_TRY(run(CFT_LAYER_SETUP, c, 0));
      set_up_ = true;
      for (int i = 0; i < std::min(c.call.param_count, CFT_MAX_LAYER_PARAMS); ++i) {
        CFT_ASSIGN(params_.emplace_back(), shape_of(c.params[size_t(i)]));
      }
      c.params.resize(0);
    }
    CFT_TRY(run(CFT_LAYER_RESHAPE, c, 0));
    for (size_t i = 0; i < s.tops.size(); ++i) {
      CFT_ASSIGN(s.tops[i], shape_of(c.tops[i]));
    }
    for (const Shape& shape : params_) s.params.push_back({.shape = shape, .filler = {}});
    return {};
  }

  Status first_values(std::span<const BlobView> params) const override {
    Call c;
    CFT_TRY(c.params.fill(params));
    return run(CFT_LAYER_VALUES, c, int(params.size()));
  }

  Status run_forward(std::span<const BlobView> bottoms, std::span<const BlobView> tops,
                     std::span<const BlobView> params) const override {
    Call c;
    CFT_TRY(c.bottoms.fill(bottoms));
    CFT_TRY(c.tops.fill(tops));
    CFT_TRY(c.params.fill(params));
    return run(CFT_LAYER_FORWARD, c, int(params.size()));
  }

  Status run_backward(std::span<const BlobView> tops, const std::vector<bool>& propagate_down,
                      std::span<const BlobView> bottoms,
                      std::span<const BlobView> params) const override {
    Call c;
    CFT_TRY(c.bottoms.fill(bottoms));
    CFT_TRY(c.tops.fill(tops));
    CFT_TRY(c.params.fill(params));
    c.down.assign(propagate_down.begin(), propagate_down.end());
    return run(CFT_LAYER_BACKWARD, c, int(params.size()));
  }

 private:
  Status run(cft_layer_event event, Call& c, int params) const {
    c.call = {.struct_size = sizeof(cft_layer_call),
              .event = event,
              .bottom_count = c.bottoms.size(),
              .top_count = c.tops.size(),
              .param_count = params,
              .bottoms = c.bottoms.pointers(),
              .tops = c.tops.pointers(),
              .params = c.params.pointers(),
              .propagate_down = c.down.data()};
    if (host_->layer_call(host_->context, id_, &c.call) == 0) return {};
    return host_error(*host_, "the layer failed");
  }

  Host host_;
  int64_t id_;
  // shape() is where Caffe's setup and reshape happen, on the net's one thread.
  mutable bool set_up_ = false;
  mutable std::vector<Shape> params_;
};

}  // namespace

Status fill_blob(const BlobView& view, cft_blob* blob) {
  const uint64_t size = blob->struct_size;
  CFT_TRY(check_struct("cft_blob", blob, size, sizeof(cft_blob), size));
  if (view.shape.axes() > CFT_MAX_AXES) {
    return invalid_argument(
        fmt::format("a blob has {} axes, more than {}", view.shape.axes(), CFT_MAX_AXES));
  }
  std::memset(blob, 0, size);
  blob->struct_size = size;
  blob->data = view.data, blob->diff = view.diff, blob->axes = view.shape.axes();
  std::copy(view.shape.dims().begin(), view.shape.dims().end(), blob->dims);
  return {};
}

Status host_error(const cft_host& host, const std::string& what) {
  const char* text = host.error ? host.error(host.context) : nullptr;
  return {ErrorCode::kCancelled, text && *text ? text : what};
}

Result<std::unique_ptr<Layer>> make_host_layer(const Host& host,
                                               const caffe::LayerParameter& param) {
  int64_t id = 0;
  if (host->layer_create(host->context, to_text(param).c_str(), &id) != 0) {
    return host_error(*host, "the layer could not be made");
  }
  return std::unique_ptr<Layer>(std::make_unique<HostLayer>(param, host, id));
}

int64_t host_layer_number(const Layer& layer) {
  const auto* host_layer = dynamic_cast<const HostLayer*>(&layer);
  return host_layer ? host_layer->number() : 0;
}

EagerNetOptions eager_net_options(const Host& host, int threads, uint64_t seed) {
  EagerNetOptions options;
  options.net = {.threads = threads, .seed = seed};
  if (host->log) {
    options.log = Logger([host](LogLevel level, std::string_view text) {
      host->log(host->context, severity(level), std::string(text).c_str());
    });
  }
  if (host->layer_create && host->layer_call) {
    options.make_foreign = [host](const caffe::LayerParameter& param) {
      return make_host_layer(host, param);
    };
  }
  return options;
}

}  // namespace cafetiere::capi
