// SPDX-License-Identifier: Apache-2.0
// The net for a table's columns: where a column gets hidden layers of its own, and what decays by how much.
#include "core/model/table_net.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace cafetiere {
namespace {

using Column = caffe::TableDataParameter::Column;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;

Column category(const std::string& name, int values) {
  Column column;
  column.set_name(name);
  column.set_kind(Column::CATEGORY);
  column.set_size(1);
  for (int i = 0; i < values; ++i) column.add_value("value " + std::to_string(i));
  return column;
}

/// The net for one category of so many values, each of which so many rows have.
caffe::NetParameter net_for(int values, double rows, TableNetOptions options = {}) {
  Column label = category("label", 2);
  label.set_kind(Column::CLASS);
  if (options.step_rows == 0) options.step_rows = 256;
  options.rows_of_value["place"] = rows;
  auto net = table_net(std::vector{category("place", values)}, {{label}, {}}, options);
  EXPECT_TRUE(net.ok()) << net.status().message();
  return *net;
}

std::vector<std::string> products(const caffe::NetParameter& net) {
  std::vector<std::string> names;
  for (const auto& layer : net.layer()) {
    if (layer.type() == "InnerProduct") names.push_back(layer.name());
  }
  return names;
}

/// How much more than by default the weights of a layer decay.
float decay(const caffe::NetParameter& net, const std::string& name) {
  for (const auto& layer : net.layer()) {
    if (layer.name() == name) return layer.param(0).decay_mult();
  }
  ADD_FAILURE() << "no layer " << name;
  return 0;
}

TEST(TableNet, AColumnOfManyValuesHasLayersOfItsOwn) {
  const auto net = net_for(100, 50);
  EXPECT_THAT(products(net), ElementsAre("embedding/place/hidden1", "embedding/place/hidden2",
                                         "hidden1", "hidden2", "score"));
  EXPECT_THAT(products(net_for(99, 50)), ElementsAre("hidden1", "hidden2", "score"));
  EXPECT_THAT(products(net_for(100, 49)), ElementsAre("hidden1", "hidden2", "score"));
}

TEST(TableNet, WithLayersOfItsOwnAnEmbeddingDecaysLessAndTheRestMore) {
  const auto plain = net_for(100, 49), own = net_for(100, 50);
  EXPECT_FLOAT_EQ(decay(plain, "hidden1"), 1);
  for (const char* name : {"embedding/place/hidden1", "hidden1", "hidden2", "score"}) {
    EXPECT_FLOAT_EQ(decay(own, name), 30) << name;
  }
  EXPECT_NEAR(decay(plain, "embedding/place"), 190 * std::sqrt(256 / 49.), 0.1);
  EXPECT_NEAR(decay(own, "embedding/place"), 0.3 * 190 * std::sqrt(256 / 50.), 0.1);
}

/// What the embedding of a column of 100 values with 50 rows each asks for.
caffe::PosteriorParameter posterior(const Column& column, const TableTarget& target,
                                    TableNetOptions options = {}) {
  options.step_rows = 256;
  options.rows_of_value[column.name()] = 50;
  const auto net = table_net(std::vector{column}, target, options);
  EXPECT_TRUE(net.ok()) << net.status().message();
  return std::ranges::find(net->layer(), "Embed", &caffe::LayerParameter::type)
      ->embed_param()
      .posterior();
}

TEST(TableNet, WithLayersOfItsOwnAnEmbeddingEndsAsPosteriorMeans) {
  const Column place = category("place", 100);
  Column label = category("label", 2);
  label.set_kind(Column::CLASS);
  const auto own = posterior(place, {{label}, {}});
  EXPECT_EQ(own.prototypes(), 256);
  EXPECT_EQ(own.first(), 2);  // a missing value and one that did not occur
  EXPECT_EQ(own.output(), "embedding/place/hidden2");
  EXPECT_EQ(own.scores(), "score");
  EXPECT_EQ(own.labels(), "label");
  EXPECT_FALSE(posterior(category("place", 99), {{label}, {}}).has_prototypes());

  EXPECT_FALSE(posterior(place, {{label}, {}}, {.posterior = false}).has_prototypes());
  EXPECT_FALSE(posterior(place, {{label}, {}}, {.members = 2}).has_prototypes());
  Column weight, number, several = place;
  weight.set_name("weight");
  weight.set_kind(Column::WEIGHT);
  EXPECT_FALSE(posterior(place, {{label}, {weight}}).has_prototypes());
  number.set_name("label");
  number.set_kind(Column::NUMBER);
  EXPECT_FALSE(posterior(place, {{number}, {}}).has_prototypes());
  several.set_size(3);
  EXPECT_FALSE(posterior(several, {{label}, {}}).has_prototypes());
}

// Ten times as many steps an epoch, as many rows of a value in each.
TEST(TableNet, DecaysFallByTheRootOfAnEpochsSteps) {
  const auto few = net_for(896, 100), many = net_for(8960, 100);  // of 350 and 3,500 steps
  for (const char* name : {"embedding/place", "hidden1", "score"}) {
    EXPECT_NEAR(decay(few, name) / decay(many, name), std::sqrt(10), 0.01) << name;
  }
}

TEST(TableNet, MembersShareEmbeddingsAlone) {
  TableNetOptions options;
  options.members = 2;
  const auto net = net_for(100, 50, options);
  std::vector<std::string> expected;
  for (const std::string member : {"member1/", "member2/"}) {
    for (const char* layer :
         {"embedding/place/hidden1", "embedding/place/hidden2", "hidden1", "hidden2", "score"}) {
      expected.push_back(member + layer);
    }
  }
  EXPECT_THAT(products(net), ElementsAreArray(expected));
  EXPECT_EQ(1, std::ranges::count(net.layer(), "Embed", &caffe::LayerParameter::type));
  options.hidden.add_layer()->set_name("given");
  Column label = category("label", 2);
  label.set_kind(Column::CLASS);
  EXPECT_THAT(
      table_net(std::vector{category("place", 9)}, {{label}, {}}, options).status().message(),
      HasSubstr("members: a given net has one"));
}

TEST(TableNet, AnImageWithoutAShapeIsRefused) {
  Column photo = category("photo", 0), label = category("label", 2);
  photo.set_kind(Column::IMAGE);
  label.set_kind(Column::CLASS);
  EXPECT_THAT(table_net(std::vector{photo}, {{label}, {}}, {}).status().message(),
              HasSubstr("column 'photo': an IMAGE needs a shape"));
}

/// Of a net that learns numbers of a mean and a standard deviation.
Status learn_numbers(double mean, double deviation, TableNetOptions options = {}) {
  Column label;
  label.set_name("arrives");
  label.set_kind(Column::NUMBER);
  label.set_size(1);
  label.add_mean(mean);
  label.add_scale(deviation > 0 ? 1 / deviation : 0);
  return table_net(std::vector{category("place", 3)}, {{label}, {}}, options).status();
}

TEST(TableNet, ALabelThatFloat32CannotTellApartIsRefused) {
  EXPECT_TRUE(learn_numbers(2020, 5).ok());
  EXPECT_TRUE(learn_numbers(1.7e9, 86400 * 30).ok());
  EXPECT_TRUE(learn_numbers(1.7e9, 0).ok());  // all are equal
  EXPECT_THAT(learn_numbers(1764513000, 56.6).message(),
              HasSubstr("the label 'arrives' has a mean of 1764513000 and a standard deviation of "
                        "56.6, which predictions in float32 cannot tell apart"));
  EXPECT_THAT(learn_numbers(-1e15, 1e5).message(), HasSubstr("subtract the mean from the label"));
  EXPECT_THAT(learn_numbers(0, 1e39).message(), HasSubstr("too large for float32"));
}

TEST(TableNet, AQuantileIsGivenOnce) {
  TableNetOptions options;
  options.loss = "quantile";
  options.quantiles = {0.1F, 0.5F, 0.1F};
  EXPECT_EQ(learn_numbers(0, 1, options).message(), "quantiles: one is given twice");
}

TEST(TableNet, ALinearModelHasNoLayersOfItsOwn) {
  TableNetOptions options;
  options.layers = {};
  EXPECT_THAT(products(net_for(100, 50, options)), ElementsAre("score"));
}

}  // namespace
}  // namespace cafetiere
