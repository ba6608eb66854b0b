// SPDX-License-Identifier: Apache-2.0
// JNI glue for cafetiere.core.Engine.
#include "jvm/native/jni_support.h"

using namespace cafetiere::jni;

CFT_JNI(jbyteArray, version)(JNIEnv* env, jclass) try { return to_java(env, cft_version()); }
CFT_CATCH(jbyteArray)

CFT_JNI(jbyteArray, instructionSet)(JNIEnv* env, jclass) try {
  return to_java(env, cft_instruction_set());
}
CFT_CATCH(jbyteArray)

CFT_JNI(void, useInstructionSet)(JNIEnv* env, jclass, jbyteArray name) try {
  check(env, cft_use_instruction_set(to_text(env, name).c_str()));
}
CFT_CATCH(void)

CFT_JNI(jbyteArray, describe)(JNIEnv* env, jclass, jbyteArray options) try {
  const std::string text = to_text(env, options);
  return text_from(env, [&](char** out) { return cft_describe(text.c_str(), out); });
}
CFT_CATCH(jbyteArray)

CFT_JNI(jdouble, stepSeconds)
(JNIEnv* env, jclass, jbyteArray options, jint threads, jint passes, jint ranks) try {
  double seconds = 0;
  check(env, cft_step_seconds(to_text(env, options).c_str(), threads, passes, ranks, &seconds));
  return seconds;
}
CFT_CATCH(jdouble)

CFT_JNI(jbyteArray, explain)(JNIEnv* env, jclass, jbyteArray options) try {
  const std::string text = to_text(env, options);
  return text_from(env, [&](char** out) { return cft_explain(text.c_str(), out); });
}
CFT_CATCH(jbyteArray)

CFT_JNI(jbyteArray, syncModes)(JNIEnv* env, jclass) try {
  return text_from(env, [](char** out) { return cft_sync_modes(out); });
}
CFT_CATCH(jbyteArray)

CFT_JNI(jbyteArray, report)(JNIEnv* env, jclass, jbyteArray events, jbyteArray result) try {
  const std::string lines = to_text(env, events);
  const std::string summary = to_text(env, result);
  return text_from(env,
                   [&](char** out) { return cft_report(lines.c_str(), summary.c_str(), out); });
}
CFT_CATCH(jbyteArray)

CFT_JNI(jlong, address)(JNIEnv* env, jclass, jobject buffer) try {
  return address_of(env->GetDirectBufferAddress(buffer));
}
CFT_CATCH(jlong)
