// SPDX-License-Identifier: Apache-2.0
// The schema held against a table of facts, so that an accidental edit of caffe.proto is seen.
#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "core/model/proto/caffe.pb.h"

namespace cafetiere {
namespace {

namespace pb = google::protobuf;

const pb::FileDescriptor& schema() { return *caffe::NetParameter::descriptor()->file(); }

const pb::FieldDescriptor* field_of(const std::string& message, const std::string& field) {
  const pb::Descriptor* type = schema().FindMessageTypeByName(message);
  return type == nullptr ? nullptr : type->FindFieldByName(field);
}

/// Fields with numbers from here on are the project's own.
constexpr int kFirstAddition = 20000;

int additions(const pb::Descriptor& type) {
  int count = 0;
  for (int i = 0; i < type.field_count(); ++i) count += type.field(i)->number() >= kFirstAddition;
  return count;
}

/// The messages that only those fields lead to.
std::set<std::string> added_messages() {
  std::set<std::string> names;
  for (int i = 0; i < schema().message_type_count(); ++i) {
    const pb::Descriptor& type = *schema().message_type(i);
    for (int f = 0; f < type.field_count(); ++f) {
      const pb::FieldDescriptor& field = *type.field(f);
      const bool added = field.number() >= kFirstAddition && field.message_type();
      if (added) names.insert(field.message_type()->name());
    }
  }
  return names;
}

TEST(Schema, HasEveryMessageWithAllItsFields) {
  const std::map<std::string, int> fields = {
      {"BlobShape", 1},
      {"BlobProto", 13},
      {"BlobProtoVector", 1},
      {"Datum", 7},
      {"FillerParameter", 8},
      {"NetParameter", 9},
      {"SolverParameter", 42},
      {"SolverState", 4},
      {"NetState", 3},
      {"NetStateRule", 5},
      {"ParamSpec", 4},
      {"LayerParameter", 73},
      {"TransformationParameter", 14},
      {"LossParameter", 6},
      {"AccuracyParameter", 3},
      {"ArgMaxParameter", 3},
      {"ClipParameter", 2},
      {"ConcatParameter", 2},
      {"BatchNormParameter", 4},
      {"BiasParameter", 3},
      {"ContrastiveLossParameter", 2},
      {"ConvolutionParameter", 18},
      {"CropParameter", 2},
      {"DataParameter", 11},
      {"DropoutParameter", 2},
      {"DummyDataParameter", 6},
      {"EltwiseParameter", 3},
      {"ELUParameter", 1},
      {"EmbedParameter", 5},
      {"ExpParameter", 3},
      {"FlattenParameter", 2},
      {"HDF5DataParameter", 3},
      {"HDF5OutputParameter", 1},
      {"HingeLossParameter", 1},
      {"ImageDataParameter", 14},
      {"InfogainLossParameter", 2},
      {"InnerProductParameter", 6},
      {"InputParameter", 1},
      {"LogParameter", 3},
      {"LRNParameter", 6},
      {"MemoryDataParameter", 9},
      {"MVNParameter", 3},
      {"ParameterParameter", 1},
      {"PoolingParameter", 13},
      {"PowerParameter", 3},
      {"PythonParameter", 4},
      {"RecurrentParameter", 5},
      {"ReductionParameter", 3},
      {"ReLUParameter", 2},
      {"ReshapeParameter", 3},
      {"ScaleParameter", 5},
      {"SigmoidParameter", 1},
      {"SliceParameter", 3},
      {"SoftmaxParameter", 2},
      {"SwishParameter", 1},
      {"TanHParameter", 1},
      {"TileParameter", 2},
      {"ThresholdParameter", 1},
      {"WindowDataParameter", 13},
      {"SPPParameter", 3},
      {"V1LayerParameter", 43},
      {"V0LayerParameter", 38},
      {"PReLUParameter", 2},
      {"CoSDataParameter", 5},
      {"DeepSparkParam", 9},
      // Forks, by numbers that do not clash
      {"BoxAnnotatorOHEMParameter", 2},
      {"NormalizeParameter", 4},
      {"PriorBoxParameter", 15},
      {"NonMaximumSuppressionParameter", 3},
      {"DetectionOutputParameter", 8},
      {"DetectionEvaluateParameter", 5},
      {"MultiBoxLossParameter", 23},
      {"NormalizedBBox", 8},
      {"Annotation", 2},
      {"AnnotationGroup", 2},
      {"AnnotatedDatum", 3},
      {"Sampler", 4},
      {"SampleConstraint", 6},
      {"BatchSampler", 5},
      {"EmitConstraint", 2},
      {"AnnotatedDataParameter", 2},
      {"ResizeParameter", 9},
      {"SaltPepperParameter", 2},
      {"NoiseParameter", 13},
      {"DistortionParameter", 11},
      {"ExpansionParameter", 2},
      {"Yolov3DetectionOutputParameter", 9},
      {"ShuffleChannelParameter", 1},
      {"SeLuParameter", 2},
      {"SeLuDropoutParameter", 2},
  };
  std::set<std::string> names = added_messages();
  for (const auto& [name, count] : fields) names.insert(name);
  EXPECT_EQ(size_t(schema().message_type_count()), names.size());
  for (const auto& [name, count] : fields) {
    const pb::Descriptor* type = schema().FindMessageTypeByName(name);
    ASSERT_NE(type, nullptr) << name;
    EXPECT_EQ(type->field_count() - additions(*type), count) << name;
  }
}

TEST(Schema, NumbersAreThoseOfCaffeAndCaffeOnSpark) {
  struct Number {
    const char *message, *field;
    int number;
  };
  for (const Number& n : {
           Number{"NetParameter", "layer", 100},
           {"NetParameter", "layers", 2},
           {"NetParameter", "input_shape", 8},
           {"LayerParameter", "blobs", 7},
           {"LayerParameter", "propagate_down", 11},
           {"LayerParameter", "transform_param", 100},
           {"LayerParameter", "convolution_param", 106},
           {"LayerParameter", "softmax_param", 125},
           {"LayerParameter", "batch_norm_param", 139},
           {"LayerParameter", "scale_param", 142},
           {"LayerParameter", "clip_param", 148},
           {"LayerParameter", "source_class", 10001},
           {"LayerParameter", "cos_data_param", 10010},
           {"MemoryDataParameter", "width", 4},
           {"MemoryDataParameter", "share_in_parallel", 10000},
           {"MemoryDataParameter", "source", 10001},
           {"MemoryDataParameter", "dataframe_column_select", 10002},
           {"MemoryDataParameter", "image_encoded", 10003},
           {"MemoryDataParameter", "dataframe_format", 10004},
           {"ConvolutionParameter", "dilation", 18},
           {"PoolingParameter", "round_mode", 13},
           {"SPPParameter", "engine", 6},
           {"SolverParameter", "base_lr", 5},
           {"SolverParameter", "solver_type", 30},
           {"SolverParameter", "weights", 42},
           {"BlobProto", "double_data", 8},
           {"Datum", "encoded", 7},
           {"V1LayerParameter", "blob_share_mode", 1002},
           {"V0LayerParameter", "hdf5_output_param", 1001},
       }) {
    const pb::FieldDescriptor* field = field_of(n.message, n.field);
    ASSERT_NE(field, nullptr) << n.message << "." << n.field;
    EXPECT_EQ(field->number(), n.number) << n.message << "." << n.field;
  }
}

TEST(Schema, DefaultsAreThoseOfCaffe) {
  EXPECT_EQ(caffe::NetState().phase(), caffe::TEST);
  EXPECT_EQ(caffe::FillerParameter().type(), "constant");
  EXPECT_EQ(caffe::FillerParameter().sparse(), -1);
  EXPECT_EQ(caffe::LRNParameter().local_size(), 5U);
  EXPECT_EQ(caffe::LRNParameter().beta(), 0.75F);
  EXPECT_EQ(caffe::BatchNormParameter().moving_average_fraction(), 0.999F);
  EXPECT_EQ(caffe::BatchNormParameter().eps(), 1e-5F);
  EXPECT_EQ(caffe::DropoutParameter().dropout_ratio(), 0.5F);
  EXPECT_EQ(caffe::LossParameter().normalization(), caffe::LossParameter::VALID);
  EXPECT_EQ(caffe::ReductionParameter().operation(), caffe::ReductionParameter::SUM);
  EXPECT_EQ(caffe::MVNParameter().eps(), 1e-9F);
  EXPECT_EQ(caffe::DataParameter().backend(), caffe::DataParameter::LEVELDB);
  EXPECT_EQ(caffe::DataParameter().prefetch(), 4U);
  EXPECT_EQ(caffe::WindowDataParameter().crop_mode(), "warp");
  EXPECT_EQ(caffe::MemoryDataParameter().dataframe_format(), "parquet");
  EXPECT_TRUE(caffe::MemoryDataParameter().share_in_parallel());
  EXPECT_EQ(caffe::CoSDataParameter::TopBlob().sample_num_axes(), 3U);

  const caffe::SolverParameter solver;
  EXPECT_EQ(solver.type(), "SGD");
  EXPECT_EQ(solver.solver_mode(), caffe::SolverParameter::GPU);
  EXPECT_EQ(solver.snapshot_format(), caffe::SolverParameter::BINARYPROTO);
  EXPECT_EQ(solver.clip_gradients(), -1);
  EXPECT_EQ(solver.random_seed(), -1);
  EXPECT_EQ(solver.delta(), 1e-8F);
  EXPECT_EQ(solver.rms_decay(), 0.99F);
  EXPECT_EQ(solver.momentum2(), 0.999F);
  EXPECT_TRUE(solver.snapshot_after_train() && solver.test_initialization());
}

TEST(Schema, OnlyBlobsAndShapesArePacked) {
  for (const char* name : {"data", "diff", "double_data", "double_diff"}) {
    EXPECT_TRUE(field_of("BlobProto", name)->is_packed()) << name;
  }
  EXPECT_TRUE(field_of("BlobShape", "dim")->is_packed());
  EXPECT_FALSE(field_of("Datum", "float_data")->is_packed());
  EXPECT_FALSE(field_of("LayerParameter", "loss_weight")->is_packed());
  EXPECT_TRUE(field_of("ClipParameter", "min")->is_required());
}

}  // namespace
}  // namespace cafetiere
