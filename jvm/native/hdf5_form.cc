// SPDX-License-Identifier: Apache-2.0
// JNI glue for cafetiere.core.Engine: snapshots in HDF5.
#include "jvm/native/jni_support.h"

using namespace cafetiere::jni;

CFT_JNI(jbyteArray, weightsHdf5)(JNIEnv* env, jclass, jbyteArray model) try {
  const Bytes weights(env, model);
  return bytes_from(env, [&](void** out, uint64_t* size) {
    return cft_weights_hdf5(weights.data(), weights.size(), out, size);
  });
}
CFT_CATCH(jbyteArray)

CFT_JNI(jbyteArray, stateHdf5)(JNIEnv* env, jclass, jbyteArray state, jbyteArray learned_net) try {
  const Bytes history(env, state);
  const std::string weights = to_text(env, learned_net);
  return bytes_from(env, [&](void** out, uint64_t* size) {
    return cft_state_hdf5(history.data(), history.size(), weights.c_str(), out, size);
  });
}
CFT_CATCH(jbyteArray)
