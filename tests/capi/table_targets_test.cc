// SPDX-License-Identifier: Apache-2.0
// What a net of a table learns: weights of rows and classes, several labels, losses of numbers, and early
// stopping, through the C interface.
#include <gmock/gmock.h>

#include <cmath>
#include <map>

#include "core/model/weights.h"
#include "tests/capi/handed.h"
#include "tests/capi/small_training.h"

namespace cafetiere {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

const json kSchema = {{"columns",
                       {{{"name", "x"}, {"type", "f32"}},
                        {{"name", "w"}, {"type", "f64"}},
                        {{"name", "y"}, {"type", "string"}},
                        {{"name", "flags"}, {"type", "i32"}},
                        {{"name", "z"}, {"type", "f64"}}}},
                      {"id", ""}};

struct Example {
  std::vector<float> x = {1, 0};
  double w = 1;
  std::string y = "no";
  std::vector<int32_t> flags = {0, 1};
  double z = 0;
};
using Examples = std::vector<Example>;

RowBytes bytes_of(const Examples& examples) {
  RowBytes bytes;
  for (const Example& e : examples) {
    bytes.add_all(e.x).add(e.w).text(e.y).add_all(e.flags).add(e.z);
  }
  return bytes;
}

json column(const char* name, const char* kind, int size = 1) {
  return {{"name", name}, {"kind", kind}, {"size", size}};
}

/// The net's text, or the error.
std::string net_of(const Examples& examples, const json& columns, const json& options) {
  cft_table* table = nullptr;
  const json request{{"schema", kSchema}, {"columns", columns}};
  EXPECT_EQ(cft_table_create(request.dump().c_str(), &table), 0) << cft_last_error();
  const RowBytes bytes = bytes_of(examples);
  char* out = nullptr;
  const bool made = cft_table_add(table, int64_t(examples.size()), bytes.span().data(),
                                  bytes.span().size()) == 0 &&
                    cft_table_net(table, options.dump().c_str(), &out) == 0;
  const std::string text = made ? out : cft_last_error();
  cft_free(out);
  cft_table_destroy(table);
  return text;
}

cft_rows* rows_of(const Examples& examples) {
  cft_rows* rows = nullptr;
  EXPECT_EQ(cft_rows_create(kSchema.dump().c_str(), &rows), 0) << cft_last_error();
  const RowBytes bytes = bytes_of(examples);
  EXPECT_EQ(
      cft_rows_append(rows, int64_t(examples.size()), bytes.span().data(), bytes.span().size()), 0)
      << cft_last_error();
  return rows;
}

struct Trained {
  std::string model, error;
  json result;
};

/// What is stored in a run, by step.
struct Stored {
  std::string model, state;
};
using Checkpoints = std::map<int, Stored>;

int keep(void* context, const char* text, const void* model, uint64_t model_bytes,
         const void* state, uint64_t state_bytes) {
  (*static_cast<Checkpoints*>(context))[json::parse(text)["step"]] = {
      {static_cast<const char*>(model), model_bytes},
      {static_cast<const char*>(state), state_bytes}};
  return 0;
}

/// Trains from the fillers or from what was stored; checkpoints go to `kept`, one every 5 steps.
Trained train(const std::string& net, const std::string& solver, const Examples& examples,
              const Examples* held_out = nullptr, Checkpoints* kept = nullptr,
              const Stored* from = nullptr) {
  Trained trained;
  const json options{
      {"solver", solver}, {"net", net}, {"seed", 3}, {"checkpoint_every", kept ? 5 : 0}};
  const cft_callbacks callbacks{.struct_size = sizeof callbacks,
                                .context = kept,
                                .event = nullptr,
                                .checkpoint = kept ? keep : nullptr};
  cft_trainer* trainer = nullptr;
  if (cft_trainer_create(options.dump().c_str(), &callbacks, &trainer) != 0) {
    trained.error = cft_last_error();
    return trained;
  }
  if (from) {
    EXPECT_EQ(
        cft_trainer_restore(trainer, from->model.data(), from->model.size(),
                            from->state.empty() ? nullptr : from->state.data(), from->state.size()),
        0)
        << cft_last_error();
  }
  cft_rows* held = held_out ? rows_of(*held_out) : nullptr;
  if (held) {
    EXPECT_EQ(cft_trainer_validation(trainer, held), 0);
  }
  cft_rows* rows = rows_of(examples);
  if (cft_trainer_run(trainer, nullptr, rows) != 0) {
    trained.error = cft_last_error();
  } else {
    trained.model = handed_bytes(cft_trainer_model, trainer);
    trained.result = json::parse(handed_text(cft_trainer_result, trainer));
  }
  cft_rows_destroy(rows);
  cft_rows_destroy(held);
  cft_trainer_destroy(trainer);
  return trained;
}

std::vector<float> floats_of(const std::string& model) {
  std::vector<float> all;
  const auto net = parse_weights(std::as_bytes(std::span(model)));
  for (const auto& layer : net->layer()) {
    for (const auto& blob : layer.blobs())
      all.insert(all.end(), blob.data().begin(), blob.data().end());
  }
  return all;
}

constexpr const char* kOneStep = "base_lr: 0.5 lr_policy: 'fixed' max_iter: 1";
const json kX = column("x", "NUMBER", 2);
const json kLinear = {{"label", "y"}, {"layers", json::array()}, {"batch", 64}};

json with(json options, const json& more) {
  options.update(more);
  return options;
}

TEST(TableTargets, ARowOfWeightTwoIsTwoRows) {
  // The features' means and deviations are those of the rows, which both tables share.
  const Examples once = {{.x = {1, 1}, .w = 2, .y = "yes"}, {.x = {-1, -1}, .w = 2, .y = "yes"},
                         {.x = {1, -1}, .w = 2, .y = "no"}, {.x = {-1, 1}, .w = 2, .y = "yes"},
                         {.x = {1, 1}, .y = "no"},          {.x = {-1, -1}, .y = "no"},
                         {.x = {1, -1}, .y = "no"},         {.x = {-1, 1}, .y = "yes"}};
  Examples twice;
  for (const Example& e : once) twice.insert(twice.end(), size_t(e.w), e);
  const json weighted{kX, column("y", "CLASS"), column("w", "WEIGHT")},
      plain{kX, column("y", "CLASS")};
  for (const json& more : {json::object(), json{{"class_weights", "balanced"}},
                           json{{"class_weights", "yes=3, no=0.5"}}}) {
    const json options = with(kLinear, more);
    const Trained a = train(net_of(once, weighted, options), kOneStep, once);
    const Trained b = train(net_of(twice, plain, options), kOneStep, twice);
    const std::vector<float> x = floats_of(a.model), y = floats_of(b.model);
    ASSERT_EQ(x.size(), y.size()) << a.error << b.error;
    for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x[i], y[i], 2e-6) << options;
    EXPECT_NE(x, floats_of(train(net_of(once, plain, kLinear), kOneStep, once).model)) << options;
  }
}

