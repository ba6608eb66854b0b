// SPDX-License-Identifier: Apache-2.0
#include "core/model/solver_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/model/file.h"
#include "core/model/hdf5.h"
#include "core/model/solver_state_hdf5.h"
#include "core/model/stopping_proto.h"

namespace cafetiere {
namespace {

using Arenas = std::vector<std::vector<float>>;
using ArenaProtos = google::protobuf::RepeatedPtrField<caffe::SyncState::Arena>;

constexpr size_t kArrayHead =
    16;  // upper bound in bytes, besides its shape, for an array in binary form

Arenas from_proto(const ArenaProtos& protos) {
  Arenas arenas;
  for (const auto& proto : protos) arenas.emplace_back(proto.value().begin(), proto.value().end());
  return arenas;
}

ReplicaHistory from_proto(const caffe::SyncState& proto) {
  ReplicaHistory sync{proto.mode(), {}, from_proto(proto.outer())};
  for (const auto& replica : proto.replica()) {
    sync.replicas.push_back(from_proto(replica.history()));
  }
  return sync;
}

Result<SolverState> parse_binary_state(std::string_view bytes, const std::string& source) {
  caffe::SolverState proto;
  if (bytes.size() > static_cast<size_t>(kMaxFileBytes) ||
      !proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return invalid_argument(source + ": is not a solver state, or is cut off");
  }
  // Weights parse as well: their fields are unknown here.
  if (!proto.has_iter()) {
    return invalid_argument(source +
                            ": is not a solver state, which says its iteration: a caffemodel is "
                            "given as weights, and a training resumed from the .solverstate");
  }
  SolverState state{proto.iter(), proto.learned_net(), proto.current_step(), {}, {}, {}};
  for (int i = 0; i < proto.history_size(); ++i) {
    const caffe::BlobProto& blob = proto.history(i);
    HistoryBlob history;
    CFT_ASSIGN(history.shape, blob_shape(blob));
    history.values.resize(value_count(blob));
    CFT_TRY(blob_to_floats(blob, history.shape, history.values)
                .with_context(fmt::format("{}: history blob {}", source, i)));
    state.history.push_back(std::move(history));
  }
  state.sync = from_proto(proto.sync());
  state.stopping = tests_from_proto(proto.stopping());
  state.precision = proto.precision();
  return state;
}

std::vector<size_t> sizes(const Arenas& arenas) {
  std::vector<size_t> sizes;
  for (const auto& arena : arenas) sizes.push_back(arena.size());
  return sizes;
}

class MemoryState final : public StateSource {
 public:
  explicit MemoryState(std::shared_ptr<const SolverState> state) : state_(std::move(state)) {
    const ReplicaHistory& sync = state_->sync;
    outline = {.iter = state_->iter,
               .learned_net = state_->learned_net,
               .current_step = state_->current_step,
               .mode = sync.mode,
               .outer = sizes(sync.outer),
               .stopping = state_->stopping,
               .precision = state_->precision};
    for (const HistoryBlob& blob : state_->history) outline.history.push_back(blob.shape);
    for (const Arenas& shard : sync.replicas) outline.replicas.push_back(sizes(shard));
  }

  Status read(const StateArray& array, size_t begin, std::span<float> out) override {
    const std::vector<float>& values = values_of(array);
    if (begin > values.size() || out.size() > values.size() - begin) {
      return invalid_argument("the solver state has fewer values than its shapes say");
    }
    std::copy_n(values.begin() + ptrdiff_t(begin), out.size(), out.begin());
    return {};
  }

