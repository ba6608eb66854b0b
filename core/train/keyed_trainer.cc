// SPDX-License-Identifier: Apache-2.0
#include "core/train/keyed_trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <set>

#include "core/data/row_reader.h"
#include "core/data/sampler.h"
#include "core/graph/arena.h"
#include "core/graph/filler.h"
#include "core/layers/registry.h"
#include "core/model/weights.h"
#include "core/solver/lr_policy.h"
#include "core/solver/random_seed.h"
#include "core/sync/modes.h"
#include "core/sync/shuffle.h"
#include "core/train/history.h"
#include "core/train/nets.h"
#include "core/train/plan_set.h"
#include "core/train/posterior.h"
#include "core/train/rows_feed.h"
#include "core/train/solver_checks.h"
#include "core/train/solver_log.h"

namespace cafetiere {
namespace {

using TableParam = caffe::TableDataParameter;

constexpr size_t kMostForms = 32;
constexpr size_t kMostPlans = 128;  // per form: one for each size of an epoch's last batch

TableParam* table_of(caffe::NetParameter& net) {
  for (caffe::LayerParameter& layer : *net.mutable_layer()) {
    if (layer.has_table_data_param()) return layer.mutable_table_data_param();
  }
  return nullptr;
}

const TableParam* table_of(const caffe::NetParameter& net) {
  for (const caffe::LayerParameter& layer : net.layer()) {
    if (layer.has_table_data_param()) return &layer.table_data_param();
  }
  return nullptr;
}

/// A key for the shapes of a net: everything except the columns' values, of which only the number
/// counts.
std::string signature(const caffe::NetParameter& net) {
  caffe::NetParameter bare = net;
  for (TableParam::TableTop& top : *table_of(bare)->mutable_top()) {
    for (TableParam::Column& column : *top.mutable_column()) {
      column.clear_mean();
      column.clear_scale();
      for (std::string& value : *column.mutable_value()) value.clear();
    }
  }
  return bare.SerializeAsString();
}

Status check(const caffe::SolverParameter& p) {
  if (p.iter_size() != 1) return invalid_argument("nets of keys take no iter_size but 1");
  if (p.clip_gradients() >= 0) return invalid_argument("nets of keys take no clip_gradients");
  if (p.test_interval() > 0) return invalid_argument("nets of keys take no test_interval");
  if (p.has_early_stopping()) return invalid_argument("nets of keys take no early_stopping");
  if (p.precision() != "float32") {
    return invalid_argument("nets of keys take no precision but float32");
  }
  return check_sync(p.sync());
}

/// The columns in the order of the net, then the others: a fit on these rows alone feeds them in
/// that order, and their bytes are used as their identity.
std::vector<int> columns_in_order(const TableParam& table, const RowSchema& schema) {
  std::vector<int> order;
  const auto add = [&](int column) {
    if (std::ranges::find(order, column) == order.end()) order.push_back(column);
  };
  for (const TableParam::TableTop& top : table.top()) {
    for (const TableParam::Column& column : top.column()) {
      if (const Result<int> place = schema.find(column.name()); place.ok()) add(*place);
    }
  }
  for (size_t i = 0; i < schema.columns.size(); ++i) add(int(i));
  return order;
}

Result<RowTable> in_order(const TableParam& table, RowTable&& rows) {
  const RowSchema& schema = rows.schema();
  const std::vector<int> order = columns_in_order(table, schema);
  if (std::ranges::is_sorted(order)) return std::move(rows);
  RowSchema ordered;
  for (const int column : order) {
    if (column == schema.id) ordered.id = int(ordered.columns.size());
    ordered.columns.push_back(schema.columns[size_t(column)]);
  }
  std::vector<std::byte> chunk;
  chunk.reserve(size_t(rows.bytes()));
  for (int64_t i = 0; i < rows.rows(); ++i) {
    for (const int column : order) {
      const std::span<const std::byte> cell = rows.cell(i, column).bytes;
      const auto size = uint32_t(cell.size());
      const auto* prefix = reinterpret_cast<const std::byte*>(&size);
      chunk.insert(chunk.end(), prefix, prefix + sizeof size);
      chunk.insert(chunk.end(), cell.begin(), cell.end());
    }
  }
  RowTable made(std::move(ordered));
  CFT_TRY(made.append(rows.rows(), chunk));
  return made;
}

/// The encoded rows of a table: a matrix per top.
struct EncodedRows {
  std::vector<size_t> width;
  std::vector<std::vector<float>> values;

