// SPDX-License-Identifier: Apache-2.0
// The C interface: the bytes say which functions are called, on which objects and with what. What is
// left out ends elsewhere than in a code: cft_main, and what writes files where a text says.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "fuzz/call_arguments.h"
#include "fuzz/targets.h"

namespace cafetiere::fuzz {
namespace {

constexpr size_t kFloats = 4096;
float api_floats[kFloats], api_sums[kFloats];  // arrays that calls read and write

void hear_nothing(void*, int, const char*) {}
int stop_never(void*, const char*) { return 0; }

/// Ends the process where a call breaks its word: codes are known, and errors have a text.
int checked(int code) {
  if (code < 0 || code > CFT_INTERNAL || (code == 0) != (*cft_last_error() == 0)) std::abort();
  return code;
}

/// Calls a function whose arguments can all be drawn.
template <class... Args>
void call(CallArguments& a, int (*function)(Args...)) {
  const std::tuple<Args...> arguments{a.draw<Args>()...};
  checked(std::apply(function, arguments));
}

template <class T, class Call>
void keep_object(CallArguments& a, const Call& make_object) {
  T* made = nullptr;
  if (checked(make_object(&made)) == 0) destroy(a.keep(made));
}

/// Calls a function that gives text.
template <class Call>
void keep_text(CallArguments& a, const Call& give) {
  char* text = nullptr;
  if (checked(give(&text)) == 0) a.keep_bytes(text, std::strlen(text));
}

template <class Call>
void keep_bytes(CallArguments& a, const Call& give) {
  void* bytes = nullptr;
  uint64_t size = 0;
  if (checked(give(&bytes, &size)) == 0) a.keep_bytes(bytes, size);
}

/// `size` of a struct that may be another version's, or none's.
uint64_t struct_size(CallArguments& a, uint64_t size) {
  const uint8_t which = a.byte();
  return which < 200 ? size : which < 240 ? size / 2 : uint64_t(a.number());
}

cft_host host_of(CallArguments& a) {
  cft_host host{};
  host.log = hear_nothing;
  host.struct_size = std::min<uint64_t>(struct_size(a, sizeof host), sizeof host);
  return host;
}

void call_rows(CallArguments& a) {
  switch (a.byte() % 7) {
    case 0:
      return keep_object<cft_rows>(a, [&](auto out) { return cft_rows_create(a.text(), out); });
    case 1:
      return call(a, cft_rows_append);
    case 2: {  // one row of the usual schema
      const float data[] = {1, float(a.byte())};
      const uint32_t sizes[] = {sizeof data, sizeof(int32_t)};
      const int32_t label = a.byte() % 2;
      char row[2 * sizeof(uint32_t) + sizeof data + sizeof label];
      std::memcpy(row, &sizes[0], 4), std::memcpy(row + 4, data, 8);
      std::memcpy(row + 12, &sizes[1], 4), std::memcpy(row + 16, &label, 4);
      checked(cft_rows_append(a.object<cft_rows>(), 1, row, sizeof row));
      return;
    }
    case 3: {
      int64_t count = 0;
      const cft_rows* rows = a.object<cft_rows>();
      if (checked(cft_rows_count(rows, &count)) || count > 1000) return;
      std::string keys(size_t(count) * 32 + 1, 0);
      checked(cft_rows_keys(rows, a.number(), keys.data()));
      return;
    }
    case 4:
      return keep_object<cft_row_budget>(
          a, [&](auto out) { return cft_row_budget_create(a.text(), out); });
    case 5: {
      const auto budget = a.object<cft_row_budget>();
      return keep_object<cft_rows>(
          a, [&](auto out) { return cft_rows_create_within(a.text(), budget, out); });
    }
    default:
      return destroy(a.keep<cft_rows>(nullptr));
  }
}

void call_files(CallArguments& a) {
  const auto two = [&](auto function) {
    keep_bytes(a, [&](auto out, auto size) {
      const std::string_view bytes = a.bytes();
      return function(bytes.data(), bytes.size(), out, size);
    });
  };
  switch (a.byte() % 10) {
    case 0:
      return two(cft_weights_hdf5);
    case 1:
      return two(cft_weights_safetensors);
    case 2:
      return two(cft_safetensors_weights);
    case 3:
      return keep_bytes(a, [&](auto out, auto size) {
        const std::string_view bytes = a.bytes();
        return cft_state_hdf5(bytes.data(), bytes.size(), a.text(), out, size);
      });
    case 4:
      return keep_bytes(a, [&](auto out, auto size) {
        const std::string_view bytes = a.bytes();
        return cft_onnx_export(a.text(), bytes.data(), bytes.size(), out, size);
      });
    case 5:
      return keep_bytes(a, [&](auto out, auto size) {
        const std::string_view bytes = a.bytes();
        char* net = nullptr;
        const int code = cft_onnx_import(bytes.data(), bytes.size(), a.number(), &net, out, size);
        cft_free(net);
        return code;
      });
    case 6:
      return keep_text(a, [&](auto out) { return cft_describe(a.text(), out); });
    case 7:
      return keep_text(a, [&](auto out) { return cft_explain(a.text(), out); });
    case 8: {
      const char* events = a.text();
      return keep_text(a, [&](auto out) { return cft_report(events, a.text(), out); });
    }
    default:
      checked(cft_use_instruction_set(("x" + std::string(a.bytes())).c_str()));
  }
}

void call_training(CallArguments& a) {
  cft_trainer* const trainer = a.object<cft_trainer>();
  cft_callbacks callbacks{sizeof callbacks, nullptr, stop_never, nullptr};
  callbacks.struct_size = std::min<uint64_t>(struct_size(a, sizeof callbacks), sizeof callbacks);
  switch (a.byte() % 12) {
    case 0:
      return keep_object<cft_trainer>(
          a, [&](auto out) { return cft_trainer_create(a.text(), &callbacks, out); });
    case 1:
      return call(a, cft_trainer_restore);
    case 2:
      return call(a, cft_trainer_validation);
    case 3:
      return call(a, cft_trainer_run);
    case 4:
      return keep_text(a, [&](auto out) { return cft_trainer_result(trainer, out); });
    case 5:
      return keep_bytes(a, [&](auto... out) { return cft_trainer_model(trainer, out...); });
    case 6:
      return keep_bytes(a, [&](auto... out) { return cft_trainer_state(trainer, out...); });
    case 7:
      checked(cft_trainer_log(trainer, hear_nothing, nullptr));
      return;
    case 8:
      return call(a, cft_trainer_checkpoint);
    case 9:
      return cft_trainer_cancel(trainer);
    case 10:
      return keep_object<cft_group>(a, [&](auto out) { return cft_group_create(a.text(), out); });
    default:
      return keep_text(a, [&](auto out) { return cft_group_address(a.object<cft_group>(), out); });
  }
}

void call_rounds(CallArguments& a) {
  cft_replica* const replica = a.object<cft_replica>();
  cft_rounds* const rounds = a.object<cft_rounds>();
  const float* const arrays[] = {api_floats, api_floats, api_floats};
  const auto floats = std::min<uint64_t>(uint64_t(a.number()), kFloats);
  const auto count = std::min(int32_t(a.number()), int32_t(std::size(arrays)));
  switch (a.byte() % 15) {
    case 0:
      return keep_object<cft_replica>(a,
                                      [&](auto out) { return cft_replica_create(a.text(), out); });
    case 1:
      return call(a, cft_replica_rows);
    case 2:
      return call(a, cft_replica_validation);
    case 3:
      return call(a, cft_replica_restore);
    case 4:
      return keep_text(a, [&](auto out) {
        return cft_replica_round(replica, a.number(), std::min<int64_t>(a.number(), 2), api_floats,
                                 floats, out);
      });
    case 5:
      return keep_text(
          a, [&](auto out) { return cft_replica_test(replica, api_floats, floats, out); });
    case 6:
      keep_bytes(a, [&](auto... out) { return cft_replica_history(replica, out...); });
      return keep_bytes(a, [&](auto... out) {
        return cft_replica_posterior(replica, api_floats, floats, out...);
      });
    case 7:
      checked(cft_replica_log(replica, hear_nothing, nullptr));
      return;
    case 8:
      return keep_object<cft_rounds>(a, [&](auto out) { return cft_rounds_create(a.text(), out); });
    case 9:
      return call(a, cft_rounds_restore);
    case 10:
      return keep_text(a, [&](auto out) { return cft_rounds_describe(rounds, out); });
    case 11:
      checked(cft_rounds_shared(rounds, api_floats, floats));
      return;
    case 12:
      checked(cft_rounds_end(rounds, arrays, count, floats));
      checked(cft_rounds_test(rounds, double(count)));
      keep_bytes(a, [&](auto... out) { return cft_rounds_begin_posterior(rounds, out...); });
      checked(cft_rounds_end_posterior(rounds, arrays, count, floats));
      return;
    case 13:
      return keep_bytes(a, [&](auto... out) { return cft_rounds_model(rounds, out...); });
    default:
      checked(cft_tree_sum(arrays, count, floats, api_sums));
      return keep_bytes(
          a, [&](auto... out) { return cft_rounds_state(rounds, arrays, count, floats, out...); });
  }
}

void call_prediction(CallArguments& a) {
  cft_predictor* const predictor = a.object<cft_predictor>();
  float* const outputs[] = {api_floats, api_floats + kFloats / 2};
  const uint64_t room[] = {kFloats / 2, kFloats / 2};
  switch (a.byte() % 5) {
    case 0:
      return keep_object<cft_predictor>(a, [&](auto out) {
        const std::string_view model = a.bytes();
        return cft_predictor_create(a.text(), model.data(), model.size(), out);
      });
    case 1:
      return keep_text(a, [&](auto out) { return cft_predictor_describe(predictor, out); });
    case 2:
      return keep_object<cft_predictor>(
          a, [&](auto out) { return cft_predictor_share(predictor, out); });
    case 3:
      checked(cft_predictor_reset(predictor));
      return;
    default: {
      const std::string_view chunk = a.bytes();
      checked(cft_predictor_fill(predictor, a.number(), chunk.data(), chunk.size(), outputs, room,
                                 int32_t(a.byte() % 3)));
    }
  }
}

void use_net(CallArguments& a, cft_net* net) {
  cft_blob blob{};
  blob.struct_size = std::min<uint64_t>(struct_size(a, sizeof blob), sizeof blob);
  const auto from = int32_t(a.number()), to = int32_t(a.number());
  switch (a.byte() % 11) {
    case 0:
      return keep_text(a, [&](auto out) { return cft_net_describe(net, out); });
    case 1:
      checked(cft_net_blob(net, from, &blob, nullptr));
      return;
    case 2: {
      cft_memory* memory = nullptr;
      checked(cft_net_param(net, from, &blob, &memory));
      return cft_memory_release(memory);
    }
    case 3: {
      int64_t dims[5];
      for (int64_t& dim : dims) dim = int64_t(a.byte() % 6) - 1;
      checked(cft_net_reshape_blob(net, from, dims, int32_t(a.byte() % 7) - 1));
      return;
    }
    case 4:
      checked(cft_net_reshape(net));
      return;
    case 5:
      checked(cft_net_forward(net, from, to, a.byte() % 2 ? api_floats : nullptr));
      return;
    case 6:
      checked(cft_net_backward(net, from, to));
      return;
    case 7:
      checked(cft_net_clear_param_diffs(net));
      return;
    case 8:  // rows of 4^4 floats at most
      checked(cft_net_set_input(net, a.text(), api_floats, api_floats, a.byte() % 16));
      return;
    case 9:
      checked(cft_net_copy_from(net, a.text()));
      return;
    default:
      checked(cft_net_share_with(net, a.object<cft_net>()));
  }
}

void call_nets(CallArguments& a) {
  cft_solver* const solver = a.object<cft_solver>();
  const cft_host host = host_of(a);
  switch (a.byte() % 9) {
    case 0:
      return keep_object<cft_net>(a,
                                  [&](auto out) { return cft_net_create(a.text(), &host, out); });
    case 1:
      return keep_object<cft_solver>(
          a, [&](auto out) { return cft_solver_create(a.text(), &host, out); });
    case 2:
      return keep_text(a, [&](auto out) { return cft_solver_describe(solver, out); });
    case 3: {
      cft_net* net = nullptr;
      if (checked(cft_solver_net(solver, int32_t(a.number()), &net)) == 0) use_net(a, net);
      return;
    }
    case 4:
      checked(cft_solver_step(solver, std::min(int32_t(a.number()), 2)));
      return;
    case 5:
      checked(cft_solver_apply_update(solver));
      return;
    case 6:
      return call(a, cft_solver_set_base_lr);
    case 7:
      checked(cft_solver_restore(solver, a.text()));
      return;
    default:
      return use_net(a, a.object<cft_net>());
  }
}

/// Bytes of the input as the file of a caller's.
struct LmdbBytes {
  std::string_view bytes;
  uint8_t fails;

