// SPDX-License-Identifier: Apache-2.0
// Mean average precision of detections: SSD's evaluation of the output of DetectionEvaluate.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/model/proto/caffe.pb.h"

namespace cafetiere {

/// How the precision of a class is averaged over recall.
enum class PrecisionForm {
  kIntegral,     ///< over the recalls that occur
  kMaxIntegral,  ///< the maximum precision at that recall or higher, as in VOC 2012
  kElevenPoint,  ///< the precision at recalls 0, 0.1, .., 1, as in VOC 2007
};

/// The form named by a solver's ap_version; the error lists the valid names.
Result<PrecisionForm> precision_form(const caffe::SolverParameter& solver);

/// Whether the solver's tests evaluate detections; an error for an unknown eval_type.
Result<bool> evaluates_detections(const caffe::SolverParameter& solver);

/// Values per row: image, class, score, true positive, false positive; or -1, class, objects, -1,
/// -1.
inline constexpr int kEvaluationValues = 5;

/// The average precision of each class, from rows of any number of batches in any order.
std::map<int, double> average_precisions(std::span<const double> rows, PrecisionForm form);

}  // namespace cafetiere
