// SPDX-License-Identifier: Apache-2.0
// Describing a solver and net through the C interface.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "cafetiere/c_api.h"

namespace cafetiere {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

/// The answer of cft_describe; null where it is refused.
json describe(const json& options) {
  char* text = nullptr;
  if (cft_describe(options.dump().c_str(), &text) != 0) return {};
  json answer = json::parse(text);
  cft_free(text);
  return answer;
}

std::string inner_product(const std::string& name, const std::string& bottom, int outputs) {
  return "layer { name: '" + name + "' type: 'InnerProduct' bottom: '" + bottom + "' top: '" +
         name + "' inner_product_param { num_output: " + std::to_string(outputs) +
         " weight_filler { type: 'gaussian' std: 0.01 } } }\n";
}

std::string relu(const std::string& top) {
  return "layer { name: 'relu_" + top + "' type: 'ReLU' bottom: '" + top + "' top: '" + top +
         "' }\n";
}

/// VGG-16 for ImageNet: 138 million parameters.
std::string vgg16(int batch) {
  const std::string n = std::to_string(batch);
  std::string net =
      "name: 'VGG16' layer { name: 'in' type: 'Input' top: 'data' top: 'label' input_param { "
      "shape { dim: " +
      n + " dim: 3 dim: 224 dim: 224 } shape { dim: " + n + " } } }\n";
  std::string bottom = "data";
  const std::vector<std::vector<int>> stages = {
      {64, 64}, {128, 128}, {256, 256, 256}, {512, 512, 512}, {512, 512, 512}};
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    const std::string s = std::to_string(stage + 1);
    for (size_t i = 0; i < stages[stage].size(); ++i) {
      const std::string name = "conv" + s + "_" + std::to_string(i + 1);
      net += "layer { name: '" + name + "' type: 'Convolution' bottom: '" + bottom + "' top: '" +
             name + "' convolution_param { num_output: " + std::to_string(stages[stage][i]) +
             " kernel_size: 3 pad: 1 weight_filler { type: 'xavier' } } }\n" + relu(name);
      bottom = name;
    }
    net += "layer { name: 'pool" + s + "' type: 'Pooling' bottom: '" + bottom + "' top: 'pool" + s +
           "' pooling_param { kernel_size: 2 stride: 2 } }\n";
    bottom = "pool" + s;
  }
  net += inner_product("fc6", bottom, 4096) + relu("fc6") + inner_product("fc7", "fc6", 4096) +
         relu("fc7") + inner_product("fc8", "fc7", 1000);
  return net +
         "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'fc8' bottom: 'label' top: 'loss' }";
}

constexpr const char* kSolver = "base_lr: 0.01 lr_policy: 'fixed' max_iter: 1 momentum: 0.9";

int64_t peak_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024;
}

/// By how much the peak of a process of its own grows while it does `work`.
template <class Work>
int64_t growth_of(Work work) {
  int ends[2];
  if (::pipe(ends) != 0) return -1;
  const pid_t child = ::fork();
  if (child == 0) {
    const int64_t before = peak_bytes();
    const bool good = work();
    const int64_t grown = good ? peak_bytes() - before : -1;
    ::_exit(::write(ends[1], &grown, sizeof grown) == sizeof grown ? 0 : 1);
  }
  ::close(ends[1]);
  int64_t grown = -1;
  const bool received = ::read(ends[0], &grown, sizeof grown) == sizeof grown;
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  return received ? grown : -1;
}

// The driver asks before it knows whether any host has what the training takes.
TEST(Describe, TakesNoneOfTheMemoryThatItPredicts) {
  const int64_t grown = growth_of([] {
    const json answer = describe({{"solver", kSolver}, {"net", vgg16(64)}});
    return !answer.is_null() && answer["parameters"] == 138'357'544 &&
           answer["memory_bytes"] > int64_t{4} << 30;
  });
  EXPECT_GT(grown, 0);
  EXPECT_LT(grown, 50 << 20);
}

