// SPDX-License-Identifier: Apache-2.0
// JNI glue for cafetiere.core.Rows.
#include "jvm/native/jni_support.h"

using namespace cafetiere::jni;

CFT_JNI(jlong, rowsCreate)(JNIEnv* env, jclass, jbyteArray schema) try {
  cft_rows* rows = nullptr;
  check(env, cft_rows_create(to_text(env, schema).c_str(), &rows));
  return address_of(rows);
}
CFT_CATCH(jlong)

CFT_JNI(void, rowsAppend)
(JNIEnv* env, jclass, jlong rows, jlong count, jlong chunk, jlong bytes) try {
  check(env, cft_rows_append(object<cft_rows>(rows), count, object<void>(chunk), bytes));
}
CFT_CATCH(void)

CFT_JNI(jlong, rowsCount)(JNIEnv* env, jclass, jlong rows) try {
  int64_t count = 0;
  check(env, cft_rows_count(object<cft_rows>(rows), &count));
  return count;
}
CFT_CATCH(jlong)

CFT_JNI(void, rowsDestroy)(JNIEnv* env, jclass, jlong rows) try {
  cft_rows_destroy(object<cft_rows>(rows));
}
CFT_CATCH(void)
