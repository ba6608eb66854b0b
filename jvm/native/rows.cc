// SPDX-License-Identifier: Apache-2.0
// JNI glue for cafetiere.core.Rows, its Budget and its Check.
#include <algorithm>
#include <vector>

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

CFT_JNI(jlong, rowCheckCreate)(JNIEnv* env, jclass, jbyteArray options) try {
  cft_row_check* made = nullptr;
  check(env, cft_row_check_create(to_text(env, options).c_str(), &made));
  return address_of(made);
}
CFT_CATCH(jlong)

CFT_JNI(jbyteArray, rowCheckRun)
(JNIEnv* env, jclass, jlong row_check, jlong count, jlong chunk, jlong bytes, jbyteArray good) try {
  std::vector<uint8_t> found(good ? static_cast<size_t>(env->GetArrayLength(good)) : 0);
  if (count < 0 || static_cast<size_t>(count) > found.size()) {
    throw std::invalid_argument("there is no room for so many rows");
  }
  found.resize(std::max<size_t>(found.size(), 1));
  jbyteArray why = text_from(env, [&](char** out) {
    return cft_row_check_run(object<cft_row_check>(row_check), count, object<void>(chunk), bytes,
                             found.data(), out);
  });
  if (why && count > 0) {
    env->SetByteArrayRegion(good, 0, static_cast<jsize>(count),
                            reinterpret_cast<const jbyte*>(found.data()));
  }
  return why;
}
CFT_CATCH(jbyteArray)

CFT_JNI(void, rowCheckDestroy)(JNIEnv* env, jclass, jlong row_check) try {
  cft_row_check_destroy(object<cft_row_check>(row_check));
}
CFT_CATCH(void)
