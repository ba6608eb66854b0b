// SPDX-License-Identifier: Apache-2.0
// JNI glue for cafetiere.core.Engine: models in ONNX.
#include "jvm/native/jni_support.h"

using namespace cafetiere::jni;

CFT_JNI(jbyteArray, onnx)(JNIEnv* env, jclass, jbyteArray options, jbyteArray model) try {
  const std::string text = to_text(env, options);
  const Bytes weights(env, model);
  return bytes_from(env, [&](void** out, uint64_t* size) {
    return cft_onnx_export(text.c_str(), weights.data(), weights.size(), out, size);
  });
}
CFT_CATCH(jbyteArray)
