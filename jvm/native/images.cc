// SPDX-License-Identifier: Apache-2.0
// JNI glue for cafetiere.core.image.
#include "jvm/native/jni_support.h"

#define CFT_IMAGE(type, name) \
  extern "C" JNIEXPORT type JNICALL Java_cafetiere_core_image_NativeImage_##name

using namespace cafetiere::jni;

/// Fills {height, width, channels} and gives the pixels.
CFT_IMAGE(jbyteArray, decode)
(JNIEnv* env, jclass, jbyteArray file, jbyteArray color, jintArray sizes) try {
  const Bytes bytes(env, file);
  int32_t found[3]{};
  void* pixels = nullptr;
  const int code = cft_image_decode(bytes.data(), bytes.size(), to_text(env, color).c_str(),
                                    &found[0], &found[1], &found[2], &pixels);
  if (!check(env, code)) return nullptr;
  const jint given[] = {found[0], found[1], found[2]};
  env->SetIntArrayRegion(sizes, 0, 3, given);
  jbyteArray array =
      env->ExceptionCheck()
          ? nullptr
          : to_java(env, pixels, uint64_t(found[0]) * uint64_t(found[1]) * uint64_t(found[2]));
  cft_free(pixels);
  return array;
}
CFT_CATCH(jbyteArray)

CFT_IMAGE(jbyteArray, resize)
(JNIEnv* env, jclass, jbyteArray pixels, jint height, jint width, jint channels, jint to_height,
 jint to_width) try {
  const Bytes bytes(env, pixels);
  void* resized = nullptr;
  const int code = cft_image_resize(bytes.data(), bytes.size(), height, width, channels, to_height,
                                    to_width, &resized);
  if (!check(env, code)) return nullptr;
  jbyteArray array =
      to_java(env, resized, uint64_t(to_height) * uint64_t(to_width) * uint64_t(channels));
  cft_free(resized);
  return array;
}
CFT_CATCH(jbyteArray)

CFT_IMAGE(jlong, transformerCreate)(JNIEnv* env, jclass, jbyteArray options) try {
  cft_transformer* transformer = nullptr;
  check(env, cft_transformer_create(to_text(env, options).c_str(), &transformer));
  return address_of(transformer);
}
CFT_CATCH(jlong)

/// Java has held `count` against the room behind `offset` of a direct buffer, in floats.
CFT_IMAGE(void, transformerRun)
(JNIEnv* env, jclass, jlong transformer, jbyteArray pixels, jint height, jint width, jint channels,
 jlong number, jobject out, jint offset, jint count) try {
  const Bytes bytes(env, pixels);
  auto* floats = static_cast<float*>(env->GetDirectBufferAddress(out));
  check(env, cft_transformer_run(object<cft_transformer>(transformer), bytes.data(), bytes.size(),
                                 height, width, channels, number, floats ? floats + offset : floats,
                                 static_cast<uint64_t>(count)));
}
CFT_CATCH(void)

CFT_IMAGE(void, transformerDestroy)(JNIEnv* env, jclass, jlong transformer) try {
  cft_transformer_destroy(object<cft_transformer>(transformer));
}
CFT_CATCH(void)
