// SPDX-License-Identifier: Apache-2.0
// JNI glue for cafetiere.core.Engine: models in ONNX.
#include <memory>

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

CFT_JNI(void, ofOnnx)(JNIEnv* env, jclass, jbyteArray file, jobjectArray parts) try {
  const Bytes given(env, file);
  char* net = nullptr;
  void* weights = nullptr;
  uint64_t size = 0;
  if (!check(env, cft_onnx_import(given.data(), given.size(), 1, &net, &weights, &size))) return;
  const std::unique_ptr<char, void (*)(void*)> text(net, cft_free);
  const std::unique_ptr<void, void (*)(void*)> model(weights, cft_free);
  if (jbyteArray part = to_java(env, net)) env->SetObjectArrayElement(parts, 0, part);
  if (env->ExceptionCheck()) return;
  if (jbyteArray part = to_java(env, weights, size)) env->SetObjectArrayElement(parts, 1, part);
}
CFT_CATCH(void)
