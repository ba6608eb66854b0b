// SPDX-License-Identifier: Apache-2.0
// A net for each key: that of a training on the key's rows alone, whatever else is trained.
#include <gmock/gmock.h>

#include <cmath>
#include <fstream>
#include <memory>
#include <random>
#include <thread>

#include "tests/capi/handed.h"
#include "tests/capi/small_training.h"

namespace cafetiere {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr int kKeyedEpochs = 4, kKeyedBatch = 16;
const char* const kKeyedSolver = "type: 'Adam' base_lr: 0.01 lr_policy: 'cosine' max_iter: 1";

const json kKeyedSchema = {{"columns",
                            {{{"name", "id"}, {"type", "i64"}},
                             {{"name", "age"}, {"type", "f64"}},
                             {{"name", "city"}, {"type", "string"}},
                             {{"name", "answer"}, {"type", "string"}}}},
                           {"id", "id"}};
const json kKeyedColumns = {{{"name", "age"}},
                            {{"name", "city"}, {"kind", "CATEGORY"}},
                            {{"name", "answer"}, {"kind", "CLASS"}}};

struct KeyRows {
  int64_t count = 0;
  RowBytes bytes;
};

/// Of a key's number come its cities, its classes and whether it has gaps.
KeyRows key_rows(int key, int count, int more_cities = 0) {
  KeyRows rows;
  std::mt19937 random{unsigned(key)};
  for (int i = 0; i < count; ++i) {
    const int city = int(random() % unsigned(2 + key % 12 + more_cities));
    const double age = 20 + double(random() % 60) + key;
    rows.bytes.add(int64_t{i});
    key % 3 == 0 && i % 5 == 0 ? rows.bytes.add_size(0) : rows.bytes.add(age);
    rows.bytes.text("city " + std::to_string(city));
    rows.bytes.text("class " + std::to_string((int(age) / 10 + city) % (2 + key % 2)));
    ++rows.count;
  }
  return rows;
}

json net_options() { return {{"label", "answer"}, {"layers", {12, 6}}, {"batch", kKeyedBatch}}; }

struct KeyedNet {
  std::string net, model;
  double loss = 0;
  bool operator==(const KeyedNet&) const = default;
};

/// What there was before keys: count, make a net, train.
KeyedNet alone(const KeyRows& rows, const json& net, const std::string& solver) {
  cft_table* table = nullptr;
  const json options{{"schema", kKeyedSchema}, {"columns", kKeyedColumns}};
  EXPECT_EQ(cft_table_create(options.dump().c_str(), &table), 0) << cft_last_error();
  const auto bytes = rows.bytes.span();
  EXPECT_EQ(cft_table_add(table, rows.count, bytes.data(), bytes.size()), 0) << cft_last_error();
  KeyedNet trained;
  trained.net = handed_text(cft_table_net, table, net.dump().c_str());
  cft_table_destroy(table);
  cft_rows* given = nullptr;
  EXPECT_EQ(cft_rows_create(kKeyedSchema.dump().c_str(), &given), 0);
  EXPECT_EQ(cft_rows_append(given, rows.count, bytes.data(), bytes.size()), 0);
  const int64_t steps = kKeyedEpochs * ((rows.count + kKeyedBatch - 1) / kKeyedBatch);
  cft_trainer* trainer = nullptr;
  const json training{{"solver", solver}, {"net", trained.net}, {"max_iter", steps}, {"seed", 7}};
  EXPECT_EQ(cft_trainer_create(training.dump().c_str(), nullptr, &trainer), 0) << cft_last_error();
  EXPECT_EQ(cft_trainer_run(trainer, nullptr, given), 0) << cft_last_error();
  trained.model = handed_bytes(cft_trainer_model, trainer);
  trained.loss = json::parse(handed_text(cft_trainer_result, trainer))["loss"].get<double>();
  cft_trainer_destroy(trainer);
  cft_rows_destroy(given);
  return trained;
}

class KeyedTable {
 public:
  explicit KeyedTable(const json& net = net_options(), const std::string& solver = kKeyedSolver,
                      const json& schema = kKeyedSchema, int64_t epochs = kKeyedEpochs) {
    const json options{{"schema", schema}, {"columns", kKeyedColumns}, {"net", net},
                       {"solver", solver}, {"epochs", epochs},         {"seed", 7},
                       {"least_rows", 2}};
    EXPECT_EQ(cft_keyed_create(options.dump().c_str(), &keyed_), 0) << cft_last_error();
  }
  ~KeyedTable() { cft_keyed_destroy(keyed_); }
  KeyedTable(const KeyedTable&) = delete;
  KeyedTable& operator=(const KeyedTable&) = delete;

