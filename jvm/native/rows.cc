// SPDX-License-Identifier: Apache-2.0
// JNI glue for cafetiere.core.Rows and its Budget.
#include "jvm/native/jni_support.h"

using namespace cafetiere::jni;

CFT_JNI(jlong, rowBudgetCreate)(JNIEnv* env, jclass, jbyteArray options) try {
  cft_row_budget* budget = nullptr;
  check(env, cft_row_budget_create(to_text(env, options).c_str(), &budget));
  return address_of(budget);
}
CFT_CATCH(jlong)

CFT_JNI(void, rowBudgetDestroy)(JNIEnv* env, jclass, jlong budget) try {
  cft_row_budget_destroy(object<cft_row_budget>(budget));
}
CFT_CATCH(void)

CFT_JNI(jlong, rowsCreate)(JNIEnv* env, jclass, jbyteArray schema, jlong budget) try {
  cft_rows* rows = nullptr;
  check(env, cft_rows_create_within(to_text(env, schema).c_str(), object<cft_row_budget>(budget),
                                    &rows));
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