 private:
  const std::vector<float>& values_of(const StateArray& array) const {
    if (array.kind == StateArray::kHistory) return state_->history[array.index].values;
    if (array.kind == StateArray::kOuter) return state_->sync.outer[array.index];
    return state_->sync.replicas[array.shard][array.index];
  }
  const std::shared_ptr<const SolverState> state_;
};

/// Reads an array's values into a message.
Status read_all(StateSource& state, const StateArray& array, size_t floats,
                google::protobuf::RepeatedField<float>* values) {
  values->Resize(int(floats), 0.F);
  return state.read(array, 0, {values->mutable_data(), floats});
}

Status read_all(StateSource& state, StateArray array, const std::vector<size_t>& floats,
                ArenaProtos* protos) {
  for (array.index = 0; array.index < floats.size(); ++array.index) {
    CFT_TRY(read_all(state, array, floats[array.index], protos->Add()->mutable_value()));
  }
  return {};
}

/// The same, into a state in memory.
Result<Arenas> read_all(StateSource& state, StateArray array, const std::vector<size_t>& floats) {
  Arenas arenas;
  for (array.index = 0; array.index < floats.size(); ++array.index) {
    CFT_TRY(state.read(array, 0, arenas.emplace_back(floats[array.index])));
  }
  return arenas;
}

Result<std::string> serialize_binary(StateSource& state) {
  const StateOutline& o = state.outline;
  if (const size_t size = binary_bytes(o); size > static_cast<size_t>(kMaxFileBytes)) {
    return invalid_argument(fmt::format(
        "the solver state takes {} bytes; the binary form has at most {}, an HDF5 file "
        "holds more{}",
        size, kMaxFileBytes,
        o.replicas.empty() ? ""
                           : "; modes \"average\" and \"diloco\" have one history instead of one "
                             "for each shard with sync { history: \"averaged\" } or \"reset\""));
  }
  caffe::SolverState proto;
  proto.set_iter(o.iter);
  proto.set_learned_net(o.learned_net);
  proto.set_current_step(o.current_step);
  for (size_t i = 0; i < o.history.size(); ++i) {
    caffe::BlobProto* blob = proto.add_history();
    floats_to_blob({}, o.history[i], blob);
    CFT_TRY(read_all(state, {StateArray::kHistory, i}, size_t(o.history[i].count()),
                     blob->mutable_data()));
  }
  if (!o.mode.empty()) {
    proto.mutable_sync()->set_mode(o.mode);
    for (size_t shard = 0; shard < o.replicas.size(); ++shard) {
      CFT_TRY(read_all(state, {StateArray::kReplica, 0, shard}, o.replicas[shard],
                       proto.mutable_sync()->add_replica()->mutable_history()));
    }
    CFT_TRY(read_all(state, {StateArray::kOuter}, o.outer, proto.mutable_sync()->mutable_outer()));
  }
  if (!o.stopping.curve.empty()) tests_to_proto(o.stopping, proto.mutable_stopping());
  if (!o.precision.empty()) proto.set_precision(o.precision);
  return proto.SerializeAsString();
}

}  // namespace

StoppingTests tests_from_proto(const caffe::StoppingState& proto) {
  StoppingTests tests{{}, {proto.best().begin(), proto.best().end()}};
  for (int i = 0; i < std::min(proto.iter_size(), proto.value_size()); ++i) {
    tests.curve.emplace_back(proto.iter(i), proto.value(i));
  }
  return tests;
}

void tests_to_proto(const StoppingTests& tests, caffe::StoppingState* proto) {
  for (const auto& [iter, value] : tests.curve) {
    proto->add_iter(iter);
    proto->add_value(value);
  }
  proto->mutable_best()->Add(tests.best.begin(), tests.best.end());
}

std::unique_ptr<StateSource> source_of(SolverState state) {
  return std::make_unique<MemoryState>(std::make_shared<const SolverState>(std::move(state)));
}

Result<SolverState> whole_state(StateSource& source) {
  const StateOutline& o = source.outline;
  SolverState state{o.iter, o.learned_net, o.current_step, {}, {}, o.stopping, o.precision};
  for (size_t i = 0; i < o.history.size(); ++i) {
    std::vector<float> values(size_t(o.history[i].count()));
    CFT_TRY(source.read({StateArray::kHistory, i}, 0, values));
    state.history.push_back({o.history[i], std::move(values)});
  }
  state.sync.mode = o.mode;
  for (size_t shard = 0; shard < o.replicas.size(); ++shard) {
    CFT_ASSIGN(state.sync.replicas.emplace_back(),
               read_all(source, {StateArray::kReplica, 0, shard}, o.replicas[shard]));
  }
  CFT_ASSIGN(state.sync.outer, read_all(source, {StateArray::kOuter}, o.outer));
  return state;
}

Result<std::unique_ptr<StateSource>> open_solver_state(const std::string& path) {
  if (is_hdf5_file(path)) {
    CFT_ASSIGN(Hdf5Reader file, Hdf5Reader::open_file(path));
    return open_hdf5_state(std::move(file));
  }
  CFT_ASSIGN(const std::string bytes, read_file(path));
  CFT_ASSIGN(SolverState state, parse_binary_state(bytes, path));
  return source_of(std::move(state));
}

Result<SolverState> parse_solver_state(std::span<const std::byte> bytes) {
  const std::string_view text{reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  if (!is_hdf5(text)) return parse_binary_state(text, "solver state");
  CFT_ASSIGN(Hdf5Reader file, Hdf5Reader::open(text, "solver state"));
  CFT_ASSIGN(const auto source, open_hdf5_state(std::move(file)));
  return whole_state(*source);
}

size_t binary_bytes(const StateOutline& outline) {
  size_t floats = 0, bytes = outline.learned_net.size() + outline.mode.size() + 4 * kArrayHead;
  const auto add = [&](size_t count) {
    floats += count;
    bytes += kArrayHead;
  };
  for (const Shape& shape : outline.history) {
    add(size_t(shape.count()));
    bytes += 10 * size_t(shape.axes());
  }
  for (const auto& shard : outline.replicas) {
    bytes += kArrayHead;
    std::ranges::for_each(shard, add);
  }
  std::ranges::for_each(outline.outer, add);
  add(outline.stopping.best.size());
  bytes += outline.stopping.curve.size() * 20 + kArrayHead;
  return bytes + floats * sizeof(float);
}

Result<std::string> serialize_solver_state(StateSource& state, ModelFormat format) {
  if (format == ModelFormat::kBinary) return serialize_binary(state);
  Hdf5Writer file;
  CFT_TRY(write_hdf5_state(state, &file));
  return file.finish();
}

Result<std::string> serialize_solver_state(const SolverState& state, ModelFormat format) {
  MemoryState source(std::shared_ptr<const SolverState>(std::shared_ptr<void>(), &state));
  return serialize_solver_state(source, format);
}

Status write_solver_state(StateSource& state, const std::string& path, ModelFormat format) {
  if (format == ModelFormat::kHdf5) {
    return replace_hdf5(path, [&](Hdf5Writer* file) { return write_hdf5_state(state, file); });
  }
  CFT_ASSIGN(const std::string bytes, serialize_solver_state(state, format));
  return write_file(path, bytes);
}

}  // namespace cafetiere
