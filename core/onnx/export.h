// SPDX-License-Identifier: Apache-2.0
// Export: a net with its weights as an ONNX model (opset 17), for other runtimes.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/graph/graph.h"
#include "core/model/proto/caffe.pb.h"

namespace cafetiere {

/// What else a model says of the probabilities of classes: "predictedLabel", the label of the class with
/// the largest one, or with the largest probability / threshold.
struct OnnxClasses {
  std::vector<std::string> labels;  ///< none: nothing
  std::vector<double> thresholds;   ///< one for each label, or none
};

/// The bytes of an ONNX file that computes what `graph`, a net built for the TEST phase, does with
/// the parameters in `arena`. Its inputs are the tops of the net's Input layers, its outputs the
/// blobs that nobody consumes, both under their names; shapes, the batch included, are the net's.
/// A layer without an ONNX form is an error that names it. Of a net with TableData the columns of the table
/// are the inputs, under their names, and the number of rows is left open.
Result<std::string> export_onnx(const Graph& graph, std::span<const float> arena,
                                const OnnxClasses& classes = {});

/// The same with the parameters in `weights`, which must have all. `ignored` receives the names of
/// layers that have weights there and are not in the net.
Result<std::string> export_onnx(const Graph& graph, const caffe::NetParameter& weights,
                                std::vector<std::string>* ignored, const OnnxClasses& classes = {});

}  // namespace cafetiere
