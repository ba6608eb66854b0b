// SPDX-License-Identifier: Apache-2.0
// Every function of the C interface with arguments that make no sense: each returns, and where a
// pointer that it needs is NULL it fails with a text that names it.
#include <gmock/gmock.h>

#include <climits>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <regex>
#include <set>
#include <tuple>
#include <type_traits>

#include "tests/capi/handed.h"
#include "tests/capi/small_training.h"
#include "tests/data/lmdb_file.h"
#include "tests/support/temp_dir.h"

namespace cafetiere {
namespace {

using testing::IsEmpty;

const std::string kDeep(5000, '[');
std::vector<const char*> texts() {
  return {nullptr,
          "",
          "{",
          "[]",
          "{}",
          "\xff\xfe",
          kDeep.c_str(),
          R"({"size": -1})",
          R"({"solver": 3})",
          "no such"};
}

/// One of each kind of object, in good order.
struct Objects {
  cft_row_budget* budget = nullptr;
  cft_rows* rows = small_rows(0);
  cft_group* group = nullptr;
  cft_trainer* trainer = nullptr;
  cft_replica* replica = nullptr;
  cft_rounds* rounds = nullptr;
  cft_predictor* predictor = nullptr;
  cft_net* net = nullptr;
  cft_solver* solver = nullptr;
  cft_transformer* transformer = nullptr;
  cft_lmdb* lmdb = nullptr;
  cft_lmdb_cursor* cursor = nullptr;
  cft_lmdb_writer* writer = nullptr;
  cft_leveldb* leveldb = nullptr;
  cft_row_check* check = nullptr;
  cft_table* table = nullptr;
  cft_keyed* keyed = nullptr;
  cft_hdf5* hdf5 = nullptr;