/// The instruction set can still be lowered where no code has been generated.
TEST(Describe, GeneratesNoCode) {
  const std::string attention =
      "layer { name: 'in' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 5 dim: 8 } } }\n"
      "layer { name: 'heads' type: 'Attention' bottom: 'x' top: 'y' attention_param { num_heads: 2 "
      "} "
      "}\n layer { name: 'loss' type: 'Reduction' bottom: 'y' top: 'z' loss_weight: 1 }";
  for (const std::string& net : {vgg16(16), attention}) {
    const int64_t grown = growth_of([&] {
      const json answer = describe({{"net", net}, {"phase", "TRAIN"}});
      return !answer.is_null() && cft_use_instruction_set("generic") == 0;
    });
    EXPECT_GE(grown, 0) << cft_last_error();
  }
}

// The prediction does not depend on it.
TEST(Describe, HasNoThreads) {
  char* text = nullptr;
  EXPECT_NE(cft_describe(R"({"net": "", "threads": 2})", &text), 0);
  EXPECT_THAT(cft_last_error(), HasSubstr("unknown option \"threads\""));
}

constexpr const char* kStages = R"(
  layer { name: "in" type: "Input" top: "x" input_param { shape { dim: 2 dim: 4 } } }
  layer { name: "ip" type: "InnerProduct" bottom: "x" top: "ip"
          inner_product_param { num_output: 3 } }
  layer { name: "deep" type: "InnerProduct" bottom: "ip" top: "deep" include { stage: "deep" }
          inner_product_param { num_output: 3 } }
  layer { name: "fine" type: "InnerProduct" bottom: "ip" top: "fine" include { min_level: 2 }
          inner_product_param { num_output: 3 } })";

// The trainer gives its nets the solver's states; who asks before or after must see the same layers.
TEST(Describe, NetsAreInTheStatesOfTheSolver) {
  const json options = {{"solver", std::string(kSolver) + " train_state { stage: 'deep' }" +
                                       " test_iter: 1 test_interval: 1 test_state { level: 2 }"},
                        {"net", kStages}};
  const auto outputs = [](json from, const char* phase) {
    from["phase"] = phase;
    return describe(from)["outputs"];
  };
  EXPECT_EQ(outputs(options, "TRAIN"), json({"deep"}));
  EXPECT_EQ(outputs(options, "TEST"), json({"fine"}));
  json test = options;
  test["phase"] = "TEST";
  const json description = describe(test);
  EXPECT_EQ(description["solver"]["has_test_state"], true);
  // A predictor has this text and no solver.
  EXPECT_EQ(outputs({{"net", description["net_text"]}}, "TEST"), json({"fine"}));
  EXPECT_EQ(outputs({{"net", kStages}}, "TEST"), json({"ip"}));
}

/// A net that learns from a table of sequences: their tops have the batch behind the steps.
TEST(Describe, TheBatchOfATransposedTopIsItsSecondAxis) {
  const auto sequences = [](const std::string& flags) {
    return describe({{"net",
                      "layer { name: 'data' type: 'CoSData' top: 'words' cos_data_param {"
                      " batch_size: 16 top { name: 'words' type: INT_ARRAY channels: 4"
                      " sample_num_axes: 1 " +
                          flags + "} } }"},
                     {"phase", "TEST"}});
  };
  EXPECT_EQ(sequences("")["batch_size"], 16);
  const json transposed = sequences("transpose: true");
  EXPECT_EQ(transposed["data_layer"]["tops"][0]["shape"], json({4, 16}));
  EXPECT_EQ(transposed["batch_size"], 16);
}

