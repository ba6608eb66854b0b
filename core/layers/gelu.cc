// SPDX-License-Identifier: Apache-2.0
// GELU: y = x Phi(x), element-wise, where Phi is the standard normal distribution function
// (Hendrycks & Gimpel 2016); with approximate: TANH, Phi is 1/2 (1 + tanh(sqrt(2 / pi) (x +
// 0.044715 x^3))).
#include "core/device/vector_math.h"
#include "core/layers/activation.h"

namespace cafetiere {
namespace {

/// Phi and its derivative, the normal density.
struct Normal {
  float phi, density;
};

/// Absolute error below 2e-7 and, above x = -5, relative error below 1e-6: for x < 0, phi = e^(-x^2
/// / 2) t Q(t) with t = 1 / (1 - x / 4), where Q is a least-squares fit of relative error 3.4e-8;
/// for x > 0 by symmetry.
[[gnu::always_inline]] inline Normal normal(float x) {  // a call would prevent vectorisation
  const float bell = vec::exp(-0.5F * x * x);
  const float t = 1 / std::fma(0.25F, std::fabs(x), 1.F);
  const float q = vec::polynomial(t, 0.0197819881F, -0.0808772072F, 0.0955968797F, -0.0317173116F,
                                  0.0636989847F, 0.0589751936F, 0.0816031024F, 0.0934663564F,
                                  0.0997364298F, 0.0997355655F);
  const float tail = bell * t * q;
  return {x > 0 ? 1 - tail : tail, 0.398942280F * bell};
}

/// The tanh form: 1/2 (1 + tanh u) = sigmoid(2 u). Beyond |x| = 20 it is 0 or 1; clamping x there
/// keeps the cube finite.
[[gnu::always_inline]] inline Normal normal_by_tanh(float x) {
  const float near = x < -20 ? -20 : x > 20 ? 20 : x;
  constexpr float kRate = 1.59576912F;  // 2 sqrt(2 / pi)
  const float square = near * near;
  const float s = vec::sigmoid(kRate * near * (1 + 0.044715F * square));
  return {s, s * (1 - s) * kRate * (1 + 3 * 0.044715F * square)};
}

template <Normal at(float)>
struct GELU : SlopeOfBottom {
  static constexpr bool kCostly = true;
  explicit GELU(const caffe::LayerParameter&) {}
  float operator()(float x) const { return x * at(x).phi; }
  float slope(float x) const {
    const Normal n = at(x);
    return n.phi + x * n.density;
  }
};

std::unique_ptr<Layer> create_gelu(const caffe::LayerParameter& param) {
  if (param.gelu_param().approximate() == caffe::GELUParameter::TANH) {
    return create_layer<Activation<GELU<normal_by_tanh>>>(param);
  }
  return create_layer<Activation<GELU<normal>>>(param);
}

}  // namespace

extern const LayerType layer_gelu{
    .name = "GELU", .create = create_gelu, .any_format = true, .rows_apart = always_apart};

}  // namespace cafetiere
