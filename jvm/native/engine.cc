// SPDX-License-Identifier: Apache-2.0
// JNI glue for cafetiere.core.Engine.
#include "jvm/native/jni_support.h"

using namespace cafetiere::jni;

CFT_JNI(jbyteArray, version)(JNIEnv* env, jclass) { return to_java(env, cft_version()); }

CFT_JNI(jbyteArray, instructionSet)(JNIEnv* env, jclass) {
  return to_java(env, cft_instruction_set());
}

CFT_JNI(void, useInstructionSet)(JNIEnv* env, jclass, jbyteArray name) {
  check(env, cft_use_instruction_set(to_text(env, name).c_str()));
}

CFT_JNI(jbyteArray, describe)(JNIEnv* env, jclass, jbyteArray options) {
  const std::string text = to_text(env, options);
  return text_from(env, [&](char** out) { return cft_describe(text.c_str(), out); });
}

CFT_JNI(jbyteArray, report)(JNIEnv* env, jclass, jbyteArray events, jbyteArray result) {
  const std::string lines = to_text(env, events);
  const std::string summary = to_text(env, result);
  return text_from(env,
                   [&](char** out) { return cft_report(lines.c_str(), summary.c_str(), out); });
}

CFT_JNI(jlong, address)(JNIEnv* env, jclass, jobject buffer) {
  return address_of(env->GetDirectBufferAddress(buffer));
}
