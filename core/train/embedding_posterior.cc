// SPDX-License-Identifier: Apache-2.0
#include "core/train/embedding_posterior.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/graph/arena.h"
#include "core/layers/indices.h"
#include "core/layers/registry.h"
#include "core/train/similar_points.h"

namespace cafetiere {
namespace {

const caffe::PosteriorParameter& posterior_of(const Node& node) {
  return node.param.embed_param().posterior();
}

bool writes(const caffe::LayerParameter& layer, const std::string& blob) {
  return std::ranges::find(layer.top(), blob) != layer.top().end();
}

/// The net for tests, in which `blob` is fed and not computed.
Result<Graph> graph_fed_at(const NetChoice& choice, const std::string& blob, const Shape& shape) {
  NetText net = choice.net;
  net.layer_lines.clear();
  net.param.clear_layer();
  bool is_fed = false;
  for (const caffe::LayerParameter& layer : choice.net.param.layer()) {
    if (!writes(layer, blob)) {
      *net.param.add_layer() = layer;
    } else if (!std::exchange(is_fed, true)) {
      caffe::LayerParameter& input = *net.param.add_layer();
      input.set_name(layer.name() + "/fed");
      input.set_type((*std::ranges::find_if(layer_types(), &LayerType::inputs))->name);
      input.add_top(blob);
      caffe::BlobShape& dims = *input.mutable_input_param()->add_shape();
      for (const int64_t dim : shape.dims()) dims.add_dim(dim);
    }
  }
  caffe::NetState state = choice.state;
  state.set_phase(caffe::TEST);
  return Graph::build(net, state, {.types = layer_types(), .fed = {}});
}

Result<ParamPointers> params_of(const Graph& graph, const Graph& trained,
                                std::span<float> weights) {
  ParamPointers params;
  CFT_ASSIGN(params.data, shared_params(graph, trained, weights.data(), nullptr));
  params.diff.assign(params.data.size(), nullptr);
  return params;
}

/// An error unless the net computes `blob` from `input`.
Status check_path(const Graph& graph, const std::string& input, const std::string& blob) {
  if (graph.find_blob(blob) < 0) {
    return invalid_argument(fmt::format("posterior: the net has no blob '{}'", blob));
  }
  std::vector<bool> reached(graph.blob_names().size(), false);
  for (const Node& node : graph.nodes()) {
    const bool follows =
        std::ranges::any_of(node.bottoms, [&](int bottom) { return reached[size_t(bottom)]; });
    for (const int top : node.tops) {
      reached[size_t(top)] = follows || graph.blob_names()[size_t(top)] == input;
    }
  }
  if (reached[size_t(graph.find_blob(blob))]) return {};
  return invalid_argument(
      fmt::format("posterior: blob '{}' is not computed from '{}'", blob, input));
}

}  // namespace

Result<std::vector<EmbeddingPosterior>> EmbeddingPosterior::all(const NetChoice& choice,
                                                                const Graph& trained) {
  std::vector<EmbeddingPosterior> all;
  for (const Node& node : trained.nodes()) {
    if (posterior_of(node).prototypes() == 0) continue;
    if (trained.params()[size_t(node.params[0])].lr_mult == 0) continue;
    auto made = make(choice, trained, node);
    if (!made.ok()) return made.status().with_context(node.where);
    all.push_back(std::move(*made));
  }
  return all;
}

Result<EmbeddingPosterior> EmbeddingPosterior::make(const NetChoice& choice, const Graph& trained,
                                                    const Node& node) {
  const caffe::PosteriorParameter& p = posterior_of(node);
  const Param& table = trained.params()[size_t(node.params[0])];
  EmbeddingPosterior made;
  made.layer_ = node.param.name();
  made.trained_ = &trained;
  made.embedded_ = node.param.top(0);
  made.blobs_ = {trained.written_name(node.bottoms[0]), p.labels(), p.output(), p.scores()};
  made.offset_ = table.offset;
  made.size_ = table.shape[1];
  made.first_ = p.first();
  made.candidates_.values = table.shape[0];
  made.candidates_.prototypes = std::min<int64_t>(p.prototypes(), table.shape[0] - p.first());
  made.candidates_.nearest = std::min<int64_t>(p.nearest(), made.candidates_.prototypes);
  if (node.params.size() > 1) return invalid_argument("posterior: set bias_term: false");
  if (made.candidates_.nearest < 1) {
    return invalid_argument(fmt::format(
        "posterior: there must be a nearest prototype, and more rows than `first`, which is {}",
        p.first()));
  }
  CFT_ASSIGN(const std::vector<Shape> shapes, trained.infer(0));
  CFT_TRY(check_path(trained, made.embedded_, p.output()));
  CFT_TRY(check_path(trained, p.output(), p.scores()));
  const Shape output = shapes[size_t(trained.find_blob(p.output()))];
  made.output_size_ = output.count(1);
  CFT_ASSIGN(made.before_, graph_fed_at(choice, made.embedded_, shapes[size_t(node.tops[0])]));
  CFT_ASSIGN(made.after_, graph_fed_at(choice, p.output(), output));
  if (!covers(trained, made.before_) || !covers(trained, made.after_)) {
    return invalid_argument("posterior: a layer with parameters is missing from the training net");
  }
  return made;
}

size_t EmbeddingPosterior::shared_floats() const {
  const Candidates& c = candidates_;
  return size_t((c.values + c.prototypes) * output_size_ + c.values * c.nearest);
}

std::span<float> EmbeddingPosterior::rows(std::span<float> weights) const {
  return weights.subspan(size_t(offset_), size_t(candidates_.values * size_));
}

Result<std::vector<float>> EmbeddingPosterior::find_candidates(std::span<float> weights,
                                                               const PosteriorEngine& engine) {
  const auto table = rows(weights);
  CFT_ASSIGN(std::vector<float> shared, outputs_of(table, weights, engine));
  const auto learned = std::span(shared).subspan(size_t(first_ * output_size_));
  const auto group = similar_points(learned, output_size_, candidates_.prototypes, engine.seed);
  prototypes_ = means_of(table.subspan(size_t(first_ * size_)), group);
  CFT_ASSIGN(const std::vector<float> outputs, outputs_of(prototypes_, weights, engine));
  candidates_.near = nearest_means(shared, outputs, output_size_, candidates_.nearest);
  shared.insert(shared.end(), outputs.begin(), outputs.end());
  shared.insert(shared.end(), candidates_.near.begin(), candidates_.near.end());
  return shared;
}

/// The blob that is computed from each row.
Result<std::vector<float>> EmbeddingPosterior::outputs_of(std::span<const float> rows,
                                                          std::span<float> weights,
                                                          const PosteriorEngine& engine) const {
  constexpr int64_t kBatch = 256;
  CFT_ASSIGN(const ParamPointers params, params_of(before_, *trained_, weights));
  CFT_ASSIGN(const auto plan, Plan::compile(before_, *engine.device, params,
                                            {.batch = kBatch, .outputs = {blobs_.candidate}}));
  float* const input = tops_of(*plan, {embedded_})[0];
  const int64_t count = int64_t(rows.size()) / size_;
  std::vector<float> outputs(size_t(count * output_size_));
  for (int64_t first = 0; first < count; first += kBatch) {
    const int64_t some = std::min(kBatch, count - first);
    std::copy_n(rows.data() + first * size_, some * size_, input);
    CFT_TRY(plan->run(*engine.pool, {.seed = engine.seed}));
    std::copy_n(plan->outputs()[0].data, some * output_size_,
                outputs.data() + first * output_size_);
  }
  return outputs;
}

/// The mean of the rows of each group; that of all rows for a group without rows.
std::vector<float> EmbeddingPosterior::means_of(std::span<const float> rows,
                                                std::span<const int32_t> group) const {
  const auto size = size_t(size_), groups = size_t(candidates_.prototypes);
  std::vector<double> sums((groups + 1) * size);
  std::vector<int64_t> count(groups + 1, 0);
  for (size_t i = 0; i < group.size(); ++i) {
    for (const size_t g : {size_t(group[i]), groups}) {
      ++count[g];
      for (size_t j = 0; j < size; ++j) sums[g * size + j] += double(rows[i * size + j]);
    }
  }
  std::vector<float> means;
  for (size_t g = 0; g < groups; ++g) {
    const size_t from = count[g] > 0 ? g : groups;
    for (size_t j = 0; j < size; ++j) {
      means.push_back(float(sums[from * size + j] / double(count[from])));
    }
  }
  return means;
}

Status EmbeddingPosterior::sum_shard(std::span<float> weights, std::span<const float> shared,
                                     const Feed& feed, int shard, const PosteriorEngine& engine,
                                     std::span<float> sums) const {
  Candidates candidates = candidates_;
  const size_t blobs = size_t((candidates.values + candidates.prototypes) * output_size_);
  candidates.near.clear();
  for (const float prototype : shared.subspan(blobs)) {
    candidates.near.push_back(int32_t(index_below(prototype, candidates.prototypes)));
    if (candidates.near.back() < 0) return invalid_argument("a candidate is no prototype");
  }
  CFT_ASSIGN(ParamPointers params, params_of(after_, *trained_, weights));
  CFT_ASSIGN(const auto pass, CandidateLikelihoods::create({.net = &after_,
                                                            .params = std::move(params),
                                                            .blobs = blobs_,
                                                            .feed = &feed,
                                                            .candidates = &candidates,
                                                            .given = shared.first(blobs),
                                                            .first = first_},
                                                           engine));
  return pass->sum_shard(shard, sums);
}

void EmbeddingPosterior::take_means(std::span<const float> sums, std::span<float> weights) const {
  const Candidates& c = candidates_;
  const std::vector<double> weight = posterior_weights(c, sums);
  const auto table = rows(weights);
  const auto size = size_t(size_);
  std::vector<double> mean(size);
  for (int64_t v = first_; v < c.values; ++v) {
    float* const own = table.data() + v * size_;
    std::ranges::fill(mean, 0);
    for (int64_t i = 0; i < c.per_value(); ++i) {
      const float* const row =
          i < c.nearest ? prototypes_.data() + c.near[size_t(v * c.nearest + i)] * size_ : own;
      const double share = weight[size_t(v * c.per_value() + i)];
      for (size_t j = 0; j < size; ++j) mean[j] += share * double(row[j]);
    }
    std::ranges::copy(mean, own);
  }
}

}  // namespace cafetiere