  static int read(void* context, uint64_t offset, void* out, uint64_t size) {
    auto* self = static_cast<LmdbBytes*>(context);
    if (offset > self->bytes.size() || size > self->bytes.size() - offset) std::abort();
    std::memcpy(out, self->bytes.data() + offset, size);
    return self->fails == 0xff;
  }
};

/// The whole rest of the input is the file, whose cursors do not outlive this.
void call_lmdb(CallArguments& a) {
  LmdbBytes bytes{a.bytes(), a.byte()};
  const cft_file file{struct_size(a, sizeof file) == sizeof file ? sizeof file : 0, &bytes,
                      bytes.bytes.size(), &LmdbBytes::read, nullptr};
  cft_lmdb* lmdb = nullptr;
  checked(cft_lmdb_open(nullptr, &file, &lmdb));
  int32_t has_ranges = 0;
  checked(cft_lmdb_has_ranges(lmdb, &has_ranges));
  const auto ranges = std::min(int32_t(a.number()), 64);
  keep_bytes(a, [&](auto... out) { return cft_lmdb_split(lmdb, ranges, out...); });
  const std::string_view from = a.bytes(), to = a.bytes();
  cft_lmdb_cursor* cursor = nullptr;
  checked(cft_lmdb_cursor_create(lmdb, from.data(), from.size(), to.data(), to.size(), &cursor));
  cft_lmdb_close(lmdb);
  const void *key = "", *value = nullptr;
  uint64_t key_bytes = 0, value_bytes = 0;
  for (int i = 0; i < 1000 && key; ++i) {
    const bool with_value = i % 3 != 2;
    checked(cft_lmdb_cursor_next(cursor, &key, &key_bytes, with_value ? &value : nullptr,
                                 &value_bytes));
  }
  cft_lmdb_cursor_destroy(cursor);
}

}  // namespace

void c_api(std::string_view bytes) {
  constexpr int kMostCalls = 64;
  CallArguments a(bytes);
  for (int i = 0; i < kMostCalls && !a.empty(); ++i) {
    switch (a.byte() % 7) {
      case 0:
        call_rows(a);
        break;
      case 1:
        call_files(a);
        break;
      case 2:
        call_training(a);
        break;
      case 3:
        call_rounds(a);
        break;
      case 4:
        call_prediction(a);
        break;
      case 5:
        call_nets(a);
        break;
      default:
        call_lmdb(a);
    }
  }
}

}  // namespace cafetiere::fuzz