  /// Copies the rows of a batch to a plan's inputs; null for inputs that nothing reads.
  void fill(std::span<const uint32_t> batch, std::span<float* const> tops) const {
    for (size_t t = 0; t < tops.size(); ++t) {
      float* to = tops[t];
      if (!to) continue;
      for (const uint32_t row : batch) {
        to = std::copy_n(values[t].data() + row * width[t], width[t], to);
      }
    }
  }
};

Result<EncodedRows> encode(const ShardStore& store, const FedTops& fed, uint64_t seed) {
  CFT_ASSIGN(const RowReader reader, RowReader::make(store.schema(), fed.inputs, true, seed));
  const size_t rows = size_t(store.total_rows());
  EncodedRows encoded;
  std::vector<float*> tops;
  for (const Shape& shape : reader.top_shapes()) {
    encoded.width.push_back(size_t(shape.count()));
    tops.push_back(encoded.values.emplace_back(rows * size_t(shape.count())).data());
  }
  std::vector<float> scratch;
  for (size_t i = 0; i < rows; ++i) {
    const auto row = store.row(0, int64_t(i));
    CFT_TRY(reader.validate(row, scratch));
    CFT_TRY(reader.read(row, {0, 0, int64_t(i)}, tops, int64_t(i), int64_t(rows), scratch));
  }
  return encoded;
}

/// The batches of the first epoch, for posteriors.
class FirstEpoch : public Source {
 public:
  FirstEpoch(const EncodedRows& rows, Sampler& sampler, int64_t batch)
      : rows_(rows), sampler_(sampler), batch_(batch) {}

  std::vector<Shape> top_shapes() const override {
    std::vector<Shape> shapes;
    for (const size_t width : rows_.width) shapes.push_back({batch_, int64_t(width)});
    return shapes;
  }
  int64_t rows(int shard, int64_t sub_step) const override {
    return int64_t(sampler_.batch(shard, sub_step).size());
  }
  int64_t batches_per_epoch() const override { return sampler_.batches_per_epoch(); }
  Status fill(int shard, int64_t sub_step, std::span<float* const> tops) override {
    rows_.fill(sampler_.batch(shard, sub_step), tops);
    return {};
  }

 private:
  const EncodedRows& rows_;
  Sampler& sampler_;
  const int64_t batch_;
};

}  // namespace

/// The shared part of nets of one form, which differ only in the encoding of their columns' values.
struct KeyedTrainer::Form {
  std::string signature;
  Graph graph;
  std::vector<EmbeddingPosterior> posteriors;
  FedTops fed;
  std::vector<std::string> tops;
  std::vector<float> first;  ///< initial weights
  std::shared_ptr<float> weights, gradients;
  std::unique_ptr<PlanSet> plans;
  struct Used {
    Plan* plan;
    std::vector<float*> tops;
    bool begun = false;  ///< by the net in training
  };
  std::map<int64_t, Used> used;  ///< keyed by number of rows

  std::span<float> weights_span() { return {weights.get(), first.size()}; }
  std::span<float> gradients_span() { return {gradients.get(), first.size()}; }

