// SPDX-License-Identifier: Apache-2.0
#include "core/model/solver_state.h"

#include <fmt/format.h>

#include <string_view>

#include "core/model/file.h"
#include "core/model/hdf5.h"

namespace cafetiere {
namespace {

using Arenas = std::vector<std::vector<float>>;
using ArenaProtos = google::protobuf::RepeatedPtrField<caffe::SyncState::Arena>;

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

void to_proto(const Arenas& arenas, ArenaProtos* protos) {
  for (const std::vector<float>& arena : arenas) {
    protos->Add()->mutable_value()->Add(arena.begin(), arena.end());
  }
}

void to_proto(const ReplicaHistory& sync, caffe::SyncState* proto) {
  proto->set_mode(sync.mode);
  for (const Arenas& replica : sync.replicas) {
    to_proto(replica, proto->add_replica()->mutable_history());
  }
  to_proto(sync.outer, proto->mutable_outer());
}

Result<SolverState> parse_binary_state(std::string_view bytes, const std::string& source) {
  caffe::SolverState proto;
  if (bytes.size() > static_cast<size_t>(kMaxFileBytes) ||
      !proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return invalid_argument(source + ": is not a solver state, or is cut off");
  }
  SolverState state{proto.iter(), proto.learned_net(), proto.current_step(), {}, {}};
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
  return state;
}

Result<SolverState> parse_hdf5(std::string_view bytes, const std::string& source) {
  CFT_ASSIGN(const Hdf5Reader file, Hdf5Reader::open(bytes, source));
  SolverState state;
  CFT_ASSIGN(state.iter, file.integer("iter"));
  CFT_ASSIGN(state.learned_net, file.string("learned_net"));
  CFT_ASSIGN(state.current_step, file.integer("current_step"));
  const size_t blobs = file.datasets("history").size();
  for (size_t i = 0; i < blobs; ++i) {
    CFT_ASSIGN(Hdf5Floats blob, file.floats(fmt::format("history/{}", i)));
    state.history.push_back({std::move(blob.shape), std::move(blob.values)});
  }
  return state;
}

Result<SolverState> parse_any_state(std::string_view bytes, const std::string& source) {
  return is_hdf5(bytes) ? parse_hdf5(bytes, source) : parse_binary_state(bytes, source);
}

Result<std::string> to_hdf5(const SolverState& state) {
  if (!state.sync.mode.empty()) {
    return invalid_argument("only the binary form holds what mode \"" + state.sync.mode +
                            "\" keeps: set snapshot_format to BINARYPROTO");
  }
  Hdf5Writer file;
  CFT_TRY(file.integer("iter", state.iter));
  CFT_TRY(file.string("learned_net", state.learned_net));
  CFT_TRY(file.integer("current_step", state.current_step));
  CFT_TRY(file.group("history"));
  for (size_t i = 0; i < state.history.size(); ++i) {
    const HistoryBlob& blob = state.history[i];
    CFT_TRY(file.floats(fmt::format("history/{}", i), blob.shape, blob.values));
  }
  return file.finish();
}

}  // namespace

Result<SolverState> parse_solver_state(std::span<const std::byte> bytes) {
  return parse_any_state({reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                         "solver state");
}

Result<SolverState> read_solver_state(const std::string& path) {
  CFT_ASSIGN(const std::string bytes, read_file(path));
  return parse_any_state(bytes, path);
}

Result<std::string> serialize_solver_state(const SolverState& state, ModelFormat format) {
  if (format == ModelFormat::kHdf5) return to_hdf5(state);
  caffe::SolverState proto;
  proto.set_iter(state.iter);
  proto.set_learned_net(state.learned_net);
  proto.set_current_step(state.current_step);
  for (const HistoryBlob& blob : state.history) {
    floats_to_blob(blob.values, blob.shape, proto.add_history());
  }
  if (!state.sync.mode.empty()) to_proto(state.sync, proto.mutable_sync());
  std::string bytes;
  const size_t size = proto.ByteSizeLong();
  if (size > static_cast<size_t>(kMaxFileBytes) || !proto.SerializeToString(&bytes)) {
    return invalid_argument(
        fmt::format("the solver state takes {} bytes; the binary form has at most {}: set "
                    "snapshot_format to HDF5",
                    size, kMaxFileBytes));
  }
  return bytes;
}

Status write_solver_state(const SolverState& state, const std::string& path, ModelFormat format) {
  CFT_ASSIGN(const std::string bytes, serialize_solver_state(state, format));
  return write_file(path, bytes);
}

}  // namespace cafetiere
