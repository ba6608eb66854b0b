// SPDX-License-Identifier: Apache-2.0
// Tables of the forks' fields and types that this project does not support: ignored, or rejected
// with advice.
#include <algorithm>
#include <array>
#include <span>

#include "core/model/dialects.h"

namespace cafetiere {
namespace {

constexpr std::string_view kEngine = "it chooses among a fork's implementations";
constexpr std::string_view kPrecision = "everything is computed in float32";
constexpr std::string_view kSpeed = "it changes how a fork's GPU code works, not what it computes";
constexpr std::string_view kNodes = "it tunes Intel's own communication";
constexpr std::string_view kReader = "how far readers run ahead needs no setting here";
constexpr std::string_view kPictures = "it draws or files what the tops hold";

struct Ignored {
  std::string_view field, why;
};

constexpr auto kIgnored = std::to_array<Ignored>({
    {"engine", kEngine},
    {"cudnn_convolution_algo_seeker", kEngine},
    {"conv_algorithm", kEngine},
    {"conv_algos_override", kEngine},
    {"default_conv_algos_override", kEngine},
    {"default_forward_type", kPrecision},
    {"default_backward_type", kPrecision},
    {"default_forward_math", kPrecision},
    {"default_backward_math", kPrecision},
    {"forward_type", kPrecision},
    {"backward_type", kPrecision},
    {"forward_math", kPrecision},
    {"backward_math", kPrecision},
    {"cudnn_math_override", kPrecision},
    {"default_cudnn_math_override", kPrecision},
    {"solver_data_type", kPrecision},
    {"global_grad_scale", kPrecision},
    {"global_grad_scale_adaptive", kPrecision},
    {"quantization_param", kPrecision},
    {"debug", kSpeed},
    {"reduce_buckets", kSpeed},
    {"eltwise_mem_sharing", kSpeed},
    {"use_gpu_transform", kSpeed},
    {"forward_packing", kSpeed},
    {"torch_pooling", kSpeed},
    {"mem_param", kSpeed},
    {"per_fla_fuse", kSpeed},
    {"multinode", kNodes},
    {"mn_activation_param", kNodes},
    {"mn_grad_compress_param", kNodes},
    {"compile_net_state", kNodes},
    {"bn_stats_batch_size", kNodes},
    {"threads", kReader},
    {"parser_threads", kReader},
    {"cache", kReader},
    {"precache", kReader},
    {"prefetch", kReader},
    {"visualize", kPictures},
    {"visualize_threshold", kPictures},
    {"save_output_param", kPictures},
    {"save_file", kPictures},
    {"label_map_file", kPictures},
    {"name_size_file", kPictures},
});

struct Advice {
  std::string_view what, advice;
};

constexpr std::string_view kYolo =
    "cut the net before it and decode its boxes outside: x = (column + sigmoid(tx)) / width, w = "
    "exp(tw) anchor / width (version 3: anchors in pixels of the input, width times "
    "anchors_scale), "
    "score = sigmoid(object) sigmoid(class) (version 2: softmax of the classes), then non-maximum "
    "suppression";
constexpr std::string_view kC3d =
    "C3D's own layer: write it as Caffe's N-d Convolution, whose weights have the same order, and "
    "read "
    "the frames outside";
constexpr std::string_view kForkData =
    "training data or augmentation of one fork alone: take the deploy net, which may load, or feed "
    "the "
    "data through an Input layer";
constexpr std::string_view kOneFork =
    "a layer of one fork alone: write it as a Python layer, or cut the net before it";
constexpr std::string_view kVariants =
    "forks give this name to layers with different fields and defaults: write the one that is "
    "meant as "
    "a Python layer";
constexpr std::string_view kOutside = "compute it outside the net, from its tops";
constexpr std::string_view kVisualiser =
    "a type of a net's visualiser, not of Caffe: remove the layer";

constexpr auto kTypes = std::to_array<Advice>({
    {"Yolov3", kYolo},
    {"Region", kYolo},
    {"RegionLoss", kYolo},
    {"YoloSeg", kYolo},
    {"EvalDetection", kYolo},
    {"YoloDetectionOutput", kYolo},
    {"Convolution3D", kC3d},
    {"Pooling3D", kC3d},
    {"VideoData", kC3d},
    {"Correlation", kForkData},
    {"Correlation1D", kForkData},
    {"Resample", kForkData},
    {"FlowWarp", kForkData},
    {"DataAugmentation", kForkData},
    {"FlowAugmentation", kForkData},
    {"GenerateAugmentationParameters", kForkData},
    {"DetectNetTransformation", kForkData},
    {"CPMData", kForkData},
    {"LaneData", kForkData},
    {"DetectionOutputExtended", kOneFork},
    {"GRN", kOneFork},
    {"LabelSpecificAdd", kOneFork},
    {"LabelSpecificRescale", kOneFork},
    {"LabelSpecificHardMargin", kOneFork},
    {"AnchorEmbeddingExtractor", kOneFork},
    {"ScaleFilter", kOneFork},
    {"ROIAlign",
     "forks disagree on it (maximum or mean, a shift of half a pixel or none, sampling_ratio): "
     "write "
     "the one that is meant as a Python layer"},
    {"TripletLoss", kVariants},
    {"FocalLoss", kVariants},
    {"DenseCRF", kOutside},
    {"DomainTransform", kOutside},
    {"MatRead", kOutside},
    {"MatWrite", kOutside},
    {"UniqueLabel", kOutside},
    {"implicit", kVisualiser},
    {"data", "Netscope's word; Caffe's types are Input, Data and others"},
});

constexpr std::string_view kFused =
    "Intel's net compiler joined a ReLU to the layer: use the net that it was compiled from";

struct FieldAdvice {
  std::string_view message, field, advice;
};

constexpr auto kFields = std::to_array<FieldAdvice>({
    {"ConvolutionParameter", "relu", kFused},
    {"ConvolutionParameter", "negative_slope", kFused},
    {"ConvolutionParameter", "coeff", kFused},
    {"ConvolutionParameter", "fusion_type", kFused},
    {"InnerProductParameter", "relu", kFused},
    {"BatchNormParameter", "relu", kFused},
    {"ReLUParameter", "fuse", kFused},
    {"LossParameter", "label_smoothing",
     "it changes gradients and not the loss: remove it to train without"},
    {"LayerParameter", "force_backward",
     "a field of the net; for one layer write propagate_down: true"},
    {"ReshapeParameter", "pixelshuffler", "write it as a Deconvolution, or as a Python layer"},
});

std::string_view advice(std::span<const Advice> table, std::string_view what) {
  const auto found = std::ranges::find(table, what, &Advice::what);
  return found == table.end() ? std::string_view() : found->advice;
}

}  // namespace

std::string_view why_ignored(std::string_view field) {
  const auto found = std::ranges::find(kIgnored, field, &Ignored::field);
  return found == kIgnored.end() ? std::string_view() : found->why;
}

std::string_view advice_on_field(std::string_view message, std::string_view field) {
  const auto found = std::ranges::find_if(
      kFields, [&](const FieldAdvice& f) { return f.message == message && f.field == field; });
  return found == kFields.end() ? std::string_view() : found->advice;
}

std::string_view advice_on_type(std::string_view type) { return advice(kTypes, type); }

}  // namespace cafetiere