  explicit Objects(const TempDir& folder) {
    const auto text = [](const nlohmann::json& json) { return json.dump(); };
    nlohmann::json options{{"solver", kSmallSolver}, {"net", kSmallNet}};
    make(cft_row_budget_create(text({{"folder", folder.path("")}}).c_str(), &budget));
    make(cft_group_create(R"({"secret": "sixteen bytes at least"})", &group));
    make(cft_trainer_create(text(options).c_str(), nullptr, &trainer));
    options["sync"] = "mode: 'average'";
    make(cft_replica_create(text(options).c_str(), &replica));
    make(cft_rounds_create(text(options).c_str(), &rounds));
    const nlohmann::json predict{{"net", kSmallNet},
                                 {"schema", nlohmann::json::parse(kSmallSchema)}};
    void* model = nullptr;
    uint64_t bytes = 0;
    make(cft_rounds_model(rounds, &model, &bytes));
    make(cft_predictor_create(text(predict).c_str(), model, bytes, &predictor));
    make(cft_row_check_create(text(predict).c_str(), &check));
    const nlohmann::json columns{{"schema", nlohmann::json::parse(kSmallSchema)},
                                 {"columns", {{{"name", "data"}, {"size", 4}}}}};
    make(cft_table_create(text(columns).c_str(), &table));
    make(cft_keyed_create(text({{"schema", columns["schema"]},
                                {"columns", columns["columns"]},
                                {"solver", "base_lr: 0.1 lr_policy: 'fixed' max_iter: 1"}})
                              .c_str(),
                          &keyed));
    const std::string weights = handed_bytes(cft_weights_hdf5, model, bytes);
    make(cft_hdf5_open(folder.write("weights.h5", weights).c_str(), &hdf5));
    cft_free(model);
    make(cft_net_create(text({{"text", kSmallNet}, {"phase", "TRAIN"}}).c_str(), nullptr, &net));
    const std::string solver_text = std::string(kSmallSolver) + " snapshot_prefix: '" +
                                    folder.path("s") + "' net_param {" + kSmallNet + "}";
    make(cft_solver_create(text({{"text", solver_text}}).c_str(), nullptr, &solver));
    make(cft_transformer_create("{}", &transformer));
    make(
        cft_lmdb_open(folder.write("data.mdb", file_of(some_records(20))).c_str(), nullptr, &lmdb));
    make(cft_lmdb_cursor_create(lmdb, nullptr, 0, nullptr, 0, &cursor));
    make(cft_lmdb_create(folder.path("written").c_str(), &writer));
    cft_lmdb_writer* empty = nullptr;
    make(cft_leveldb_create(folder.path("leveldb").c_str(), &empty));
    cft_lmdb_writer_close(empty);
    make(cft_leveldb_open(folder.path("leveldb").c_str(), &leveldb));
  }
  ~Objects() {
    cft_row_budget_destroy(budget);
    cft_rows_destroy(rows);
    cft_group_destroy(group);
    cft_trainer_destroy(trainer);
    cft_replica_destroy(replica);
    cft_rounds_destroy(rounds);
    cft_predictor_destroy(predictor);
    cft_net_destroy(net);
    cft_solver_destroy(solver);
    cft_transformer_destroy(transformer);
    cft_lmdb_close(lmdb);
    cft_lmdb_cursor_destroy(cursor);
    cft_lmdb_writer_close(writer);
    cft_leveldb_close(leveldb);
    cft_row_check_destroy(check);
    cft_table_destroy(table);
    cft_keyed_destroy(keyed);
    cft_hdf5_close(hdf5);
  }
  static void make(int code) { ASSERT_EQ(code, 0) << cft_last_error(); }
};

void hear(void*, int, const char*) {}
bool steps_only = false;  // numbers that a solver could take for a number of steps

template <class T>
inline constexpr bool is_place =
    std::is_pointer_v<std::remove_pointer_t<T>> && !std::is_const_v<std::remove_pointer_t<T>>;
template <>
inline constexpr bool is_place<int32_t*> = true;
template <>
inline constexpr bool is_place<int64_t*> = true;
template <>
inline constexpr bool is_place<uint64_t*> = true;

template <class T>
inline constexpr bool is_sized = requires(T t) {
  t->struct_size;
};

/// An empty struct that says that it has this size; no caller of more than one may read it.
template <class T>
T sized(uint64_t size) {
  static std::map<uint64_t, std::remove_const_t<std::remove_pointer_t<T>>> structs;
  auto& one = structs[size];
  one = {};
  one.struct_size = size;
  return &one;
}

/// A place for a result of type T.
template <class T>
T place() {
  static std::remove_pointer_t<T> result{};
  return &result;
}

/// What an argument of type T may be. Memory that the caller owns is NULL whatever its size is said
/// to be, as a size that lies about memory cannot be seen through; places for results are real.
template <class T>
std::vector<T> values(const Objects& o) {
  if constexpr (std::is_same_v<T, const char*>) {
    return texts();
  } else if constexpr (std::is_integral_v<T>) {
    if (steps_only) return {T(-1), 0, 1};
    return {T(-1), 0, 1, 7, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()};
  } else if constexpr (std::is_floating_point_v<T>) {
    return {T(-1), std::numeric_limits<T>::quiet_NaN()};
  } else if constexpr (std::is_same_v<T, cft_log>) {
    return {nullptr, &hear};
  } else if constexpr (is_sized<T>) {
    return {nullptr, sized<T>(sizeof *T()), sized<T>(0), sized<T>(SIZE_MAX - 7), sized<T>(9)};
  } else if constexpr (is_place<T>) {
    return {nullptr, place<T>()};
  } else {
    const std::tuple all{o.budget,    o.rows,        o.group, o.trainer, o.replica, o.rounds,
                         o.predictor, o.transformer, o.net,   o.solver,  o.lmdb,    o.cursor,
                         o.writer,    o.leveldb,     o.check, o.hdf5,    o.table,   o.keyed};
    using Object = std::remove_const_t<std::remove_pointer_t<T>>*;
    std::vector<T> list{nullptr};
    std::apply(
        [&](auto... object) {
          const auto add = [&](auto* candidate) {
            if constexpr (std::is_same_v<decltype(candidate), Object>) list.push_back(candidate);
          };
          (add(object), ...);
        },
        all);
    return list;
  }
}

std::set<std::string> called;

template <class... Args>
class Caller {
 public:
  Caller(const char* name, int (*function)(Args...), const Objects& objects)
      : name_(name), function_(function), lists_(values<Args>(objects)...) {
    called.insert(name);
  }
  void call_all() { choose<0>(); }

