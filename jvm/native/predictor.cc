// SPDX-License-Identifier: Apache-2.0
// JNI glue for cafetiere.core.Predictor.
#include "jvm/native/predictor.h"

#include <vector>

using namespace cafetiere::jni;

CFT_JNI(jlong, predictorCreate)(JNIEnv* env, jclass, jbyteArray options, jbyteArray model) try {
  const Bytes weights(env, model);
  cft_predictor* predictor = nullptr;
  check(env, cft_predictor_create(to_text(env, options).c_str(), weights.data(), weights.size(),
                                  &predictor));
  return address_of(predictor);
}
CFT_CATCH(jlong)

CFT_JNI(jlong, predictorShare)(JNIEnv* env, jclass, jlong predictor) try {
  return share_predictor(env, predictor);
}
CFT_CATCH(jlong)

CFT_JNI(void, predictorReset)(JNIEnv* env, jclass, jlong predictor) try {
  check(env, cft_predictor_reset(object<cft_predictor>(predictor)));
}
CFT_CATCH(void)

CFT_JNI(jbyteArray, predictorDescribe)(JNIEnv* env, jclass, jlong predictor) try {
  return text_from(env, [&](char** out) {
    return cft_predictor_describe(object<cft_predictor>(predictor), out);
  });
}
CFT_CATCH(jbyteArray)

CFT_JNI(void, predictorRun)
(JNIEnv* env, jclass, jlong predictor, jlong count, jlong chunk, jlong bytes,
 jobjectArray outputs) try {
  std::vector<float*> memory(outputs ? env->GetArrayLength(outputs) : 0);
  std::vector<uint64_t> room(memory.size());
  for (size_t i = 0; i < memory.size(); ++i) {
    jobject buffer = env->GetObjectArrayElement(outputs, static_cast<jsize>(i));
    if (!buffer) throw std::invalid_argument("an output is null");
    memory[i] = static_cast<float*>(env->GetDirectBufferAddress(buffer));
    if (!memory[i]) throw std::invalid_argument("an output is no direct buffer");
    room[i] = static_cast<uint64_t>(env->GetDirectBufferCapacity(buffer)) / sizeof(float);
    env->DeleteLocalRef(buffer);
  }
  check(env, cft_predictor_fill(object<cft_predictor>(predictor), count, object<void>(chunk), bytes,
                                memory.data(), room.data(), static_cast<int32_t>(memory.size())));
}
CFT_CATCH(void)

CFT_JNI(void, predictorDestroy)(JNIEnv* env, jclass, jlong predictor) try {
  destroy_predictor(predictor);
}
CFT_CATCH(void)
