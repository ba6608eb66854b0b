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

/// The datasets of a group, which are called by their numbers from 0 on.
Result<Arenas> read_arenas(const Hdf5Reader& file, const std::string& group) {
  Arenas arenas;
  const size_t count = file.datasets(group).size();
  for (size_t i = 0; i < count; ++i) {
    CFT_ASSIGN(Hdf5Floats floats, file.floats(fmt::format("{}/{}", group, i)));
    arenas.push_back(std::move(floats.values));
  }
  return arenas;
}

Status write_arenas(const Arenas& arenas, const std::string& group, Hdf5Writer* file) {
  CFT_TRY(file->group(group));
  for (size_t i = 0; i < arenas.size(); ++i) {
    CFT_TRY(file->floats(fmt::format("{}/{}", group, i), {int64_t(arenas[i].size())}, arenas[i]));
  }
  return {};
}

Result<ReplicaHistory> read_sync(const Hdf5Reader& file) {
  ReplicaHistory sync;
  if (file.datasets("sync").empty()) return sync;
  CFT_ASSIGN(sync.mode, file.string("sync/mode"));
  const size_t replicas = file.groups("sync/replica").size();
  for (size_t i = 0; i < replicas; ++i) {
    CFT_ASSIGN(sync.replicas.emplace_back(), read_arenas(file, fmt::format("sync/replica/{}", i)));
  }
  CFT_ASSIGN(sync.outer, read_arenas(file, "sync/outer"));
  return sync;
}

Status write_sync(const ReplicaHistory& sync, Hdf5Writer* file) {
  if (sync.mode.empty()) return {};
  CFT_TRY(file->string("sync/mode", sync.mode));
  for (size_t i = 0; i < sync.replicas.size(); ++i) {
    CFT_TRY(write_arenas(sync.replicas[i], fmt::format("sync/replica/{}", i), file));
  }
  return write_arenas(sync.outer, "sync/outer", file);
}

Result<SolverState> parse_hdf5_state(const Hdf5Reader& file) {
  SolverState state;
  CFT_ASSIGN(state.iter, file.integer("iter"));
  CFT_ASSIGN(state.learned_net, file.string("learned_net"));
  CFT_ASSIGN(state.current_step, file.integer("current_step"));
  const size_t blobs = file.datasets("history").size();
  for (size_t i = 0; i < blobs; ++i) {
    CFT_ASSIGN(Hdf5Floats blob, file.floats(fmt::format("history/{}", i)));
    state.history.push_back({std::move(blob.shape), std::move(blob.values)});
  }
  CFT_ASSIGN(state.sync, read_sync(file));
  return state;
}

Result<SolverState> parse_any_state(std::string_view bytes, const std::string& source) {
  if (!is_hdf5(bytes)) return parse_binary_state(bytes, source);
  CFT_ASSIGN(const Hdf5Reader file, Hdf5Reader::open(bytes, source));
  return parse_hdf5_state(file);
}

Status write_hdf5_state(const SolverState& state, Hdf5Writer* file) {
  CFT_TRY(file->integer("iter", state.iter));
  CFT_TRY(file->string("learned_net", state.learned_net));
  CFT_TRY(file->integer("current_step", state.current_step));
  CFT_TRY(file->group("history"));
  for (size_t i = 0; i < state.history.size(); ++i) {
    const HistoryBlob& blob = state.history[i];
    CFT_TRY(file->floats(fmt::format("history/{}", i), blob.shape, blob.values));
  }
  return write_sync(state.sync, file);
}

}  // namespace

Result<SolverState> parse_solver_state(std::span<const std::byte> bytes) {
  return parse_any_state({reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                         "solver state");
}

Result<SolverState> read_solver_state(const std::string& path) {
  if (is_hdf5_file(path)) {
    CFT_ASSIGN(const Hdf5Reader file, Hdf5Reader::open_file(path));
    return parse_hdf5_state(file);
  }
  CFT_ASSIGN(const std::string bytes, read_file(path));
  return parse_any_state(bytes, path);
}

Result<std::string> serialize_solver_state(const SolverState& state, ModelFormat format) {
  if (format == ModelFormat::kHdf5) {
    Hdf5Writer file;
    CFT_TRY(write_hdf5_state(state, &file));
    return file.finish();
  }
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
    return invalid_argument(fmt::format(
        "the solver state takes {} bytes; the binary form has at most {}, an HDF5 file "
        "holds more{}",
        size, kMaxFileBytes,
        state.sync.replicas.empty()
            ? ""
            : "; in sync, history \"averaged\" or \"reset\" keeps one history instead of "
              "one a shard"));
  }
  return bytes;
}

Status write_solver_state(const SolverState& state, const std::string& path, ModelFormat format) {
  if (format == ModelFormat::kHdf5) {
    return replace_hdf5(path, [&](Hdf5Writer* file) { return write_hdf5_state(state, file); });
  }
  CFT_ASSIGN(const std::string bytes, serialize_solver_state(state, format));
  return write_file(path, bytes);
}

}  // namespace cafetiere