constexpr const char* kOfFiles =
    "layer { name: 'train' type: 'Data' top: 'data' top: 'label' include { phase: TRAIN }"
    "  transform_param { scale: 0.5 mirror: true crop_size: 4 }"
    "  data_param { source: '/nowhere/train' batch_size: 8 backend: LMDB } }"
    "layer { name: 'test' type: 'ImageData' top: 'data' top: 'label' include { phase: TEST }"
    "  image_data_param { source: 'list' root_folder: 'root/' batch_size: 2 is_color: false } }"
    "layer { name: 'more' type: 'HDF5Data' top: 'a' top: 'b'"
    "  hdf5_data_param { source: 'files' batch_size: 8 } include { phase: TRAIN } }"
    "layer { name: 'ip' type: 'InnerProduct' bottom: 'data' top: 'ip'"
    "  inner_product_param { num_output: 3 } }";

TEST(Describe, SourcesAreToldWhereTheirFilesAreNot) {
  const json train = describe({{"net", kOfFiles}, {"phase", "TRAIN"}, {"sources", 1}})["sources"];
  ASSERT_EQ(train.size(), 2u);
  EXPECT_EQ(train[0]["name"], "train");
  EXPECT_EQ(train[0]["source"], "/nowhere/train");
  EXPECT_EQ(train[0]["backend"], "LMDB");
  EXPECT_EQ(train[1]["tops"], json({"a", "b"}));
  const json test = describe({{"net", kOfFiles}, {"phase", "TEST"}, {"sources", 1}})["sources"];
  ASSERT_EQ(test.size(), 1u);
  EXPECT_EQ(test[0]["root_folder"], "root/");
  EXPECT_EQ(test[0]["channels"], 1);
}

TEST(Describe, LayersOfFilesBecomeLayersOfRows) {
  const json rows = {{"data", {{"shape", {1, 6, 6}}, {"encoded", true}}},
                     {"a", {{"shape", {5}}}},
                     {"label", {{"shape", json::array()}}}};
  const json asked = {{"net", kOfFiles}, {"phase", "TEST"}, {"rows", rows}};
  const json test = describe(asked);
  EXPECT_EQ(test["data_layer"]["type"], "MemoryData");
  EXPECT_EQ(test["data_layer"]["tops"][0]["shape"], json({2, 1, 6, 6}));
  const std::string text = test["rows_net_text"];
  EXPECT_THAT(text, HasSubstr("mirror: true"));
  EXPECT_THAT(text, HasSubstr("image_encoded: true"));
  EXPECT_THAT(text, testing::Not(HasSubstr("/nowhere")));
  const json train = describe({{"net", text}, {"phase", "TRAIN"}});
  EXPECT_EQ(train["data_layer"]["tops"][0]["shape"], json({8, 1, 4, 4}));
  const json sources = describe({{"net", text}, {"phase", "TRAIN"}, {"sources", 1}})["sources"];
  EXPECT_EQ(sources[1]["type"], "Input");
  for (const json& wrong :
       {json{{"shape", {0}}}, json{{"shape", "3"}}, json(3), json{{"shape", {5}}}}) {
    char* answer = nullptr;
    const json options = {{"net", kOfFiles}, {"rows", {{"data", wrong}}}};
    EXPECT_NE(cft_describe(options.dump().c_str(), &answer), 0) << wrong;
  }
}

/// The roles of the tops of these data layers, in a net that multiplies `x` and compares it with `y`.
json roles_of(const std::string& layers) {
  const std::string net =
      layers +
      "layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'ip'"
      "  inner_product_param { num_output: 1 } }"
      "layer { name: 'loss' type: 'EuclideanLoss' bottom: 'ip' bottom: 'y' top: 'loss' }";
  const json data = describe({{"net", net}, {"phase", "TEST"}})["data_layer"];
  json roles;
  for (const json& top : data["tops"]) roles[top["name"]] = top["role"];
  roles["main"] = data["name"];
  // The same of nets whose shapes are not known.
  const json sources = describe({{"net", net}, {"phase", "TEST"}, {"sources", 1}})["sources"];
  for (const json& source : sources) {
    for (size_t i = 0; i < source["tops"].size(); ++i) {
      EXPECT_EQ(source["roles"][i], roles[std::string(source["tops"][i])]);
    }
  }
  return roles;
}

