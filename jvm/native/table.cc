// SPDX-License-Identifier: Apache-2.0
// JNI glue for cafetiere.core.table.
#include "jvm/native/jni_support.h"

#define CFT_TABLE(type, name) \
  extern "C" JNIEXPORT type JNICALL Java_cafetiere_core_table_NativeTable_##name

using namespace cafetiere::jni;

CFT_TABLE(jlong, create)(JNIEnv* env, jclass, jbyteArray options) try {
  cft_table* table = nullptr;
  check(env, cft_table_create(to_text(env, options).c_str(), &table));
  return address_of(table);
}
CFT_CATCH(jlong)

CFT_TABLE(void, add)
(JNIEnv* env, jclass, jlong table, jlong count, jlong chunk, jlong bytes) try {
  check(env, cft_table_add(object<cft_table>(table), count, object<void>(chunk),
                           static_cast<uint64_t>(bytes)));
}
CFT_CATCH(void)

CFT_TABLE(void, merge)(JNIEnv* env, jclass, jlong table, jbyteArray statistics) try {
  const Bytes part(env, statistics);
  check(env, cft_table_merge(object<cft_table>(table), part.data(), part.size()));
}
CFT_CATCH(void)

CFT_TABLE(jbyteArray, statistics)(JNIEnv* env, jclass, jlong table) try {
  return bytes_from(env, [&](void** out, uint64_t* bytes) {
    return cft_table_statistics(object<cft_table>(table), out, bytes);
  });
}
CFT_CATCH(jbyteArray)

CFT_TABLE(jbyteArray, net)(JNIEnv* env, jclass, jlong table, jbyteArray options) try {
  const std::string text = to_text(env, options);
  return text_from(
      env, [&](char** out) { return cft_table_net(object<cft_table>(table), text.c_str(), out); });
}
CFT_CATCH(jbyteArray)

CFT_TABLE(jlong, keyedCreate)(JNIEnv* env, jclass, jbyteArray options) try {
  cft_keyed* keyed = nullptr;
  check(env, cft_keyed_create(to_text(env, options).c_str(), &keyed));
  return address_of(keyed);
}
CFT_CATCH(jlong)

CFT_TABLE(void, keyedAdd)
(JNIEnv* env, jclass, jlong keyed, jlong count, jlong chunk, jlong bytes) try {
  check(env, cft_keyed_add(object<cft_keyed>(keyed), count, object<void>(chunk),
                           static_cast<uint64_t>(bytes)));
}
CFT_CATCH(void)

/// What KeyedTrainer.Net has: {rows, steps, loss} in `figures`, {net, model, classes} in `parts`.
CFT_TABLE(void, keyedTrain)
(JNIEnv* env, jclass, jlong keyed, jdoubleArray figures, jobjectArray parts) try {
  cft_keyed_net net{};
  net.struct_size = sizeof net;
  if (!check(env, cft_keyed_train(object<cft_keyed>(keyed), &net))) return;
  const jdouble values[] = {double(net.rows), double(net.steps), net.loss};
  env->SetDoubleArrayRegion(figures, 0, 3, values);
  const auto put = [&](jsize place, const void* bytes, uint64_t size) {
    if (env->ExceptionCheck()) return;
    jbyteArray array = to_java(env, bytes, size);
    if (array) env->SetObjectArrayElement(parts, place, array);
  };
  put(0, net.net, net.net_bytes);
  put(1, net.model, net.model_bytes);
  put(2, net.classes, std::strlen(net.classes));
}
CFT_CATCH(void)

CFT_TABLE(void, keyedDrop)(JNIEnv* env, jclass, jlong keyed) try {
  check(env, cft_keyed_drop(object<cft_keyed>(keyed)));
}
CFT_CATCH(void)

CFT_TABLE(void, keyedCancel)(JNIEnv* env, jclass, jlong keyed) try {
  cft_keyed_cancel(object<cft_keyed>(keyed));
}
CFT_CATCH(void)

CFT_TABLE(void, keyedDestroy)(JNIEnv* env, jclass, jlong keyed) try {
  cft_keyed_destroy(object<cft_keyed>(keyed));
}
CFT_CATCH(void)

CFT_TABLE(void, destroy)(JNIEnv* env, jclass, jlong table) try {
  cft_table_destroy(object<cft_table>(table));
}
CFT_CATCH(void)
