// SPDX-License-Identifier: Apache-2.0
#include "core/data/annotated_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "core/data/datum.h"
#include "tests/data/sources.h"
#include "tests/support/temp_dir.h"

namespace cafetiere {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

struct TestBox {
  int label;
  float x1, y1, x2, y2;
  bool difficult = false;
};

/// 8 x 8 pixels, blue telling the row and green the column, or one colour.
Image picture(int red, int height = 8, int width = 8) {
  Image image{height, width, 3, {}};
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (const int v : {10 * y, 10 * x, red}) image.pixels.push_back(uint8_t(v));
    }
  }
  return image;
}

std::string record(const Image& image, const std::vector<TestBox>& boxes, bool encoded = true) {
  caffe::AnnotatedDatum datum;
  *datum.mutable_datum() = make_datum(image, 0);
  if (encoded) {
    datum.mutable_datum()->set_encoded(true);
    datum.mutable_datum()->set_data(*encode_image(image, "png"));
  }
  datum.set_type(caffe::AnnotatedDatum::BBOX);
  for (size_t i = 0; i < boxes.size(); ++i) {
    caffe::AnnotationGroup* group = datum.add_annotation_group();
    group->set_group_label(boxes[i].label);
    caffe::Annotation* annotation = group->add_annotation();
    annotation->set_instance_id(int(i));
    caffe::NormalizedBBox* b = annotation->mutable_bbox();
    b->set_xmin(boxes[i].x1), b->set_ymin(boxes[i].y1);
    b->set_xmax(boxes[i].x2), b->set_ymax(boxes[i].y2);
    b->set_difficult(boxes[i].difficult);
  }
  return datum.SerializeAsString();
}

struct Database {
  TempDir dir;
  explicit Database(const std::vector<std::string>& records) {
    auto writer = create_db(dir.path("db"), DbBackend::kLmdb);
    EXPECT_TRUE(writer.ok()) << writer.status().message();
    for (size_t i = 0; i < records.size(); ++i) {
      (*writer)->put("row" + std::to_string(100 + i), records[i]);
    }
    EXPECT_TRUE((*writer)->commit().ok());
  }
  std::string layer(int batch, const std::string& transform = "",
                    const std::string& annotated = "") const {
    return "type: 'AnnotatedData' top: 'data' top: 'label' transform_param { " + transform +
           " } data_param { source: '" + dir.path("db") +
           "' backend: LMDB batch_size: " + std::to_string(batch) + " } annotated_data_param { " +
           annotated + " }";
  }
};

const TestBox kFirst{3, 0, 0, 0.5F, 0.5F}, kSecond{4, 0.25F, 0.25F, 1, 0.75F, true};

Tops batch(Source& source, int64_t step = 0, int shard = 0) {
  Tops tops;
  const Status status = fill(source, shard, step, &tops);
  EXPECT_TRUE(status.ok()) << status.message();
  return tops;
}

TEST(AnnotatedData, GivesImagesAndTheirObjects) {
  for (const bool encoded : {true, false}) {
    const Database db({record(picture(1), {kFirst, kSecond}, encoded),
                       record(picture(2), {}, encoded), record(picture(3), {kFirst}, encoded)});
    const auto source = open_layer(db.layer(3, "mean_value: 1 scale: 0.5"));
    EXPECT_EQ(source->top_shapes(), (std::vector<Shape>{Shape{3, 3, 8, 8}, Shape{1, 1, 6, 8}}));
    const Tops tops = batch(*source);
    EXPECT_EQ(tops[0][9], (10 - 1) * 0.5F);  // blue of row 1
    EXPECT_EQ(tops[0][2 * 192 + 128], (3 - 1) * 0.5F);
    EXPECT_THAT(std::vector<float>(tops[1].begin(), tops[1].begin() + 24),
                ElementsAre(0, 3, 0, 0, 0, 0.5F, 0.5F, 0,        //
                            0, 4, 1, 0.25F, 0.25F, 1, 0.75F, 1,  //
                            2, 3, 0, 0, 0, 0.5F, 0.5F, 0));
    EXPECT_THAT(std::vector<float>(tops[1].begin() + 24, tops[1].end()), Each(-1));
  }
}

TEST(AnnotatedData, MirrorsObjectsWithTheirImages) {
  const Database db({record(picture(1), {kSecond})});
  const auto source = open_layer(db.layer(1, "mirror: true"));
  std::set<float> firsts;
  for (int step = 0; step < 20; ++step) {
    const Tops tops = batch(*source, step);
    const bool mirrored = tops[0][64] == 70;  // green of column 0
    firsts.insert(tops[0][64]);
    EXPECT_EQ(tops[1][3], mirrored ? 0 : 0.25F);
    EXPECT_EQ(tops[1][5], mirrored ? 0.75F : 1);
  }
  EXPECT_EQ(firsts.size(), 2U);
}

