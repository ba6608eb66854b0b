// SPDX-License-Identifier: Apache-2.0
#include "core/train/debug_info.h"

#include <algorithm>
#include <cmath>

namespace cafetiere {
namespace {

double absolute_sum(const float* data, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += std::fabs(data[i]);
  return sum;
}

double mean_absolute(const float* data, int64_t count) {
  return count > 0 ? absolute_sum(data, count) / double(count) : 0;
}

double norm(const float* data, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += double(data[i]) * double(data[i]);
  return std::sqrt(sum);
}

}  // namespace

Result<std::unique_ptr<DebugInfo>> DebugInfo::create(Graph graph, const Net::Options& options) {
  CFT_ASSIGN(std::unique_ptr<Net> net, Net::create(std::move(graph), options));
  return std::unique_ptr<DebugInfo>(new DebugInfo(std::move(net)));
}

Status DebugInfo::log_pass(const Plan& plan, std::span<const float> weights, const Logger& log) {
  std::ranges::copy(weights, net_->param_arena().begin());
  net_->clear_param_diffs();
  CFT_TRY(take_inputs(plan));
  const std::vector<Node>& nodes = net_->graph().nodes();
  for (int n = 0; n < int(nodes.size()); ++n) {
    CFT_TRY(net_->forward(n, n).status());
    log_forward(nodes[size_t(n)], log);
  }
  for (int n = int(nodes.size()); n-- > 0;) {
    if (!nodes[size_t(n)].needs_backward) continue;
    CFT_TRY(net_->backward(n, n));
    log_backward(nodes[size_t(n)], log);
  }
  log_norms(log);
  return {};
}

/// The last batch of an epoch may be smaller than the others.
Status DebugInfo::take_inputs(const Plan& plan) {
  for (const Plan::Blob& input : plan.inputs()) {
    for (size_t i = 0; i < net_->blobs().size(); ++i) {
      if (net_->blobs()[i].name != input.name) continue;
      CFT_TRY(net_->reshape_blob(int(i), input.shape));
      std::copy_n(input.data, input.shape.count(), net_->blobs()[i].data.get());
    }
  }
  return {};
}

void DebugInfo::log_forward(const Node& node, const Logger& log) const {
  const std::string& name = node.param.name();
  for (int top : node.tops) {
    const Net::Blob& blob = net_->blobs()[size_t(net_->blob_index(top))];
    log.info("    [Forward] Layer {}, top blob {} data: {:g}", name, blob.name,
             mean_absolute(blob.data.get(), blob.shape.count()));
  }
  for (size_t i = 0; i < node.params.size(); ++i) {
    const Net::Blob& blob = net_->params()[size_t(node.params[i])];
    const bool named = int(i) < node.param.param_size() && !node.param.param(int(i)).name().empty();
    log.info("    [Forward] Layer {}, param blob {} data: {:g}", name,
             named ? node.param.param(int(i)).name() : std::to_string(i),
             mean_absolute(blob.data.get(), blob.shape.count()));
  }
}

void DebugInfo::log_backward(const Node& node, const Logger& log) const {
  const std::string& name = node.param.name();
  for (size_t i = 0; i < node.bottoms.size(); ++i) {
    if (!node.propagate_down[i]) continue;
    const Net::Blob& blob = net_->blobs()[size_t(net_->blob_index(node.bottoms[i]))];
    log.info("    [Backward] Layer {}, bottom blob {} diff: {:g}", name, blob.name,
             mean_absolute(blob.diff.get(), blob.shape.count()));
  }
  for (size_t i = 0; i < node.params.size(); ++i) {
    const size_t id = size_t(node.params[i]);
    if (net_->graph().params()[id].lr_mult == 0) continue;
    const Net::Blob& blob = net_->params()[id];
    log.info("    [Backward] Layer {}, param blob {} diff: {:g}", name, i,
             mean_absolute(blob.diff.get(), blob.shape.count()));
  }
}

void DebugInfo::log_norms(const Logger& log) const {
  const float* data = net_->param_arena().data();
  const float* diff = net_->diff_arena().data();
  const int64_t count = net_->graph().learned_size();
  log.error(
      "    [Backward] All net params (data, diff): L1 norm = ({:g}, {:g}); L2 norm = ({:g}, {:g})",
      absolute_sum(data, count), absolute_sum(diff, count), norm(data, count), norm(diff, count));
}

}  // namespace cafetiere