TEST(TableTargets, OnlyRatiosOfWeightsMatter) {
  Examples examples;
  for (int i = 0; i < 12; ++i) {
    examples.push_back({.x = {float(i % 3), float(i % 5)}, .w = 4, .y = i % 3 == 1 ? "yes" : "no"});
  }
  const json weighted{kX, column("y", "CLASS"), column("w", "WEIGHT")},
      plain{kX, column("y", "CLASS")};
  const std::string solver = "base_lr: 0.1 momentum: 0.9 lr_policy: 'fixed' max_iter: 9";
  const auto weights = [&](const json& columns, const json& options) {
    return floats_of(train(net_of(examples, columns, options), solver, examples).model);
  };
  const std::vector<float> expected = weights(plain, kLinear);
  EXPECT_EQ(weights(weighted, kLinear), expected);
  const json even = with(kLinear, {{"class_weights", "yes=7,no=7"}});
  EXPECT_EQ(weights(plain, even), expected);
}

TEST(TableTargets, WeightsThatAreNoneAreRefused) {
  const json weighted{kX, column("y", "CLASS"), column("w", "WEIGHT")};
  const double nan = std::nan("");
  for (const double bad : {-1.0, nan, HUGE_VAL}) {
    const Examples examples = {{.y = "yes"}, {.w = bad}};
    EXPECT_THAT(net_of(examples, weighted, kLinear),
                AllOf(HasSubstr("column \"w\""), HasSubstr("weight")));
    const Examples good = {{.y = "yes"}, {.w = 2}};
    const Trained trained = train(net_of(good, weighted, kLinear), kOneStep, examples);
    EXPECT_THAT(trained.error, AllOf(HasSubstr("column \"w\""), HasSubstr("weight")));
  }
  EXPECT_THAT(net_of({{.w = 0, .y = "yes"}, {.w = 0}}, weighted, kLinear),
              HasSubstr("all weights are 0"));
  const Examples two = {{.y = "yes"}, {}};
  const json plain{kX, column("y", "CLASS")};
  const auto refused = [&](const char* weights) {
    return net_of(two, plain, with(kLinear, {{"class_weights", weights}}));
  };
  EXPECT_THAT(refused("maybe=2"), HasSubstr("none of the classes of column \"y\": no, yes"));
  EXPECT_THAT(refused("yes=two"), HasSubstr("\"yes=two\" is no CLASS=WEIGHT"));
  EXPECT_THAT(refused("yes"), HasSubstr("\"yes\" is no CLASS=WEIGHT"));
  EXPECT_THAT(refused("yes=-1"), HasSubstr("not a number of 0 or more"));
  EXPECT_THAT(refused("yes=0, no=0"), HasSubstr("all rows weigh 0"));
}

