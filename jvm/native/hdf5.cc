// SPDX-License-Identifier: Apache-2.0
// JNI glue for cafetiere.core.hdf5.
#include <vector>

#include "jvm/native/jni_support.h"

#define CFT_HDF5(type, name) \
  extern "C" JNIEXPORT type JNICALL Java_cafetiere_core_hdf5_NativeHdf5_##name

using namespace cafetiere::jni;

CFT_HDF5(jlong, open)(JNIEnv* env, jclass, jbyteArray path) try {
  cft_hdf5* hdf5 = nullptr;
  check(env, cft_hdf5_open(to_text(env, path).c_str(), &hdf5));
  return address_of(hdf5);
}
CFT_CATCH(jlong)

CFT_HDF5(jbyteArray, shape)(JNIEnv* env, jclass, jlong hdf5, jbyteArray dataset) try {
  const std::string name = to_text(env, dataset);
  return text_from(
      env, [&](char** out) { return cft_hdf5_shape(object<cft_hdf5>(hdf5), name.c_str(), out); });
}
CFT_CATCH(jbyteArray)

CFT_HDF5(void, read)
(JNIEnv* env, jclass, jlong hdf5, jbyteArray dataset, jlong begin, jfloatArray out) try {
  std::vector<float> values(out ? static_cast<size_t>(env->GetArrayLength(out)) : 0);
  const int code = cft_hdf5_read(object<cft_hdf5>(hdf5), to_text(env, dataset).c_str(),
                                 static_cast<uint64_t>(begin), values.data(), values.size());
  if (!check(env, code) || values.empty()) return;
  env->SetFloatArrayRegion(out, 0, static_cast<jsize>(values.size()), values.data());
}
CFT_CATCH(void)

CFT_HDF5(void, close)(JNIEnv* env, jclass, jlong hdf5) try {
  cft_hdf5_close(object<cft_hdf5>(hdf5));
}
CFT_CATCH(void)
