// SPDX-License-Identifier: Apache-2.0
// From a table with text, dates and gaps to a net and its predictions, through the C interface.
#include <gmock/gmock.h>

#include <cmath>
#include <memory>
#include <random>

#include "tests/capi/handed.h"
#include "tests/capi/small_training.h"

namespace cafetiere {
namespace {

using nlohmann::json;
using testing::HasSubstr;

struct DestroyTable {
  void operator()(cft_table* table) const { cft_table_destroy(table); }
};
using Table = std::unique_ptr<cft_table, DestroyTable>;

const json kTableSchema = {{"columns",
                            {{{"name", "id"}, {"type", "i64"}},
                             {{"name", "age"}, {"type", "f64"}},
                             {{"name", "city"}, {"type", "string"}},
                             {{"name", "born"}, {"type", "i32"}},
                             {{"name", "answer"}, {"type", "string"}}}},
                           {"id", "id"}};

const json kTableColumns = {{{"name", "age"}},
                            {{"name", "city"}, {"kind", "CATEGORY"}},
                            {{"name", "born"}, {"kind", "DATE"}},
                            {{"name", "answer"}, {"kind", "CLASS"}}};

struct TableRows {
  int64_t count = 0;
  RowBytes bytes;
};

/// The answer follows from the city's number, but where the age is missing, from the age where it is not.
TableRows table_rows(int first, int last) {
  TableRows rows;
  for (int i = first; i < last; ++i) {
    std::mt19937 random{unsigned(i)};
    const int city = int(random() % 20);
    const bool gap = random() % 5 == 0;
    const double age = 20 + double(random() % 60);
    const bool yes = gap ? city % 2 == 0 : age > 50;
    rows.bytes.add(int64_t{i});
    gap ? rows.bytes.add_size(0) : rows.bytes.add(age);
    rows.bytes.text("city " + std::to_string(city)).add(int32_t(random() % 9000));
    rows.bytes.text(yes ? "yes" : "no");
    ++rows.count;
  }
  return rows;
}

Table table() {
  cft_table* made = nullptr;
  const json options{{"schema", kTableSchema}, {"columns", kTableColumns}};
  EXPECT_EQ(cft_table_create(options.dump().c_str(), &made), 0) << cft_last_error();
  return Table(made);
}

void add(const Table& table, const TableRows& rows) {
  const auto bytes = rows.bytes.span();
  EXPECT_EQ(cft_table_add(table.get(), rows.count, bytes.data(), bytes.size()), 0)
      << cft_last_error();
}

std::string statistics(const Table& table) {
  return handed_bytes(cft_table_statistics, table.get());
}

std::string net(const Table& table, json options = {}) {
  options["label"] = "answer";
  return handed_text(cft_table_net, table.get(), options.dump().c_str());
}

cft_rows* native(const TableRows& rows) {
  cft_rows* made = nullptr;
  EXPECT_EQ(cft_rows_create(kTableSchema.dump().c_str(), &made), 0) << cft_last_error();
  const auto bytes = rows.bytes.span();
  EXPECT_EQ(cft_rows_append(made, rows.count, bytes.data(), bytes.size()), 0) << cft_last_error();
  return made;
}

/// The weights of a training on rows as they are.
std::string train(const std::string& net, const TableRows& given) {
  const json options{{"solver",
                      "type: 'Adam' base_lr: 0.003 lr_policy: 'fixed' max_iter: 1200 "
                      "random_seed: 5"},
                     {"net", net},
                     {"rank", 0},
                     {"size", 1}};
  cft_trainer* trainer = nullptr;
  EXPECT_EQ(cft_trainer_create(options.dump().c_str(), nullptr, &trainer), 0) << cft_last_error();
  cft_rows* const rows = native(given);
  cft_group* group = nullptr;
  EXPECT_EQ(cft_trainer_run(trainer, group, rows), 0) << cft_last_error();
  const std::string model = handed_bytes(cft_trainer_model, trainer);
  cft_trainer_destroy(trainer);
  cft_rows_destroy(rows);
  cft_group_destroy(group);
  return model;
}

/// The probability of each class for each row.
std::vector<float> predict(const std::string& net, const std::string& model, const json& schema,
                           const TableRows& given) {
  const json options{{"net", net + "state { phase: TEST stage: 'predict' }"},
                     {"schema", schema},
                     {"outputs", {"probability"}}};
  cft_predictor* predictor = nullptr;
  EXPECT_EQ(cft_predictor_create(options.dump().c_str(), model.data(), model.size(), &predictor), 0)
      << cft_last_error();
  std::vector<float> out(size_t(2 * given.count));
  float* const outputs[] = {out.data()};
  const auto bytes = given.bytes.span();
  EXPECT_EQ(cft_predictor_run(predictor, given.count, bytes.data(), bytes.size(), outputs), 0)
      << cft_last_error();
  cft_predictor_destroy(predictor);
  return out;
}

TEST(Table, ANetLearnsFromTextAndGaps) {
  const Table whole = table();
  const TableRows training = table_rows(0, 4000), held_out = table_rows(4000, 5000);
  add(whole, training);
  const std::string text = net(whole);
  EXPECT_THAT(text, HasSubstr("Embed"));  // 20 cities
  const std::string model = train(text, training);
  const std::vector<float> out = predict(text, model, kTableSchema, held_out);
  int right = 0;
  for (int i = 0; i < held_out.count; ++i) {
    const TableRows row = table_rows(4000 + i, 4001 + i);
    const bool yes = row.bytes.span().back() == std::byte{'s'};
    right += (out[size_t(2 * i + 1)] > 0.5f) == yes;  // classes: no, yes
    EXPECT_NEAR(out[size_t(2 * i)] + out[size_t(2 * i + 1)], 1, 1e-5);
  }
  EXPECT_GT(right, 950);
}

TEST(Table, ThePartitioningDoesNotShow) {
  const Table whole = table(), sum = table();
  add(whole, table_rows(0, 3000));
  for (const auto& [first, last] : {std::pair{2000, 3000}, {0, 1}, {1, 2000}}) {
    const Table part = table();
    add(part, table_rows(first, last));
    const std::string bytes = statistics(part);
    ASSERT_EQ(cft_table_merge(sum.get(), bytes.data(), bytes.size()), 0) << cft_last_error();
  }
  EXPECT_EQ(statistics(sum), statistics(whole));
  EXPECT_EQ(net(sum), net(whole));
}

TEST(Table, OptionsOfTheNet) {
  const Table whole = table();
  add(whole, table_rows(0, 500));
  const std::string text = net(whole, {{"layers", {7}},
                                       {"activation", "TanH"},
                                       {"dropout", 0.25},
                                       {"batch_norm", 1},
                                       {"batch", 16},
                                       {"most_one_hot", 30}});
  for (const char* wanted :
       {"num_output: 7", "TanH", "dropout_ratio: 0.25", "BatchNorm", "batch_size: 16", "ONE_HOT"}) {
    EXPECT_THAT(text, HasSubstr(wanted));
  }
  EXPECT_THAT(text, Not(HasSubstr("Embed")));
}

TEST(Table, EmbeddingsDecayByTheRowsOfAValueAndOfAStep) {
  const auto decay = [](int rows, int step_rows) {
    const Table counted = table();
    add(counted, table_rows(0, rows));
    const std::string text = net(counted, {{"step_rows", step_rows}});
    const size_t embed = text.find("\"Embed\"");
    const size_t at = text.find("decay_mult: ", embed);
    return at < text.find("embed_param", embed) ? std::stof(text.substr(at + 12)) : 1.F;
  };
  const float factor = 190;
  EXPECT_EQ(decay(400, 0), 1) << "no AdamW: as other weights";
  EXPECT_NEAR(decay(400, 20), factor, 1) << "20 cities of 20 rows, 20 rows a step";
  EXPECT_NEAR(decay(400, 80), 2 * factor, 1);
  EXPECT_NEAR(decay(1600, 20), factor / 2, 1);
  EXPECT_NEAR(decay(400, 4000), factor * std::sqrt(20.F), 1) << "a step has no more than all rows";
}

TEST(Table, HiddenLayersOfOnesOwn) {
  const Table whole = table();
  add(whole, table_rows(0, 500));
  const std::string text =
      net(whole, {{"net",
                   "layer { name: 'mine' type: 'InnerProduct' bottom: 'input' top: 'mine' "
                   "inner_product_param { num_output: 9 weight_filler { type: 'xavier' } } } "
                   "layer { name: 'act' type: 'Swish' bottom: 'mine' top: 'act' }"},
                  {"most_one_hot", 30}});  // one top alone, which is "input" nevertheless
  EXPECT_THAT(text, HasSubstr("Swish"));
  EXPECT_THAT(text, Not(HasSubstr("hidden1")));
  const TableRows rows = table_rows(0, 64);
  const std::vector<float> out = predict(text, train(text, rows), kTableSchema, rows);
  EXPECT_NEAR(out[0] + out[1], 1, 1e-5);
}

TEST(Table, TheScoreOfMembersIsTheirMean) {
  const Table whole = table();
  add(whole, table_rows(0, 500));
  const std::string text = net(whole, {{"members", 2}});
  const TableRows rows = table_rows(0, 64);
  const std::string model = train(text, rows);
  const auto odds = [&](const std::string& first, const std::string& second) {
    std::string weighted = text;
    for (const std::string& share : {first, second}) {
      const size_t at = weighted.find("coeff: 0.5\n");
      EXPECT_NE(at, std::string::npos);
      weighted.replace(at, 10, "coeff: " + share);
    }
    const std::vector<float> out = predict(weighted, model, kTableSchema, rows);
    std::vector<double> of_rows;
    for (size_t i = 0; i < out.size(); i += 2) of_rows.push_back(std::log(out[i] / out[i + 1]));
    return of_rows;
  };
  const auto first = odds("1", "0"), second = odds("0", "1"), mean = odds("0.50", "0.50");
  for (size_t i = 0; i < mean.size(); ++i) {
    EXPECT_NEAR(mean[i], (first[i] + second[i]) / 2, 1e-5);
    EXPECT_NE(first[i], second[i]);
  }
}

TEST(Table, TheClassesAreTold) {
  const Table whole = table();
  add(whole, table_rows(0, 500));
  const json options{{"net", net(whole)}, {"phase", "TEST"}};
  const json tops =
      json::parse(handed_text(cft_describe, options.dump().c_str()))["data_layer"]["tops"];
  EXPECT_EQ(tops.back()["values"], json({"no", "yes"}));
  EXPECT_EQ(tops.front()["columns"], json({"age", "born"}));
}

TEST(Table, Refusals) {
  cft_table* made = nullptr;
  const auto refused = [&](const json& columns) {
    const json options{{"schema", kTableSchema}, {"columns", columns}};
    EXPECT_NE(cft_table_create(options.dump().c_str(), &made), 0);
    return std::string(cft_last_error());
  };
  EXPECT_THAT(refused(json::array()), HasSubstr("\"columns\" must be a list"));
  EXPECT_THAT(refused({{{"name", "age"}, {"kind", "NUMBERS"}}}), HasSubstr("must be a list"));
  EXPECT_THAT(refused({{{"name", "town"}}}), HasSubstr("no column \"town\""));
  char* out = nullptr;
  const Table whole = table();
  add(whole, table_rows(0, 50));
  EXPECT_NE(cft_table_net(whole.get(), R"({"label": "question"})", &out), 0);
  EXPECT_THAT(cft_last_error(), HasSubstr("no statistics of the label \"question\""));
  EXPECT_NE(cft_table_net(whole.get(), R"({"label": "city"})", &out), 0);
  EXPECT_THAT(cft_last_error(), HasSubstr("CLASS is for labels"));
  EXPECT_NE(cft_table_net(whole.get(), R"({"label": "answer", "layers": [0]})", &out), 0);
  EXPECT_THAT(cft_last_error(), HasSubstr("at least one unit"));
  EXPECT_NE(cft_table_net(whole.get(), R"({"label": "answer", "dropout": 1})", &out), 0);
  EXPECT_THAT(cft_last_error(), HasSubstr("a number from 0 to 0.999"));
  EXPECT_NE(cft_table_net(whole.get(), R"({"label": "answer", "net": "layer { nam: 'x' }"})", &out),
            0);
  EXPECT_THAT(cft_last_error(), HasSubstr("net:1"));
}

}  // namespace
}  // namespace cafetiere