  int add(const KeyRows& rows) {
    const auto bytes = rows.bytes.span();
    return cft_keyed_add(keyed_, rows.count, bytes.data(), bytes.size());
  }
  int train(KeyedNet* out) {
    cft_keyed_net net{};
    net.struct_size = sizeof net;
    const int code = cft_keyed_train(keyed_, &net);
    if (code != 0) return code;
    *out = {std::string(net.net, net.net_bytes),
            std::string(static_cast<const char*>(net.model), net.model_bytes), net.loss};
    return 0;
  }
  KeyedNet trained(const KeyRows& rows) {
    KeyedNet out;
    EXPECT_EQ(add(rows), 0) << cft_last_error();
    EXPECT_EQ(train(&out), 0) << cft_last_error();
    return out;
  }
  std::string error(const KeyRows& rows) {
    KeyedNet out;
    EXPECT_EQ(add(rows), 0) << cft_last_error();
    EXPECT_EQ(train(&out), CFT_INVALID_ARGUMENT);
    return cft_last_error();
  }
  cft_keyed* get() { return keyed_; }

 private:
  cft_keyed* keyed_ = nullptr;
};

void expect_same(const KeyedNet& keyed, const KeyedNet& alone, int key) {
  EXPECT_EQ(keyed.net, alone.net) << "key " << key;
  EXPECT_TRUE(keyed.model == alone.model) << "key " << key;
  EXPECT_EQ(keyed.loss, alone.loss) << "key " << key;
}

TEST(KeyedNets, AreThoseOfTrainingsOnTheirRowsAlone) {
  KeyedTable keyed;
  for (int key = 0; key < 30; ++key) {
    const KeyRows rows = key_rows(key % 17, 5 + 13 * (key % 11));
    expect_same(keyed.trained(rows), alone(rows, net_options(), kKeyedSolver), key);
  }
}

TEST(KeyedNets, OfSkewedSizes) {
  KeyedTable keyed;
  std::mt19937 random{9};
  for (int key = 0; key < 20; ++key) {
    const int count =
        int(std::pow(10.0, 0.7 + 3.3 * double(random() % 1000) / 999));  // 5 to 10,000
    const KeyRows rows = key_rows(key, count);
    expect_same(keyed.trained(rows), alone(rows, net_options(), kKeyedSolver), key);
  }
}

TEST(KeyedNets, WithAnEmbeddingThatEndsAsPosteriorMeans) {
  json net = net_options();
  net["step_rows"] = kKeyedBatch;
  KeyedTable keyed(net);
  for (const int key : {0, 1}) {
    const KeyRows rows = key_rows(key, 6000, 100);
    const KeyedNet trained = keyed.trained(rows);
    EXPECT_THAT(trained.net, HasSubstr("posterior {"));
    expect_same(trained, alone(rows, net, kKeyedSolver), key);
    net["posterior"] = 0;
    EXPECT_FALSE(trained.model == alone(rows, net, kKeyedSolver).model);
    net["posterior"] = 1;
  }
}

/// The rows of `key_rows`, each with its columns as a fit on them alone feeds them.
TEST(KeyedNets, RowsWithoutIdsAreWhatTheirColumnsAreInTheNetsOrder) {
  json schema = kKeyedSchema, ordered = kKeyedSchema;
  schema["id"] = ordered["id"] = "";
  const auto swapped = [](bool city_first, json& schema) {
    schema["columns"] = json::array();
    for (const char* name : {city_first ? "city" : "age", city_first ? "age" : "city", "answer"}) {
      schema["columns"].push_back(
          {{"name", name}, {"type", std::string(name) == "age" ? "f64" : "string"}});
    }
    KeyRows rows;
    for (int i = 0; i < 60; ++i) {
      std::mt19937 random{unsigned(i)};
      const double age = 20 + double(random() % 60);
      const std::string city = "city " + std::to_string(random() % 12);
      city_first ? rows.bytes.text(city).add(age) : rows.bytes.add(age).text(city);
      rows.bytes.text(age > 50 ? "yes" : "no");
      ++rows.count;
    }
    return rows;
  };
  KeyRows given = swapped(true, schema), as_fed = swapped(false, ordered);
  const auto train = [](const json& schema, const KeyRows& rows) {
    KeyedTable keyed(net_options(), kKeyedSolver, schema);
    return keyed.trained(rows);
  };
  EXPECT_EQ(train(schema, given).model, train(ordered, as_fed).model);
}

TEST(KeyedNets, WithEveryUpdateRuleDropoutAndNorms) {
  json net = net_options();
  net["dropout"] = 0.3;
  net["batch_norm"] = 1;
  for (const char* rule :
       {"SGD", "Nesterov", "AdaGrad", "RMSProp", "AdaDelta", "Adam", "AdamW", "LAMB"}) {
    const std::string solver =
        "type: '" + std::string(rule) +
        "' base_lr: 0.01 lr_policy: 'poly' power: 1 weight_decay: 0.01 max_iter: 1" +
        (std::string(rule) == "AdaGrad" || std::string(rule) == "RMSProp" ? "" : " momentum: 0.9");
    KeyedTable keyed(net, solver);
    keyed.trained(key_rows(1, 33));  // leaves its traces, if any stay
    const KeyRows rows = key_rows(5, 40);
    expect_same(keyed.trained(rows), alone(rows, net, solver), 5);
  }
}

TEST(KeyedNets, WithMembers) {
  json net = net_options();
  net["members"] = 3;
  const std::string solver = "type: 'AdamW' base_lr: 0.01 lr_policy: 'fixed' max_iter: 1";
  KeyedTable keyed(net, solver);
  for (int key : {1, 5}) {
    const KeyRows rows = key_rows(key, 30 + key);
    expect_same(keyed.trained(rows), alone(rows, net, solver), key);
  }
}

TEST(KeyedNets, ALossThatIsNoNumberIsAnError) {
  KeyedTable keyed(net_options(), "type: 'SGD' base_lr: 1e30 lr_policy: 'fixed' max_iter: 1");
  EXPECT_THAT(keyed.error(key_rows(4, 50)), HasSubstr("lower the learning rate (base_lr"));
}

/// Whether the other thread has begun to train or not.
TEST(KeyedNets, CanBeCancelled) {
  KeyedTable keyed(net_options(), kKeyedSolver, kKeyedSchema, 100'000'000);
  ASSERT_EQ(keyed.add(key_rows(4, 50)), 0) << cft_last_error();
  KeyedNet none;
  int code = 0;
  std::thread training([&] { code = keyed.train(&none); });
  cft_keyed_cancel(keyed.get());
  training.join();
  EXPECT_EQ(code, CFT_CANCELLED);
  ASSERT_EQ(keyed.add(key_rows(5, 50)), 0) << cft_last_error();
  EXPECT_EQ(keyed.train(&none), CFT_CANCELLED);
}

TEST(KeyedNets, AnErrorIsItsOwnKeysAlone) {
  KeyedTable keyed;
  const KeyedNet first = keyed.trained(key_rows(4, 50));
  EXPECT_THAT(keyed.error(key_rows(4, 1)), HasSubstr("1 row(s), and a net needs 2"));
  KeyRows one_class, no_label, endless;
  for (int i = 0; i < 9; ++i) {
    one_class.bytes.add(int64_t{i}).add(1.0 * i).text("here").text("yes");
    no_label.bytes.add(int64_t{i})
        .add(1.0 * i)
        .text("here")
        .text(i % 3 ? i % 2 ? "no" : "yes" : "");
    endless.bytes.add(int64_t{i})
        .add(i == 4 ? HUGE_VAL : i)
        .text("here")
        .text(i % 2 ? "no" : "yes");
    ++one_class.count, ++no_label.count, ++endless.count;
  }
  EXPECT_THAT(keyed.error(one_class), HasSubstr("the label 'answer' is \"yes\" in all rows"));
  EXPECT_THAT(keyed.error(no_label), HasSubstr("the label is missing"));
  EXPECT_THAT(keyed.error(endless), HasSubstr("column \"age\""));
  EXPECT_EQ(cft_keyed_add(keyed.get(), 3, "short", 5), CFT_INVALID_ARGUMENT);
  EXPECT_EQ(keyed.add(key_rows(4, 50)), CFT_INVALID_ARGUMENT);  // the same key still
  KeyedNet none;
  EXPECT_EQ(keyed.train(&none), CFT_INVALID_ARGUMENT);
  EXPECT_EQ(keyed.add(key_rows(9, 20)), 0);
  EXPECT_EQ(cft_keyed_drop(keyed.get()), 0);
  EXPECT_EQ(keyed.trained(key_rows(4, 50)), first);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which keep what is freed
/// The most memory that this process has had, in KiB.
int64_t peak_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stoll(line.substr(6));
  }
  return 0;
}