/// The pixels of an image are where its box says: blue and green at the box's corner tell which they were.
TEST(AnnotatedData, CropsExpandsAndResizesObjectsWithTheirImages) {
  Image image =
      picture(0, 64, 64);  // an object of white pixels, in columns 16 to 31, rows 24 to 47
  std::ranges::fill(image.pixels, uint8_t(0));
  for (int y = 24; y < 48; ++y) {
    for (int x = 16; x < 32; ++x) {
      for (int c = 0; c < 3; ++c) image.pixels[size_t((y * 64 + x) * 3 + c)] = 255;
    }
  }
  const Database db({record(image, {{1, 16 / 64.F, 24 / 64.F, 32 / 64.F, 48 / 64.F}})});
  const auto source = open_layer(
      db.layer(1,
               "mirror: true resize_param { height: 48 width: 32 interp_mode: LINEAR interp_mode: "
               "AREA interp_mode: CUBIC } expand_param { prob: 0.5 max_expand_ratio: 2 } "
               "emit_constraint { emit_type: MIN_OVERLAP emit_overlap: 0.3 }",
               "batch_sampler { max_sample: 1 max_trials: 1 } batch_sampler { sampler { min_scale: "
               "0.4 max_scale: 1 min_aspect_ratio: 0.5 max_aspect_ratio: 2 } sample_constraint { "
               "min_jaccard_overlap: 0.1 } max_sample: 1 max_trials: 50 }"),
      true);
  EXPECT_EQ(source->top_shapes()[0], (Shape{1, 3, 48, 32}));
  std::set<float> edges;
  int found = 0;
  for (int step = 0; step < 60; ++step) {
    const Tops tops = batch(*source, step);
    const float* box = tops[1].data();
    if (box[0] < 0) continue;
    ++found;
    edges.insert(box[3]);
    double light = 0, inside = 0;
    for (int y = 0; y < 48; ++y) {
      for (int x = 0; x < 32; ++x) {
        const float value = tops[0][size_t(y * 32 + x)];
        light += value;
        const float cx = (float(x) + 0.5F) / 32, cy = (float(y) + 0.5F) / 48;
        if (cx > box[3] && cx < box[5] && cy > box[4] && cy < box[6]) inside += value;
      }
    }
    const double area = double((box[5] - box[3]) * (box[6] - box[4])) * 32 * 48;
    EXPECT_GT(inside, 0.8 * light) << "step " << step << ": the light lies in the box";
    EXPECT_GT(inside, 0.75 * 255 * area) << "step " << step << ": and fills it";
  }
  EXPECT_GT(found, 40);
  EXPECT_GT(edges.size(), 20U) << "random from row to row";
}

TEST(AnnotatedData, AnEmitConstraintSaysWhichObjectsRemain) {
  const std::vector<AnnotatedBox> objects = {{1, 0, {0.4F, 0.4F, 0.8F, 0.8F}, false}};
  const Box left{0, 0, 0.5F, 1};  // a quarter of the object, without its center
  caffe::EmitConstraint rule;
  EXPECT_TRUE(project(objects, left, rule).empty());
  rule.set_emit_type(caffe::EmitConstraint::MIN_OVERLAP);
  rule.set_emit_overlap(0.2F);
  const auto kept = project(objects, left, rule);
  ASSERT_EQ(kept.size(), 1U);
  EXPECT_FLOAT_EQ(kept[0].box.x1, 0.8F);
  EXPECT_FLOAT_EQ(kept[0].box.x2, 1) << "cut off";
  rule.set_emit_overlap(0.3F);
  EXPECT_TRUE(project(objects, left, rule).empty());
}

TEST(AnnotatedData, SamplersKeepTheirBounds) {
  caffe::BatchSampler sampler;
  sampler.mutable_sampler()->set_min_scale(0.3F);
  sampler.mutable_sampler()->set_min_aspect_ratio(0.5F);
  sampler.mutable_sampler()->set_max_aspect_ratio(2);
  sampler.mutable_sample_constraint()->set_min_jaccard_overlap(0.5F);
  sampler.set_max_trials(2000);
  const std::vector<AnnotatedBox> objects = {{1, 0, {0.2F, 0.2F, 0.8F, 0.9F}, false}};
  std::vector<Box> crops;
  Draws draws(5, {});
  sample(sampler, objects, draws, &crops);
  EXPECT_GT(crops.size(), 100U);
  for (const Box& c : crops) {
    EXPECT_GE(overlap(c, objects[0].box), 0.5F);
    EXPECT_TRUE(c.x1 >= 0 && c.y1 >= 0 && c.x2 <= 1.0001F && c.y2 <= 1.0001F);
    EXPECT_LE(c.width() / c.height(), 2.001F);
    EXPECT_GE(c.width() / c.height(), 0.499F);
    EXPECT_GE(std::sqrt(area(c)), 0.299F);
  }
  sampler.mutable_sample_constraint()->set_max_jaccard_overlap(0.4F);
  crops.clear();
  sample(sampler, objects, draws, &crops);
  EXPECT_TRUE(crops.empty()) << "no crop is in both bounds";
}