std::vector<float> predict(const std::string& net, const std::string& model, const char* output,
                           const Examples& examples, int64_t size) {
  const json options{{"net", net + "state { phase: TEST stage: 'predict' }"},
                     {"schema", kSchema},
                     {"outputs", {output}}};
  cft_predictor* predictor = nullptr;
  EXPECT_EQ(cft_predictor_create(options.dump().c_str(), model.data(), model.size(), &predictor), 0)
      << cft_last_error();
  std::vector<float> out(examples.size() * size_t(size));
  float* const outputs[] = {out.data()};
  const RowBytes bytes = bytes_of(examples);
  EXPECT_EQ(cft_predictor_run(predictor, int64_t(examples.size()), bytes.span().data(),
                              bytes.span().size(), outputs),
            0)
      << cft_last_error();
  cft_predictor_destroy(predictor);
  return out;
}

TEST(TableTargets, SeveralLabelsEachHoldOrDoNot) {
  Examples examples;
  for (int i = 0; i < 64; ++i) {
    const float a = i % 2 ? 1.f : -1.f, b = i % 4 > 1 ? 1.f : -1.f;
    examples.push_back({.x = {a, b}, .flags = {a > 0, b < 0}});
  }
  const json columns{kX, column("flags", "FLAGS", 2)};
  const json options = with(kLinear, {{"label", "flags"}});
  const std::string net = net_of(examples, columns, options);
  const Trained trained = train(net, "base_lr: 1 lr_policy: 'fixed' max_iter: 60", examples);
  Examples odd = {{.x = {1, 1}, .w = -5, .flags = {9, 9}},
                  {.x = {-1, -1}}};  // targets are not read
  const std::vector<float> out = predict(net, trained.model, "probability", odd, 2);
  EXPECT_THAT(out, testing::ElementsAre(testing::Gt(0.9), testing::Lt(0.1), testing::Lt(0.1),
                                        testing::Gt(0.9)));
  examples[5].flags = {1, 2};
  EXPECT_THAT(net_of(examples, columns, options),
              AllOf(HasSubstr("column \"flags\""), HasSubstr("value 1 is 2")));
  EXPECT_THAT(train(net, kOneStep, examples).error, HasSubstr("value 1 is 2"));
  EXPECT_THAT(net_of(odd, {kX, column("z", "NUMBER")},
                     with(kLinear, {{"label", "z"}, {"class_weights", "balanced"}})),
              HasSubstr("class weights need a label that is learned as classes"));
}

