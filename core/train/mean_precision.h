// SPDX-License-Identifier: Apache-2.0
// The mean average precision of detections: SSD's reduction of what DetectionEvaluate gives.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/model/proto/caffe.pb.h"

namespace cafetiere {

/// How the precision of a class is averaged over its recalls.
enum class PrecisionForm {
  kIntegral,     ///< over the recalls as they come
  kMaxIntegral,  ///< the best precision at that recall or more, as in VOC 2012
  kElevenPoint,  ///< that at 0, 0.1, .. 1, as in VOC 2007
};

/// What a solver's ap_version names; the error lists the words.
Result<PrecisionForm> precision_form(const caffe::SolverParameter& solver);

/// Whether the solver's tests are of detections; an error for an eval_type that is not known.
Result<bool> evaluates_detections(const caffe::SolverParameter& solver);

/// Values of a row: image, class, score, right, wrong; or -1, class, objects, -1, -1.
inline constexpr int kEvaluationValues = 5;

/// Average precision by class, of rows in any order of batches.
std::map<int, double> average_precisions(std::span<const double> rows, PrecisionForm form);

}  // namespace cafetiere
