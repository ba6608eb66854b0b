// SPDX-License-Identifier: Apache-2.0
#include "core/data/db.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "cli/convert_mnist.h"
#include "core/data/db_source.h"
#include "tests/support/temp_dir.h"

namespace cafetiere {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr DbBackend kBackends[] = {DbBackend::kLmdb, DbBackend::kLevelDb};

/// Record i: an image of 1 x 2 x 2 pixels [i, i, i, i + 1], label i.
std::string record(int i) {
  caffe::Datum datum;
  datum.set_channels(1);
  datum.set_height(2);
  datum.set_width(2);
  const auto c = static_cast<char>(i);
  datum.set_data(std::string{c, c, c, static_cast<char>(i + 1)});
  datum.set_label(i);
  return datum.SerializeAsString();
}

std::string make_db(const TempDir& dir, DbBackend backend, const std::vector<std::string>& values) {
  const std::string path = dir.path("db");
  auto writer = create_db(path, backend);
  EXPECT_TRUE(writer.ok()) << writer.status().message();
  for (size_t i = 0; i < values.size(); ++i) {
    (*writer)->put("key" + std::to_string(1000 + i), values[i]);
  }
  EXPECT_TRUE((*writer)->commit().ok());
  return path;
}

caffe::LayerParameter data_layer(const std::string& path, DbBackend backend, int batch) {
  caffe::LayerParameter layer;
  layer.set_name("digits");
  layer.set_type("Data");
  layer.add_top("data");
  layer.add_top("label");
  layer.mutable_data_param()->set_source(path);
  layer.mutable_data_param()->set_batch_size(static_cast<uint32_t>(batch));
  layer.mutable_data_param()->set_backend(
      backend == DbBackend::kLmdb ? caffe::DataParameter::LMDB : caffe::DataParameter::LEVELDB);
  return layer;
}

std::vector<float> labels_of(DbSource& source, int shard, int64_t sub_step) {
  std::vector<float> data(static_cast<size_t>(source.top_shapes()[0].count()));
  std::vector<float> label(static_cast<size_t>(source.rows(shard, sub_step)));
  float* const tops[] = {data.data(), label.data()};
  const Status status = source.fill(shard, sub_step, tops);
  EXPECT_TRUE(status.ok()) << status.message();
  for (size_t i = 0; i < label.size(); ++i) EXPECT_EQ(data[4 * i + 3], label[i] + 1);
  return label;
}

TEST(Db, ReadsInKeyOrderWhatWasWritten) {
  for (const DbBackend backend : kBackends) {
    const TempDir dir;
    const std::string path = make_db(dir, backend, {"a", "b", ""});
    auto db = open_db(path, backend);
    ASSERT_TRUE(db.ok()) << db.status().message();
    EXPECT_EQ((*db)->records(), 3);
    auto cursor = (*db)->cursor();
    ASSERT_TRUE(cursor.ok());
    std::string all;
    for (Status s = (*cursor)->first(); (*cursor)->valid(); s = (*cursor)->next()) {
      ASSERT_TRUE(s.ok());
      all += std::string((*cursor)->key()) + "=" + std::string((*cursor)->value()) + " ";
    }
    EXPECT_EQ(all, "key1000=a key1001=b key1002= ");
  }
}

TEST(Db, LmdbGrowsAndOpensTwice) {
  const TempDir dir;
  const std::string path = make_db(dir, DbBackend::kLmdb, {std::string(5 << 20, 'x'), "y"});
  auto one = open_db(path, DbBackend::kLmdb), two = open_db(path, DbBackend::kLmdb);
  ASSERT_TRUE(one.ok() && two.ok());
  auto cursor = (*two)->cursor();
  ASSERT_TRUE((*cursor)->first().ok());
  EXPECT_EQ((*cursor)->value().size(), size_t{5} << 20);
}

TEST(Db, SaysWhatIsWrongWithAPath) {
  const TempDir dir;
  EXPECT_THAT(open_db(dir.path("none"), DbBackend::kLmdb).status().message(),
              AllOf(HasSubstr("none"), HasSubstr("not found")));
  const std::string path = make_db(dir, DbBackend::kLmdb, {"a"});
  EXPECT_THAT(open_db(path, DbBackend::kLevelDb).status().message(), HasSubstr("backend: LMDB"));
  EXPECT_THAT(create_db(path, DbBackend::kLmdb).status().message(), HasSubstr("mkdir"));
  std::filesystem::create_directory(dir.path("bad"));
  dir.write("bad/data.mdb", "not a database");
  EXPECT_FALSE(open_db(dir.path("bad"), DbBackend::kLmdb).ok());
  EXPECT_THAT(parse_db_backend("sqlite").status().message(), HasSubstr("lmdb, leveldb"));
}

TEST(DbSource, ReadsInOrderAndWraps) {
  for (const DbBackend backend : kBackends) {
    const TempDir dir;
    const std::string path =
        make_db(dir, backend, {record(0), record(1), record(2), record(3), record(4)});
    auto source = DbSource::make(data_layer(path, backend, 3), true, 1, 1);
    ASSERT_TRUE(source.ok()) << source.status().message();
    EXPECT_EQ((*source)->top_shapes(), (std::vector<Shape>{Shape{3, 1, 2, 2}, Shape{3}}));
    EXPECT_THAT(labels_of(**source, 0, 0), ElementsAre(0, 1, 2));
    EXPECT_THAT(labels_of(**source, 0, 1), ElementsAre(3, 4, 0));
    EXPECT_THAT(labels_of(**source, 0, 7), ElementsAre(1, 2, 3));
    EXPECT_THAT(labels_of(**source, 0, 1), ElementsAre(3, 4, 0));
  }
}

TEST(DbSource, ShardsTakeTurns) {
  const TempDir dir;
  const std::string path =
      make_db(dir, DbBackend::kLmdb, {record(0), record(1), record(2), record(3), record(4)});
  auto source = DbSource::make(data_layer(path, DbBackend::kLmdb, 2), true, 2, 1);
  ASSERT_TRUE(source.ok());
  EXPECT_THAT(labels_of(**source, 0, 0), ElementsAre(0, 2));
  EXPECT_THAT(labels_of(**source, 1, 0), ElementsAre(1, 3));
  EXPECT_THAT(labels_of(**source, 0, 1), ElementsAre(4, 1));
  EXPECT_THAT(labels_of(**source, 1, 1), ElementsAre(0, 2));
}

// Every record once an epoch, in an order of its own, whoever reads it.
TEST(DbSource, ShufflesEveryEpoch) {
  for (const DbBackend backend : kBackends) {
    const TempDir dir;
    std::vector<std::string> records;
    for (int i = 0; i < 8; ++i) records.push_back(record(i));
    caffe::LayerParameter layer = data_layer(make_db(dir, backend, records), backend, 8);
    layer.mutable_data_param()->set_shuffle(true);
    std::vector<std::vector<float>> epochs;
    {
      auto source = DbSource::make(layer, true, 1, 1);
      ASSERT_TRUE(source.ok()) << source.status().message();
      for (int epoch = 0; epoch < 3; ++epoch) epochs.push_back(labels_of(**source, 0, epoch));
      EXPECT_EQ(labels_of(**source, 0, 0), epochs[0]) << "the same again";
    }
    for (const std::vector<float>& labels : epochs) {
      EXPECT_THAT(labels, ::testing::UnorderedElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
      EXPECT_EQ(std::ranges::count(epochs, labels), 1);
    }
    layer.mutable_data_param()->set_batch_size(2);
    auto shards = DbSource::make(layer, true, 2, 1);
    ASSERT_TRUE(shards.ok());
    for (int q = 0; q < 6; ++q) {
      for (int shard = 0; shard < 2; ++shard) {
        const std::vector<float> labels = labels_of(**shards, shard, q);
        for (size_t j = 0; j < 2; ++j) {
          const size_t at = (size_t(q) * 2 + j) * 2 + size_t(shard);
          EXPECT_EQ(labels[j], epochs[at / 8][at % 8]);
        }
      }
    }
  }
}

TEST(DbSource, ReadsFloatDatums) {
  const TempDir dir;
  caffe::Datum datum;
  datum.set_channels(2);
  datum.set_height(1);
  datum.set_width(1);
  datum.add_float_data(1.5f);
  datum.add_float_data(-2.5f);
  caffe::LayerParameter layer =
      data_layer(make_db(dir, DbBackend::kLmdb, {datum.SerializeAsString()}), DbBackend::kLmdb, 1);
  layer.mutable_top()->RemoveLast();
  layer.mutable_transform_param()->set_scale(2);
  auto source = DbSource::make(layer, true, 1, 1);
  ASSERT_TRUE(source.ok()) << source.status().message();
  float data[2];
  float* const tops[] = {data};
  ASSERT_TRUE((*source)->fill(0, 5, tops).ok());
  EXPECT_THAT(data, ElementsAre(3.0f, -5.0f));
}

TEST(DbSource, NamesLayerPathAndRecord) {
  const auto error = [](const std::vector<std::string>& values) {
    const TempDir dir;
    const std::string path = make_db(dir, DbBackend::kLmdb, values);
    auto source = DbSource::make(data_layer(path, DbBackend::kLmdb, 2), true, 1, 1);
    if (!source.ok()) return source.status().message();
    float data[8], label[2];
    float* const tops[] = {data, label};
    return (*source)->fill(0, 0, tops).message();
  };
  caffe::Datum encoded, large, short_data;
  encoded.ParseFromString(record(0));
  large = short_data = encoded;
  encoded.set_encoded(true);
  large.set_height(3);
  short_data.set_data("abc");
  EXPECT_THAT(
      error({encoded.SerializeAsString()}),
      AllOf(HasSubstr("layer \"digits\""), HasSubstr("key1000"), HasSubstr("encoded image")));
  EXPECT_THAT(error({record(0), large.SerializeAsString()}),
              AllOf(HasSubstr("layer \"digits\""), HasSubstr("key1001"), HasSubstr("1 x 3 x 2")));
  EXPECT_THAT(error({short_data.SerializeAsString()}), HasSubstr("3 values"));
  large.set_channels(1 << 30), large.set_height(1 << 30), large.set_width(1 << 30);
  EXPECT_THAT(error({large.SerializeAsString()}), HasSubstr("4 values"));
  EXPECT_THAT(error({"\xff\xff"}), HasSubstr("not a Datum"));
  EXPECT_THAT(error({}), HasSubstr("no records"));
  EXPECT_THAT(
      DbSource::make(data_layer("nowhere", DbBackend::kLmdb, 2), true, 1, 1).status().message(),
      AllOf(HasSubstr("layer \"digits\""), HasSubstr("\"nowhere\" not found")));
  EXPECT_THAT(DbSource::make(data_layer("", DbBackend::kLmdb, 2), true, 1, 1).status().message(),
              HasSubstr("no source"));
}

std::string big_endian(std::vector<uint32_t> numbers) {
  std::string bytes;
  for (const uint32_t n : numbers) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(n >> shift);
  }
  return bytes;
}

TEST(ConvertMnist, WritesWhatTheDataLayerReads) {
  const TempDir dir;
  std::string pixels, classes;
  for (int i = 0; i < 2500; ++i) {
    const auto c = static_cast<char>(i % 100);
    pixels += std::string{c, c, c, static_cast<char>(i % 100 + 1)};
    classes += c;
  }
  const auto images = dir.write("images", big_endian({0x803, 2500, 2, 2}) + pixels);
  const auto labels = dir.write("labels", big_endian({0x801, 2500}) + classes);
  for (const DbBackend backend : kBackends) {
    const std::string db = dir.path(db_backend_name(backend));
    const Status status = convert_mnist(images, labels, db, backend);
    ASSERT_TRUE(status.ok()) << status.message();
    auto source = DbSource::make(data_layer(db, backend, 3), true, 1, 1);
    ASSERT_TRUE(source.ok()) << source.status().message();
    EXPECT_EQ((*source)->records(), 2500);
    EXPECT_THAT(labels_of(**source, 0, 800), ElementsAre(0, 1, 2));
    EXPECT_THAT(labels_of(**source, 0, 833), ElementsAre(99, 0, 1));
  }
}

TEST(ConvertMnist, RefusesBadFiles) {
  const TempDir dir;
  const auto images = dir.write("images", big_endian({0x803, 2, 2, 2}) + "12345678");
  const auto labels = dir.write("labels", big_endian({0x801, 2}) + "12");
  const auto error = [&](const std::string& i, const std::string& l) {
    std::filesystem::remove_all(dir.path("db"));
    return convert_mnist(i, l, dir.path("db"), DbBackend::kLmdb).message();
  };
  EXPECT_EQ(error(images, labels), "");
  EXPECT_THAT(error(labels, images), HasSubstr("exchanged"));
  EXPECT_THAT(error(dir.path("none"), labels), HasSubstr("cannot open"));
  EXPECT_THAT(error(dir.write("cut", big_endian({0x803, 2, 2, 2}) + "12345"), labels),
              HasSubstr("ends too early"));
  EXPECT_THAT(error(dir.write("empty", ""), labels), HasSubstr("ends too early"));
  EXPECT_THAT(error(images, dir.write("three", big_endian({0x801, 3}) + "123")),
              HasSubstr("2 images but 3 labels"));
  EXPECT_THAT(error(dir.write("huge", big_endian({0x803, 2, ~0u, ~0u})), labels),
              HasSubstr("4294967295"));
}

}  // namespace
}  // namespace cafetiere