TEST(TableTargets, LabelsOfSeveralHaveWeights) {
  Examples examples;  // of which nothing can be learned but how often a label holds
  for (int i = 0; i < 64; ++i) {
    const int holds = i % 4 == 0;
    examples.push_back({.x = {1, 1}, .w = holds ? 3. : 1., .flags = {holds, holds}});
  }
  const json plain{kX, column("flags", "FLAGS", 2)};
  const json weighted{kX, column("flags", "FLAGS", 2), column("w", "WEIGHT")};
  const auto chances = [&](const json& columns, const char* weights) {
    const json options = with(kLinear, {{"label", "flags"}, {"class_weights", weights}});
    const std::string net = net_of(examples, columns, options);
    const Trained trained = train(net, "base_lr: 2 lr_policy: 'fixed' max_iter: 300", examples);
    EXPECT_EQ(trained.error, "");
    return predict(net, trained.model, "probability", {examples[0]}, 2);
  };
  const auto are = [](float a, float b) {
    return testing::ElementsAre(testing::FloatNear(a, 1e-3F), testing::FloatNear(b, 1e-3F));
  };
  EXPECT_THAT(chances(plain, ""), are(0.25, 0.25));
  EXPECT_THAT(chances(plain, "balanced"), are(0.5, 0.5));
  EXPECT_THAT(chances(plain, "1=3"), are(0.25, 0.5));
  EXPECT_THAT(chances(weighted, "0=2"), are(2.F / 3, 0.5));
  EXPECT_THAT(chances(weighted, "balanced"), are(0.5, 0.5));
  const auto refused = [&](const char* weights) {
    return net_of(examples, plain, with(kLinear, {{"label", "flags"}, {"class_weights", weights}}));
  };
  EXPECT_THAT(refused("2=3"), HasSubstr("column \"flags\" are called 0 to 1, by their place"));
  EXPECT_THAT(refused("yes=3"), HasSubstr("class weights name \"yes\""));
  EXPECT_THAT(refused("1=-3"), HasSubstr("not a number of 0 or more"));
}

TEST(TableTargets, SeveralNumbersAreInTheirOwnUnits) {
  Examples examples;
  for (int i = 0; i < 60; ++i) {
    const float a = float(i % 7), b = float(i % 5);
    examples.push_back({.x = {a, b}, .w = 1000 + 50 * a, .z = b - a / 10});
  }
  const json columns{kX, column("w", "NUMBER"), column("z", "NUMBER")};
  const json options{{"labels", {"z", "w"}}, {"layers", json::array()}, {"batch", 64}};
  const std::string net = net_of(examples, columns, options);
  const Trained trained =
      train(net, "base_lr: 0.3 momentum: 0.5 lr_policy: 'fixed' max_iter: 200", examples);
  const std::vector<float> out = predict(net, trained.model, "prediction", {{.x = {3, 2}}}, 2);
  EXPECT_NEAR(out[0], 1.7, 0.01);
  EXPECT_NEAR(out[1], 1150, 1);
}

TEST(TableTargets, QuantilesLeaveTheirSharesBelow) {
  Examples examples;
  for (int i = 0; i < 100; ++i) examples.push_back({.x = {float(i % 2), 0}, .z = double(i)});
  const json columns{kX, column("z", "NUMBER")};
  json options{{"label", "z"}, {"layers", json::array()}, {"batch", 128}};
  options.update({{"loss", "quantile"}, {"quantiles", {0.1, 0.5, 0.9}}});
  const std::string net = net_of(examples, columns, options);
  const Trained trained =
      train(net, "base_lr: 0.3 lr_policy: 'poly' power: 1 max_iter: 400", examples);
  const std::vector<float> out = predict(net, trained.model, "prediction", {{.x = {0, 0}}}, 3);
  EXPECT_NEAR(out[0], 9, 3);
  EXPECT_NEAR(out[1], 49, 3);
  EXPECT_NEAR(out[2], 89, 3);
  EXPECT_THAT(net_of(examples, columns, with(options, {{"quantiles", {0.5, 1}}})),
              HasSubstr("numbers between 0 and 1"));
  EXPECT_THAT(net_of(examples, columns, with(options, {{"loss", "hubr"}})),
              HasSubstr("none of squared, huber and quantile"));
  EXPECT_THAT(net_of(examples, columns, with(options, {{"loss", "huber"}, {"delta", 0.5}})),
              AllOf(HasSubstr("HuberLoss"), HasSubstr("delta: 0.5")));
}