  void open_plans(Device* device) {
    used.clear();
    plans = std::make_unique<PlanSet>(&graph, device,
                                      param_pointers(graph, weights.get(), gradients.get()), true);
  }
  /// Resets the plans to the state before any training.
  void begin(Device* device) {
    std::ranges::copy(first, weights.get());
    std::ranges::fill(gradients_span(), 0.f);
    if (used.size() > kMostPlans) open_plans(device);
    for (auto& [rows, plan] : used) plan.begun = false;
  }
  Result<Used*> plan_for(int64_t rows) {
    const auto found = used.find(rows);
    if (found != used.end()) return &found->second;
    CFT_ASSIGN(Plan * plan, plans->at(rows));
    return &used.emplace(rows, Used{plan, tops_of(*plan, tops)}).first->second;
  }
  /// The weights as a caffemodel, with the table encoding of their own net.
  Result<std::string> model(const TableParam& table) const {
    caffe::NetParameter net = to_weights(graph, {weights.get(), first.size()});
    *table_of(net) = table;
    return serialize_weights(net, ModelFormat::kBinary);
  }
  /// The inputs with the encoding of another net of the form.
  FedTops fed_by(const TableParam& table) const {
    FedTops own = fed;
    for (int i = 0; i < table.top_size(); ++i) own.inputs[size_t(i)].table = table.top(i);
    return own;
  }
};

KeyedTrainer::KeyedTrainer(Options options)
    : options_(std::move(options)),
      seed_(random_seed(options_.solver, options_.seed)),
      device_(make_cpu_device()) {}

KeyedTrainer::~KeyedTrainer() = default;

Result<std::unique_ptr<KeyedTrainer>> KeyedTrainer::create(Options options) {
  CFT_TRY(check(options.solver));
  if (!find_sync_mode(options.solver.sync().mode())) return internal_error("no such mode");
  if (options.epochs < 1 && options.solver.max_iter() < 1) {
    return invalid_argument("nets of keys need a number of epochs or of steps above 0");
  }
  return std::unique_ptr<KeyedTrainer>(new KeyedTrainer(std::move(options)));
}

Result<KeyedTrainer::Form*> KeyedTrainer::form_of(const caffe::NetParameter& net,
                                                  const RowSchema& schema) {
  const std::string wanted = signature(net);
  const auto found = std::ranges::find(forms_, wanted, [](const auto& f) { return f->signature; });
  if (found != forms_.end()) {
    forms_.splice(forms_.begin(), forms_, found);
    return forms_.front().get();
  }
  CFT_ASSIGN(std::unique_ptr<Form> form, make_form(net, schema));
  form->signature = wanted;
  if (forms_.size() >= kMostForms) forms_.pop_back();
  forms_.push_front(std::move(form));
  return forms_.front().get();
}

Result<std::unique_ptr<KeyedTrainer::Form>> KeyedTrainer::make_form(const caffe::NetParameter& net,
                                                                    const RowSchema& schema) {
  const NetText text{net, "net", {}, {}};
  CFT_ASSIGN(const NetChoice choice, training_net({options_.solver, "solver", {}}, &text));
  auto form = std::make_unique<Form>();
  CFT_ASSIGN(form->graph,
             Graph::build(choice.net, choice.state, {.types = layer_types(), .fed = {}}));
  CFT_ASSIGN(form->posteriors, EmbeddingPosterior::all(choice, form->graph));
  CFT_ASSIGN(form->fed, bind_rows(form->graph, schema, {}, false));
  if (!std::ranges::all_of(form->fed.inputs, [](const RowsInput& i) { return bool(i.table); })) {
    return invalid_argument("nets of keys are fed by TableData alone");
  }
  form->tops = form->fed.names();
  form->first.resize(size_t(form->graph.arena_size()));
  CFT_ASSIGN(form->weights, allocate_host_floats(form->graph.arena_size()));
  CFT_ASSIGN(form->gradients, allocate_host_floats(form->graph.arena_size()));
  Random random{uint32_t(seed_)};
  CFT_TRY(init_params(form->graph, random, form->first));
  form->open_plans(device_.get());
  return form;
}

Result<KeyedTrainer::Trained> KeyedTrainer::train(const caffe::NetParameter& net,
                                                  RowTable&& given) {
  if (!table_of(net)) return invalid_argument("nets of keys begin with a TableData");
  CFT_ASSIGN(RowTable rows, in_order(*table_of(net), std::move(given)));
  CFT_ASSIGN(Form * form, form_of(net, rows.schema()));
  CFT_ASSIGN(const ShardStore store, shuffle_rows(nullptr, std::move(rows), 1, seed_));
  CFT_ASSIGN(const EncodedRows encoded, encode(store, form->fed_by(*table_of(net)), seed_));
  CFT_ASSIGN(Sampler sampler, Sampler::make(store.counts(), form->fed.batch, seed_));

  caffe::SolverParameter p = options_.solver;
  if (options_.epochs > 0) {
    const int64_t batches = sampler.batches_per_epoch();
    if (options_.epochs > std::numeric_limits<int>::max() / batches) {
      return invalid_argument(fmt::format("{} epochs of {} batches are more iterations than {}",
                                          options_.epochs, batches,
                                          std::numeric_limits<int>::max()));
    }
    p.set_max_iter(int(options_.epochs * batches));
  }
  CFT_ASSIGN(const LrPolicy policy, LrPolicy::create(p));
  const auto update = [&] {
    return ArenaUpdate::make(p, param_spans(form->graph), form->graph.learned_size());
  };
  CFT_ASSIGN(
      const std::unique_ptr<Sync> sync,
      make_sync(p.sync(), {.floats = form->graph.arena_size(), .pool = &pool_, .seed = seed_},
                update));
  if (!sync->is_synchronous() || sync->round_length(0) != 1) {
    return invalid_argument("nets of keys are trained alone, in a mode of common steps");
  }
  form->begin(device_.get());
  Trained trained;
  trained.rows = store.total_rows();
  trained.steps = p.max_iter();
  int current_step = 0;
  for (int iter = 0; iter < p.max_iter(); ++iter) {
    if (cancelled_) return Status(ErrorCode::kCancelled, "the training was cancelled");
    const std::span<const uint32_t> batch = sampler.batch(0, iter);
    CFT_ASSIGN(Form::Used * of_rows, form->plan_for(int64_t(batch.size())));
    encoded.fill(batch, of_rows->tops);
    CFT_TRY(of_rows->plan->run(
        pool_, {.seed = seed_, .sub_step = iter, .begins = !std::exchange(of_rows->begun, true)}));
    trained.loss = double(of_rows->plan->loss());
    CFT_TRY(check_loss(trained.loss, iter));
    const UpdateStep step{.iter = iter, .rate = rate_at(policy, p, iter, &current_step, {})};
    CFT_TRY(sync->gradient(step, trained.loss, form->gradients_span(), form->weights_span()));
    CFT_TRY(sync->end_round(step, form->gradients_span(), form->weights_span()));
  }
  FirstEpoch epoch(encoded, sampler, form->fed.batch);
  const std::vector<Feed> feeds{{"", &epoch, form->tops}};
  CFT_TRY(check_posteriors(form->posteriors, feeds));
  CFT_TRY(
      take_posterior_means(form->posteriors, form->weights_span(),
                           {.feeds = &feeds, .engine = {device_.get(), &pool_, seed_}, .log = {}}));
  CFT_ASSIGN(trained.model, form->model(*table_of(net)));
  return trained;
}

}  // namespace cafetiere
