// SPDX-License-Identifier: Apache-2.0
// CpuDevice: contractions as libxsmm products with images or channels in lanes, everything else as
// vector loops.
#pragma once

#include "core/device/ref/ref_device.h"

namespace cafetiere {

/// Operations that it does not override run as on the reference device.
class CpuDevice : public RefDevice {
 public:
  /// `precision` is that of convolutions, inner products and attention; sums are float32.
  explicit CpuDevice(Precision precision = Precision::kFloat32) : precision_(precision) {}
  const char* name() const override { return "cpu"; }

  void convolution(Program&, const std::string& name, const ConvGeometry&, TensorId src,
                   TensorId weights, TensorId bias, TensorId dst, bool relu) override;
  void convolution_backward_data(Program&, const std::string& name, const ConvGeometry&,
                                 TensorId diff_dst, TensorId weights, TensorId diff_src) override;
  void convolution_backward_weights(Program&, const std::string& name, const ConvGeometry&,
                                    TensorId src, TensorId diff_dst,
                                    Gradient diff_weights) override;
  void inner_product(Program&, const std::string& name, const InnerProductGeometry&, TensorId src,
                     TensorId weights, TensorId bias, TensorId dst, bool relu) override;
  void inner_product_backward_data(Program&, const std::string& name, const InnerProductGeometry&,
                                   TensorId diff_dst, TensorId weights, TensorId diff_src) override;
  void inner_product_backward_weights(Program&, const std::string& name,
                                      const InnerProductGeometry&, TensorId src, TensorId diff_dst,
                                      Gradient diff_weights) override;
  void pooling(Program&, const std::string& name, const PoolGeometry&, TensorId src, TensorId dst,
               TensorId index) override;
  void pooling_backward(Program&, const std::string& name, const PoolGeometry&, TensorId diff_dst,
                        TensorId index, TensorId diff_src) override;
  void lrn(Program&, const std::string& name, const LrnGeometry&, TensorId src, TensorId scale,
           TensorId dst) override;
  void lrn_backward(Program&, const std::string& name, const LrnGeometry&, TensorId src,
                    TensorId scale, TensorId dst, TensorId diff_dst, TensorId diff_src) override;
  void channel_moments(Program&, const std::string& name, TensorId src, TensorId mean,
                       TensorId variance) override;
  void channel_sums(Program&, const std::string& name, const ChannelTerms&, Gradient sum,
                    Gradient products) override;
  void softmax(Program&, const std::string& name, TensorId src, TensorId dst) override;
  void softmax_backward(Program&, const std::string& name, TensorId dst, TensorId diff_dst,
                        TensorId diff_src) override;
  void attention(Program&, const std::string& name, const AttentionGeometry&, TensorId qkv,
                 TensorId dst, TensorId log_sums) override;
  void attention_backward(Program&, const std::string& name, const AttentionGeometry&, TensorId qkv,
                          TensorId dst, TensorId log_sums, TensorId diff_dst,
                          TensorId diff_qkv) override;

 private:
  Precision precision_;
};

}  // namespace cafetiere
