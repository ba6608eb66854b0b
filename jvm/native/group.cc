// SPDX-License-Identifier: Apache-2.0
// JNI glue for cafetiere.core.Group.
#include "jvm/native/jni_support.h"

using namespace cafetiere::jni;

CFT_JNI(jlong, groupCreate)(JNIEnv* env, jclass, jbyteArray options) try {
  cft_group* group = nullptr;
  check(env, cft_group_create(to_text(env, options).c_str(), &group));
  return address_of(group);
}
CFT_CATCH(jlong)

CFT_JNI(jbyteArray, groupAddress)(JNIEnv* env, jclass, jlong group) try {
  return text_from(env,
                   [&](char** out) { return cft_group_address(object<cft_group>(group), out); });
}
CFT_CATCH(jbyteArray)

CFT_JNI(void, groupSetSecret)(JNIEnv* env, jclass, jlong group, jbyteArray secret) try {
  check(env, cft_group_set_secret(object<cft_group>(group), to_text(env, secret).c_str()));
}
CFT_CATCH(void)

CFT_JNI(void, groupConnect)(JNIEnv* env, jclass, jlong group, jbyteArray addresses) try {
  check(env, cft_group_connect(object<cft_group>(group), to_text(env, addresses).c_str()));
}
CFT_CATCH(void)

CFT_JNI(void, groupBarrier)(JNIEnv* env, jclass, jlong group) try {
  check(env, cft_group_barrier(object<cft_group>(group)));
}
CFT_CATCH(void)

CFT_JNI(void, groupCancel)(JNIEnv* env, jclass, jlong group) try {
  cft_group_cancel(object<cft_group>(group));
}
CFT_CATCH(void)

CFT_JNI(void, groupDestroy)(JNIEnv* env, jclass, jlong group) try {
  cft_group_destroy(object<cft_group>(group));
}
CFT_CATCH(void)