TEST(TableTargets, AModelGoesOnFromAnotherOne) {
  Examples first, other;
  for (int i = 0; i < 40; ++i) {
    const std::string y = i % 3 ? "yes" : "no";
    first.push_back({.x = {float(i % 7), float(i % 3)}, .y = y});
    other.push_back({.x = {float(i % 5) + 2, float(i % 3)}, .y = y});
  }
  const json columns{kX, column("y", "CLASS")};
  const json options{{"label", "y"}, {"layers", {6}}, {"batch_norm", 1}, {"batch", 16}};
  const std::string net = net_of(first, columns, options);
  const std::string model = train(net, kOneStep, first).model;
  // The encoding is that of the first table, whatever the second one's means.
  const std::string again = net_of(other, columns, with(options, {{"initial", net}}));
  EXPECT_EQ(again, net);
  EXPECT_NE(net_of(other, columns, options), net);
  // What is frozen stays, and the rest learns.
  const Stored from{model, ""};
  const std::string frozen =
      net_of(other, columns, with(options, {{"initial", net}, {"frozen", {"hidden1"}}}));
  EXPECT_THAT(frozen, HasSubstr("use_global_stats: true"));
  const std::string tuned =
      train(frozen, "base_lr: 0.5 weight_decay: 0.1 lr_policy: 'fixed' max_iter: 7", other, nullptr,
            nullptr, &from)
          .model;
  const auto layers = [](const std::string& bytes) {
    return *parse_weights(std::as_bytes(std::span(bytes)));
  };
  const auto before = layers(model), after = layers(tuned);
  int kept = 0;
  for (const auto& layer : before.layer()) {
    const auto same = std::ranges::find(after.layer(), layer.name(), &caffe::LayerParameter::name);
    ASSERT_NE(same, after.layer().end()) << layer.name();
    for (int i = 0; i < layer.blobs_size(); ++i) {
      const bool equal = std::ranges::equal(layer.blobs(i).data(), same->blobs(i).data());
      EXPECT_EQ(equal, layer.name().starts_with("hidden1")) << layer.name() << " " << i;
      kept += equal;
    }
  }
  EXPECT_EQ(kept, 2 + 3 + 2);
  // A class that is new: the scores begin anew.
  other[0].y = "maybe";
  EXPECT_THAT(net_of(other, columns, with(options, {{"initial", net}})), HasSubstr("\"score/y\""));
  EXPECT_THAT(net_of(other, {column("z", "NUMBER"), column("y", "CLASS")},
                     with(options, {{"initial", net}})),
              HasSubstr("column \"z\" is unknown to the initial model, which was trained on x"));
  EXPECT_THAT(net_of(other, columns, with(options, {{"frozen", {"hiden1"}}})),
              AllOf(HasSubstr("no layer \"hiden1\""), HasSubstr("hidden1, ")));
  EXPECT_THAT(net_of(other, columns, with(options, {{"initial", kSmallNet}})),
              HasSubstr("no layer TableData"));
  const std::string torn = net.substr(0, net.find("top: \"label\"")) +
                           net.substr(net.find("top: \"label\"") + sizeof("top: \"label\"") - 1);
  EXPECT_THAT(net_of(other, columns, with(options, {{"initial", torn}})),
              HasSubstr("layer table has 1 tops, but 2 top blocks"));
}