 private:
  template <size_t I>
  void choose() {
    if constexpr (I == sizeof...(Args)) {
      const int code = std::apply(function_, arguments_);
      EXPECT_TRUE(code >= 0 && code <= CFT_INTERNAL) << name_;
      EXPECT_EQ(code == 0, *cft_last_error() == '\0') << name_ << ": " << cft_last_error();
      std::apply([&](auto... argument) { (release(argument), ...); }, arguments_);
      if (code == CFT_INTERNAL) internal_.insert(cft_last_error());
    } else {
      for (const auto& value : std::get<I>(lists_)) {
        std::get<I>(arguments_) = value;
        choose<I + 1>();
      }
    }
  }

  /// Gives back what a call has put there.
  template <class T>
  void release(T argument) {
    if constexpr (std::is_same_v<T, char**> || std::is_same_v<T, void**>) {
      if (argument) cft_free(std::exchange(*argument, nullptr));
    } else if constexpr (std::is_same_v<T, cft_memory**>) {
      if (argument) cft_memory_release(std::exchange(*argument, nullptr));
    } else if constexpr (std::is_same_v<T, cft_net**>) {
      const bool borrowed = std::string_view(name_) == "cft_solver_net";
      cft_net* const net = argument ? std::exchange(*argument, nullptr) : nullptr;
      if (!borrowed) cft_net_destroy(net);
    } else if constexpr (std::is_same_v<T, cft_lmdb_cursor**>) {
      if (argument) cft_lmdb_cursor_destroy(std::exchange(*argument, nullptr));
    }
  }

  const char* name_;
  int (*function_)(Args...);
  std::tuple<std::vector<Args>...> lists_;
  std::tuple<Args...> arguments_;