TEST(AnnotatedData, TheSameRowsWhoeverReadsThem) {
  const Database db({record(picture(1), {kFirst}), record(picture(2), {kSecond}),
                     record(picture(3), {kFirst, kSecond})});
  const std::string layer =
      db.layer(2,
               "mirror: true resize_param { height: 9 width: 9 } distort_param { brightness_prob: "
               "0.5 brightness_delta: 32 hue_prob: 0.5 hue_delta: 18 saturation_prob: 0.5 "
               "saturation_lower: 0.5 saturation_upper: 1.5 }",
               "batch_sampler { sampler { min_scale: 0.3 } max_sample: 1 }");
  const auto one = open_layer(layer, true, 2), two = open_layer(layer, true, 2);
  for (const int step : {5, 0, 3, 5}) {
    for (const int shard : {1, 0}) batch(*one, step + 1, shard);
    EXPECT_EQ(batch(*one, step, 1), batch(*two, step, 1));
  }
  EXPECT_NE(batch(*one, 0), batch(*one, 3)) << "the same records, changed in another way";
}

TEST(AnnotatedData, SaysWhichRecordIsWrong) {
  const auto error = [](const std::string& value, const std::string& transform = "") {
    const Database db({record(picture(1), {kFirst}), value});
    return error_of(db.layer(2, transform));
  };
  EXPECT_THAT(error(make_datum(picture(1), 3).SerializeAsString()),
              AllOf(HasSubstr("layer \"L\" (AnnotatedData)"), HasSubstr("\"row101\""),
                    HasSubstr("read by type: \"Data\"")));
  const std::string good = record(picture(1), {kFirst, kSecond});
  for (const size_t size : {good.size() - 1, good.size() - 20, good.size() / 2, size_t{1}}) {
    EXPECT_THAT(error(good.substr(0, size)), HasSubstr("\"row101\"")) << size;
  }
  EXPECT_THAT(error(record(picture(1, 4, 4), {})),
              AllOf(HasSubstr("\"row101\""), HasSubstr("3 x 4 x 4"), HasSubstr("resize_param")));
  EXPECT_THAT(error(record(picture(1), {{1, NAN, 0, 1, 1}})), HasSubstr("no finite box"));
  caffe::AnnotatedDatum floats;
  floats.mutable_datum()->set_channels(3);
  floats.mutable_datum()->set_height(1);
  floats.mutable_datum()->set_width(1);
  for (int i = 0; i < 3; ++i) floats.mutable_datum()->add_float_data(1);
  EXPECT_THAT(error(floats.SerializeAsString()), HasSubstr("floats"));
  EXPECT_EQ(error(record(picture(1, 4, 4), {}), "resize_param { height: 8 width: 8 }"), "");
}

TEST(AnnotatedData, RefusesWhatItCannotDo) {
  const Database db({record(picture(1), {kFirst})});
  const auto error = [&](const std::string& transform, const std::string& annotated = "") {
    return error_of(db.layer(1, transform, annotated));
  };
  EXPECT_THAT(error("noise_param { hist_eq: true }"), HasSubstr("noise_param"));
  EXPECT_EQ(error("noise_param { }"), "");
  EXPECT_THAT(error("crop_size: 9"), HasSubstr("9 x 9 does not fit"));
  EXPECT_THAT(error("crop_h: 3"), HasSubstr("crop_w"));
  EXPECT_THAT(error("expand_param { max_expand_ratio: 0.5 }"), HasSubstr("max_expand_ratio"));
  EXPECT_THAT(error("", "batch_sampler { sampler { min_scale: 2 } }"), HasSubstr("min_scale 2"));
  EXPECT_THAT(error("", "batch_sampler { sampler { max_aspect_ratio: 0.5 } }"),
              HasSubstr("max_aspect_ratio 0.5"));
}

TEST(DbSource, NamesTheLayerOfAnnotatedRecords) {
  const Database db({record(picture(1), {kFirst})});
  EXPECT_THAT(error_of("type: 'Data' top: 'data' data_param { source: '" + db.dir.path("db") +
                       "' backend: LMDB batch_size: 1 }"),
              AllOf(HasSubstr("\"row100\""), HasSubstr("use type: \"AnnotatedData\"")));
}

}  // namespace
}  // namespace cafetiere