/// Few rows whose noise a net learns by heart, and rows without it.
Examples noisy(int first, int count) {
  Examples examples;
  for (int i = first; i < first + count; ++i) {
    const double x = std::sin(i * 1.7), y = std::cos(i * 2.9);
    examples.push_back({.x = {float(x), float(y)}, .z = x + 1.5 * std::sin(i * 97.3)});
  }
  return examples;
}

TEST(TableTargets, EarlyStoppingKeepsTheBestWeights) {
  const Examples rows = noisy(0, 24), held_out = noisy(24, 200);
  const json options{{"label", "z"}, {"layers", {64}}, {"batch", 8}};
  const std::string net = net_of(rows, {kX, column("z", "NUMBER")}, options);
  const std::string rule = "type: 'Adam' base_lr: 0.01 lr_policy: 'fixed' test_interval: 3 ";
  const Trained stopped = train(
      net, rule + "max_iter: 900 early_stopping { patience: 4 tolerance: 0.001 }", rows, &held_out);
  const json told = stopped.result["early_stopping"];
  ASSERT_TRUE(told["stopped"].get<bool>()) << told << stopped.error;
  const int best = told["best_step"].get<int>();
  const json& curve = told["curve"];
  EXPECT_EQ(stopped.result["steps"], best + 4 * 3);
  EXPECT_EQ(curve.size(), size_t(best / 3 + 1 + 4));
  for (size_t i = curve.size() - 4; i < curve.size(); ++i) {
    EXPECT_GE(curve[i][1].get<double>(), told["best"].get<double>() - 0.001);
  }
  // The same weights as those of a training that ended there.
  const Trained ended = train(net, rule + "max_iter: " + std::to_string(best), rows, &held_out);
  EXPECT_EQ(stopped.model, ended.model);
  const Trained patient = train(net, rule + "max_iter: 60 early_stopping { }", rows, &held_out);
  EXPECT_EQ(patient.result["steps"], 60);
  EXPECT_FALSE(patient.result["early_stopping"]["stopped"].get<bool>());
  EXPECT_EQ(patient.result["early_stopping"]["curve"].size(), 21u) << "the last weights, too";
}

TEST(TableTargets, EarlyStoppingGoesOnFromAnyCheckpoint) {
  const Examples rows = noisy(0, 24), held_out = noisy(24, 200);
  const json options{{"label", "z"}, {"layers", {64}}, {"batch", 8}};
  const std::string net = net_of(rows, {kX, column("z", "NUMBER")}, options);
  const std::string solver =
      "type: 'Adam' base_lr: 0.01 lr_policy: 'fixed' test_interval: 3 max_iter: 900 "
      "early_stopping { patience: 4 tolerance: 0.001 }";
  Checkpoints kept;
  const Trained whole = train(net, solver, rows, &held_out, &kept);
  ASSERT_GE(kept.size(), 3u) << whole.error;
  for (const auto& [step, stored] : kept) {
    const Trained again = train(net, solver, rows, &held_out, nullptr, &stored);
    EXPECT_EQ(again.model, whole.model) << step << again.error;
    EXPECT_EQ(again.result["early_stopping"], whole.result["early_stopping"]) << step;
  }
}

TEST(TableTargets, EarlyStoppingNeedsTests) {
  const Examples rows = noisy(0, 8);
  const std::string net = net_of(rows, {kX, column("z", "NUMBER")}, {{"label", "z"}});
  const std::string rule = "base_lr: 0.1 lr_policy: 'fixed' max_iter: 4 ";
  EXPECT_THAT(train(net, rule + "early_stopping { patience: 1 }", rows).error,
              HasSubstr("set test_interval"));
  EXPECT_THAT(train(net, rule + "test_interval: 2 early_stopping { tolerance: -1 }", rows).error,
              HasSubstr("tolerance must be"));
  EXPECT_THAT(
      train(net, rule + "test_interval: 2 early_stopping { output: 'accuracy' }", rows, &rows)
          .error,
      HasSubstr("\"accuracy\", which is no output"));
}

}  // namespace
}  // namespace cafetiere