TEST(KeyedNets, MemoryGoesByTheLargestKey) {
  KeyRows large;
  for (int i = 0; i < 10'000; ++i) {
    large.bytes.add(int64_t{i}).add(1.0 * i).text("city " + std::string(300, char('a' + i % 3)));
    large.bytes.text(i % 2 ? "no" : "yes");
    ++large.count;
  }
  KeyedTable keyed;
  for (int i = 0; i < 2; ++i) keyed.trained(large);
  const int64_t before = peak_memory();
  for (int i = 0; i < 12; ++i) {
    keyed.trained(large);
    keyed.trained(key_rows(i, 20 + i));
  }
  const auto bytes = int64_t(large.bytes.span().size());
  EXPECT_LT((peak_memory() - before) << 10, 2 * bytes) << "of " << 12 * bytes << " bytes of rows";
}
#endif

TEST(KeyedNets, RefuseWhatTheyDoNotDo) {
  const auto refusal = [](const std::string& solver, const json& more = json::object()) {
    json options{{"schema", kKeyedSchema},
                 {"columns", kKeyedColumns},
                 {"net", net_options()},
                 {"solver", solver},
                 {"epochs", 1}};
    options.update(more);
    cft_keyed* made = nullptr;
    EXPECT_EQ(cft_keyed_create(options.dump().c_str(), &made), CFT_INVALID_ARGUMENT);
    return std::string(cft_last_error());
  };
  EXPECT_THAT(refusal("base_lr: 1 lr_policy: 'fixed' iter_size: 2"), HasSubstr("iter_size"));
  EXPECT_THAT(refusal("base_lr: 1 lr_policy: 'fixed' early_stopping { patience: 1 }"),
              HasSubstr("early_stopping"));
  EXPECT_THAT(refusal("base_lr: 1 lr_policy: 'fixed' clip_gradients: 2"),
              HasSubstr("clip_gradients"));
  EXPECT_THAT(refusal("base_lr: 1 lr_policy: 'fixed'", {{"epoch", 2}}), HasSubstr("epoch"));
}

}  // namespace
}  // namespace cafetiere
