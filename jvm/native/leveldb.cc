// SPDX-License-Identifier: Apache-2.0
// JNI glue for cafetiere.core.leveldb.
#include "jvm/native/jni_support.h"

#define CFT_LEVELDB(type, name) \
  extern "C" JNIEXPORT type JNICALL Java_cafetiere_core_leveldb_NativeLevelDb_##name

using namespace cafetiere::jni;

CFT_LEVELDB(jlong, open)(JNIEnv* env, jclass, jbyteArray path) try {
  cft_leveldb* leveldb = nullptr;
  check(env, cft_leveldb_open(to_text(env, path).c_str(), &leveldb));
  return address_of(leveldb);
}
CFT_CATCH(jlong)

CFT_LEVELDB(jboolean, next)(JNIEnv* env, jclass, jlong leveldb, jobjectArray views) try {
  const void *key = nullptr, *value = nullptr;
  uint64_t key_bytes = 0, value_bytes = 0;
  const int code =
      cft_leveldb_next(object<cft_leveldb>(leveldb), &key, &key_bytes, &value, &value_bytes);
  if (!check(env, code) || !key) return JNI_FALSE;
  const bool put =
      put_view(env, views, 0, key, key_bytes) && put_view(env, views, 1, value, value_bytes);
  return put ? JNI_TRUE : JNI_FALSE;
}
CFT_CATCH(jboolean)

CFT_LEVELDB(void, close)(JNIEnv* env, jclass, jlong leveldb) try {
  cft_leveldb_close(object<cft_leveldb>(leveldb));
}
CFT_CATCH(void)
