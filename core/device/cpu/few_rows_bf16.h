// SPDX-License-Identifier: Apache-2.0
// Inner products of few images in bfloat16: the weights, by far the largest operand, are read in
// float32 and rounded in the caches, so that nothing as large is written except their gradient.
// Parameters that are fixed, or used repeatedly, are rounded once.
#pragma once

#include <string>

#include "core/device/device.h"

namespace cafetiere::few_rows_bf16 {

/// Whether there are few images, and the widths are multiples of pairs and vectors.
bool suits(const InnerProductGeometry&);

void product(Program&, const std::string& name, const InnerProductGeometry&, TensorId src,
             TensorId weights, TensorId bias, TensorId dst, bool relu);
void backward_data(Program&, const std::string& name, const InnerProductGeometry&,
                   TensorId diff_dst, TensorId weights, TensorId diff_src);
void backward_weights(Program&, const std::string& name, const InnerProductGeometry&, TensorId src,
                      TensorId diff_dst, Gradient diff_weights);

/// For the kernels: the most images, the version of images and outputs, the number of blocks, and the
/// description of a step.
inline constexpr int64_t kMostImages = 128;
inline const Version kRows(Layout::kChannels, Format::kBFloat16);
inline int blocks(int64_t size, int64_t step) { return int((size + step - 1) / step); }
std::string widths(const InnerProductGeometry&);

}  // namespace cafetiere::few_rows_bf16
