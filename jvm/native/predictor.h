// SPDX-License-Identifier: Apache-2.0
// What the natives of predictors and scorers have in common.
#pragma once

#include "jvm/native/jni_support.h"

namespace cafetiere::jni {

/// A further predictor with the same weights; 0 with a pending exception.
inline jlong share_predictor(JNIEnv* env, jlong predictor) {
  cft_predictor* another = nullptr;
  check(env, cft_predictor_share(object<cft_predictor>(predictor), &another));
  return address_of(another);
}

inline void destroy_predictor(jlong predictor) {
  cft_predictor_destroy(object<cft_predictor>(predictor));
}

}  // namespace cafetiere::jni