 public:
  std::set<std::string> internal_;  // errors that the caller is not to blame for
};

template <class... Args>
void call(const char* name, int (*function)(Args...), const Objects& objects) {
  Caller<Args...> caller(name, function, objects);
  caller.call_all();
  EXPECT_THAT(caller.internal_, IsEmpty()) << name;
}

#define CALL(function) call(#function, &function, objects)

TEST(Hostile, NoCallCrashesWhateverItIsGiven) {
  const TempDir folder;
  const Objects objects(folder);
  CALL(cft_use_instruction_set);
  CALL(cft_describe);
  CALL(cft_rows_create);
  CALL(cft_row_budget_create);
  CALL(cft_rows_create_within);
  CALL(cft_rows_append);
  CALL(cft_rows_count);
  CALL(cft_group_create);
  CALL(cft_group_address);
  CALL(cft_group_set_secret);
  CALL(cft_group_connect);
  CALL(cft_group_barrier);
  CALL(cft_group_log);
  CALL(cft_trainer_create);
  CALL(cft_trainer_restore);
  CALL(cft_trainer_restore_files);
  CALL(cft_trainer_log);
  CALL(cft_trainer_checkpoint);
  CALL(cft_trainer_rows);
  CALL(cft_trainer_seconds);
  CALL(cft_trainer_place);
  CALL(cft_thread_stacks);
  CALL(cft_trainer_result);
  CALL(cft_trainer_model);
  CALL(cft_trainer_state);
  CALL(cft_weights_hdf5);
  CALL(cft_weights_safetensors);
  CALL(cft_safetensors_weights);
  CALL(cft_onnx_export);
  CALL(cft_onnx_import);
  CALL(cft_explain);
  CALL(cft_step_seconds);
  CALL(cft_state_hdf5);
  CALL(cft_rows_keys);
  CALL(cft_tree_sum);
  CALL(cft_replica_create);
  CALL(cft_replica_restore);
  CALL(cft_replica_round);
  CALL(cft_replica_test);
  CALL(cft_replica_posterior);
  CALL(cft_replica_history);
  CALL(cft_replica_log);
  CALL(cft_replica_step);
  CALL(cft_rounds_create);
  CALL(cft_rounds_restore);
  CALL(cft_rounds_describe);
  CALL(cft_rounds_shared);
  CALL(cft_rounds_end);
  CALL(cft_rounds_test);
  CALL(cft_rounds_begin_posterior);
  CALL(cft_rounds_end_posterior);
  CALL(cft_rounds_model);
  CALL(cft_rounds_state);
  CALL(cft_rounds_log);
  CALL(cft_predictor_create);
  CALL(cft_predictor_share);
  CALL(cft_predictor_reset);
  CALL(cft_predictor_describe);
  CALL(cft_predictor_run);
  CALL(cft_predictor_fill);
  CALL(cft_predictor_floats);
  CALL(cft_predictor_row_size);
  CALL(cft_lmdb_open);
  CALL(cft_lmdb_records);
  CALL(cft_lmdb_has_ranges);
  CALL(cft_lmdb_split);
  CALL(cft_lmdb_cursor_create);
  CALL(cft_lmdb_cursor_next);
  CALL(cft_lmdb_put);
  CALL(cft_lmdb_commit);
  CALL(cft_leveldb_next);
  CALL(cft_row_check_create);
  CALL(cft_row_check_run);
  CALL(cft_table_create);
  CALL(cft_table_add);
  CALL(cft_table_merge);
  CALL(cft_table_statistics);
  CALL(cft_table_net);
  CALL(cft_keyed_create);
  CALL(cft_keyed_add);
  CALL(cft_keyed_train);
  CALL(cft_keyed_drop);
  CALL(cft_hdf5_open);
  CALL(cft_hdf5_shape);
  CALL(cft_hdf5_read);
  CALL(cft_net_create);
  CALL(cft_net_describe);
  CALL(cft_net_blob);
  CALL(cft_net_param);
  CALL(cft_net_reshape_blob);
  CALL(cft_net_reshape);
  CALL(cft_net_forward);
  CALL(cft_net_backward);
  CALL(cft_net_clear_param_diffs);
  CALL(cft_net_set_input);
  CALL(cft_net_copy_from);
  CALL(cft_net_share_with);
  CALL(cft_solver_create);
  CALL(cft_solver_describe);
  CALL(cft_solver_net);
  CALL(cft_solver_apply_update);
  CALL(cft_solver_set_base_lr);
  CALL(cft_solver_snapshot);
  CALL(cft_solver_restore);
  CALL(cft_solver_join);
  CALL(cft_image_decode);
  CALL(cft_image_resize);
  CALL(cft_transformer_create);
  CALL(cft_transformer_run);
  CALL(cft_schema);
  CALL(cft_layer_types);
  CALL(cft_sync_modes);
  CALL(cft_report);
  CALL(cft_trainer_run);
  CALL(cft_trainer_validation);
  CALL(cft_replica_rows);
  CALL(cft_replica_validation);
  steps_only = true;
  CALL(cft_solver_step);
  CALL(cft_solver_solve);
  steps_only = false;
  // A path that is any text would leave a file beside the tests.
  EXPECT_NE(cft_net_save(nullptr, "x", 0), 0);
  EXPECT_NE(cft_net_save(objects.net, nullptr, 0), 0);
  EXPECT_NE(cft_net_save(objects.net, "", -1), 0);
  EXPECT_NE(cft_trainer_save(nullptr, "x", "x"), 0);
  EXPECT_NE(cft_trainer_save(objects.trainer, nullptr, nullptr), 0);
  EXPECT_NE(cft_trainer_save(objects.trainer, "", "/no/such/folder/x"), 0);
  cft_lmdb_writer* writer = nullptr;
  EXPECT_NE(cft_lmdb_create(nullptr, &writer), 0);
  EXPECT_NE(cft_lmdb_create("x", nullptr), 0);
  EXPECT_NE(cft_lmdb_create("", &writer), 0);
  EXPECT_NE(cft_lmdb_create("/no/such/folder/x", &writer), 0);
  EXPECT_NE(cft_leveldb_create(nullptr, &writer), 0);
  EXPECT_NE(cft_leveldb_create("x", nullptr), 0);
  EXPECT_NE(cft_leveldb_create("", &writer), 0);
  EXPECT_NE(cft_leveldb_create("/no/such/folder/x", &writer), 0);
  cft_leveldb* leveldb = nullptr;
  EXPECT_NE(cft_leveldb_open(nullptr, &leveldb), 0);
  EXPECT_NE(cft_leveldb_open("x", nullptr), 0);
  EXPECT_NE(cft_leveldb_open("", &leveldb), 0);
  EXPECT_NE(cft_leveldb_open(folder.path("none").c_str(), &leveldb), 0);
  EXPECT_FALSE(std::filesystem::exists(folder.path("none"))) << "left by a reader";
  called.insert({"cft_net_save", "cft_trainer_save", "cft_lmdb_create", "cft_leveldb_create",
                 "cft_leveldb_open"});
  called.insert("cft_main");  // tests/lib/c_test.c

  cft_free(nullptr);
  cft_row_budget_destroy(nullptr);
  cft_rows_destroy(nullptr);
  cft_group_cancel(nullptr);
  cft_group_destroy(nullptr);
  cft_trainer_cancel(nullptr);
  cft_trainer_destroy(nullptr);
  cft_replica_cancel(nullptr);
  cft_replica_destroy(nullptr);
  cft_rounds_destroy(nullptr);
  cft_predictor_destroy(nullptr);
  cft_memory_release(nullptr);
  cft_lmdb_close(nullptr);
  cft_lmdb_cursor_destroy(nullptr);
  cft_lmdb_writer_close(nullptr);
  cft_leveldb_close(nullptr);
  cft_row_check_destroy(nullptr);
  cft_table_destroy(nullptr);
  cft_keyed_destroy(nullptr);
  cft_hdf5_close(nullptr);
  cft_net_destroy(nullptr);
  cft_solver_destroy(nullptr);
  cft_transformer_destroy(nullptr);

  std::ifstream file("include/cafetiere/c_api.h");
  const std::string header{std::istreambuf_iterator<char>(file), {}};
  const std::regex function(R"(CFT_API int (cft_\w+)\((?!void\)))");
  int found = 0;
  for (std::sregex_iterator it(header.begin(), header.end(), function), end; it != end; ++it) {
    EXPECT_TRUE(called.contains((*it)[1])) << (*it)[1] << " is not called here";
    ++found;
  }
  EXPECT_GT(found, 60);
}

TEST(Hostile, ANullPointerIsNamed) {
  char* text = nullptr;
  EXPECT_EQ(cft_trainer_result(nullptr, &text), CFT_INVALID_ARGUMENT);
  EXPECT_STREQ(cft_last_error(), "cft_trainer_result: t is NULL");
  const TempDir folder;
  const Objects objects(folder);
  EXPECT_EQ(cft_net_copy_from(objects.net, nullptr), CFT_INVALID_ARGUMENT);
  EXPECT_STREQ(cft_last_error(), "cft_net_copy_from: path is NULL");
  EXPECT_EQ(cft_rows_append(objects.rows, 1, nullptr, 9), CFT_INVALID_ARGUMENT);
  EXPECT_STREQ(cft_last_error(), "chunk is NULL and is to have 9 bytes");
}

}  // namespace
}  // namespace cafetiere