TEST(Describe, TopsOfSeveralDataLayersHaveRoles) {
  const auto input = [](const std::string& tops) {
    return "layer { name: '" + tops.substr(0, 1) + "' type: 'Input' top: '" + tops.substr(0, 1) +
           (tops.size() > 1 ? "' top: '" + tops.substr(1) : "") +
           "' input_param { shape { dim: 4 dim: 1 } } }";
  };
  // The layer with two tops, wherever it is.
  const json two = {{"a", ""}, {"x", "features"}, {"y", "label"}, {"main", "x"}};
  EXPECT_EQ(roles_of(input("xy") + input("a")), two);
  EXPECT_EQ(roles_of(input("a") + input("xy")), two);
  // Else what is read by more than losses, and what is not.
  const json alone = {{"x", "features"}, {"y", "label"}, {"main", "x"}};
  EXPECT_EQ(roles_of(input("x") + input("y")), alone);
  EXPECT_EQ(roles_of(input("y") + input("x")), alone);
  const std::string used =
      "layer { name: 's' type: 'Power' bottom: 'b' top: 's' }"
      "layer { name: 'z' type: 'Silence' bottom: 's' }";
  const json three = {{"b", "features"}, {"x", ""}, {"y", "label"}, {"main", "b"}};
  EXPECT_EQ(roles_of(input("b") + input("x") + input("y") + used), three);
}

TEST(Describe, SeveralDataLayersStayWhatTheyAre) {
  const std::string net =
      "layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 4 dim: 3 } } }"
      "layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'ip'"
      "  inner_product_param { num_output: 3 } }"
      "layer { name: 'yz' type: 'MemoryData' top: 'y' top: 'z' source_class: 'a.B'"
      "  memory_data_param { source: 'table' batch_size: 4 channels: 1 height: 1 width: 1 } }";
  const json data = describe({{"net", net}, {"phase", "TEST"}})["data_layer"];
  const json& tops = data["tops"];
  ASSERT_EQ(tops.size(), 3u);
  EXPECT_EQ(tops[0]["shape"], json({4, 3}));
  EXPECT_EQ(tops[0]["layer"], "x");
  EXPECT_EQ(tops[2]["name"], "z");
  EXPECT_EQ(tops[2]["layer"], "yz");
  EXPECT_EQ(tops[2]["batch"], 4);
  EXPECT_EQ(data["source"], "table");
  ASSERT_EQ(data["others"].size(), 1u);
  EXPECT_EQ(data["others"][0]["name"], "x");
}

TEST(Describe, TheNetsInASolverTakeRowsToo) {
  const std::string solver =
      "base_lr: 0.1 lr_policy: 'fixed' max_iter: 1 net_param { " + std::string(kOfFiles) + " }";
  const json rows = {{"data", {{"shape", {1, 6, 6}}}}};
  const json answer = describe({{"solver", solver}, {"phase", "TEST"}, {"rows", rows}});
  EXPECT_THAT(answer["solver_text"].get<std::string>(), HasSubstr("MemoryData"));
}

/// A blob that is weighted as a loss and read, too, is copied by the engine.
TEST(Describe, OutputsHaveTheNamesOfTheFile) {
  const json description =
      describe({{"net",
                 "layer { name: 'in' type: 'Input' top: 'x' input_param { shape { dim: 2 } } }"
                 "layer { name: 'cost' type: 'Power' bottom: 'x' top: 'cost' loss_weight: 2 }"
                 "layer { name: 'same' type: 'Power' bottom: 'cost' top: 'same' }"},
                {"phase", "TEST"}});
  EXPECT_EQ(description["outputs"], json({"cost", "same"}));
}

}  // namespace
}  // namespace cafetiere
