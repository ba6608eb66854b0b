// SPDX-License-Identifier: Apache-2.0
// JNI glue for cafetiere.core.Predictor.
#include <vector>

#include "jvm/native/jni_support.h"

using namespace cafetiere::jni;

CFT_JNI(jlong, predictorCreate)(JNIEnv* env, jclass, jbyteArray options, jbyteArray model) {
  const Bytes weights(env, model);
  cft_predictor* predictor = nullptr;
  check(env, cft_predictor_create(to_text(env, options).c_str(), weights.data(), weights.size(),
                                  &predictor));
  return address_of(predictor);
}

CFT_JNI(jbyteArray, predictorDescribe)(JNIEnv* env, jclass, jlong predictor) {
  return text_from(env, [&](char** out) {
    return cft_predictor_describe(object<cft_predictor>(predictor), out);
  });
}

CFT_JNI(void, predictorRun)
(JNIEnv* env, jclass, jlong predictor, jlong count, jlong chunk, jlong bytes,
 jobjectArray outputs) {
  std::vector<float*> memory(env->GetArrayLength(outputs));
  for (size_t i = 0; i < memory.size(); ++i) {
    jobject buffer = env->GetObjectArrayElement(outputs, static_cast<jsize>(i));
    memory[i] = static_cast<float*>(env->GetDirectBufferAddress(buffer));
    env->DeleteLocalRef(buffer);
  }
  check(env, cft_predictor_run(object<cft_predictor>(predictor), count, object<void>(chunk), bytes,
                               memory.data()));
}

CFT_JNI(void, predictorDestroy)(JNIEnv*, jclass, jlong predictor) {
  cft_predictor_destroy(object<cft_predictor>(predictor));
}
