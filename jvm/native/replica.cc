// SPDX-License-Identifier: Apache-2.0
// JNI glue for cafetiere.core.Rounds and its Replica.
#include <vector>

#include "jvm/native/jni_support.h"

using namespace cafetiere::jni;

namespace {

/// The elements of a byte[][], all of one length, as arrays of floats while the object lives.
class FloatArrays {
 public:
  FloatArrays(JNIEnv* env, jobjectArray arrays) {
    const jsize count = arrays ? env->GetArrayLength(arrays) : 0;
    memory_.reserve(count);
    for (jsize i = 0; i < count; ++i) {
      auto bytes = static_cast<jbyteArray>(env->GetObjectArrayElement(arrays, i));
      if (!bytes) throw std::invalid_argument("an array is null");
      const jsize size = env->GetArrayLength(bytes);
      if (i > 0 && size / sizeof(float) != memory_[0].size()) {
        throw std::invalid_argument("the arrays are of different lengths");
      }
      std::vector<float>& array = memory_.emplace_back(size / sizeof(float));
      env->GetByteArrayRegion(bytes, 0, jsize(array.size() * sizeof(float)),
                              reinterpret_cast<jbyte*>(array.data()));
      env->DeleteLocalRef(bytes);
      data_.push_back(array.data());
    }
  }

  const float* const* data() const { return data_.data(); }
  int32_t count() const { return static_cast<int32_t>(data_.size()); }
  uint64_t floats() const { return memory_.empty() ? 0 : memory_[0].size(); }

 private:
  std::vector<std::vector<float>> memory_;
  std::vector<const float*> data_;
};

/// A byte[] as floats, which `put` copies back.
class Floats {
 public:
  Floats(JNIEnv* env, jbyteArray array)
      : env_(env), array_(array), values_(array ? env->GetArrayLength(array) / sizeof(float) : 0) {
    if (array) env->GetByteArrayRegion(array, 0, bytes(), memory());
  }

  void put() {
    if (array_) env_->SetByteArrayRegion(array_, 0, bytes(), memory());
  }
  float* data() { return values_.data(); }
  uint64_t size() const { return values_.size(); }

 private:
  jsize bytes() const { return static_cast<jsize>(values_.size() * sizeof(float)); }
  jbyte* memory() { return reinterpret_cast<jbyte*>(values_.data()); }

  JNIEnv* env_;
  jbyteArray array_;
  std::vector<float> values_;
};

}  // namespace

CFT_JNI(jbyteArray, rowsKeys)(JNIEnv* env, jclass, jlong rows, jlong seed, jlong count) try {
  int64_t there = 0;
  if (!check(env, cft_rows_count(object<cft_rows>(rows), &there))) return nullptr;
  if (count != there) throw std::invalid_argument("there are not so many rows");
  std::vector<jbyte> keys(size_t(count) * 32);
  if (!check(env, cft_rows_keys(object<cft_rows>(rows), seed, keys.data()))) return nullptr;
  return to_java(env, keys.data(), keys.size());
}
CFT_CATCH(jbyteArray)

CFT_JNI(jbyteArray, treeSum)(JNIEnv* env, jclass, jobjectArray arrays) try {
  const FloatArrays terms(env, arrays);
  std::vector<float> sum(terms.floats());
  if (!check(env, cft_tree_sum(terms.data(), terms.count(), sum.size(), sum.data()))) {
    return nullptr;
  }
  return to_java(env, sum.data(), sum.size() * sizeof(float));
}
CFT_CATCH(jbyteArray)

CFT_JNI(jlong, replicaCreate)(JNIEnv* env, jclass, jbyteArray options) try {
  cft_replica* replica = nullptr;
  check(env, cft_replica_create(to_text(env, options).c_str(), &replica));
  return address_of(replica);
}
CFT_CATCH(jlong)

CFT_JNI(void, replicaRows)(JNIEnv* env, jclass, jlong replica, jlong rows, jlong total_rows) try {
  check(env, cft_replica_rows(object<cft_replica>(replica), object<cft_rows>(rows), total_rows));
}
CFT_CATCH(void)

CFT_JNI(void, replicaValidation)(JNIEnv* env, jclass, jlong replica, jlong rows) try {
  check(env, cft_replica_validation(object<cft_replica>(replica), object<cft_rows>(rows)));
}
CFT_CATCH(void)

CFT_JNI(void, replicaRestore)(JNIEnv* env, jclass, jlong replica, jbyteArray state) try {
  const Bytes bytes(env, state);
  check(env, cft_replica_restore(object<cft_replica>(replica), bytes.data(), bytes.size()));
}
CFT_CATCH(void)

CFT_JNI(jbyteArray, replicaRound)
(JNIEnv* env, jclass, jlong replica, jlong iter, jlong steps, jbyteArray shared) try {
  Floats floats(env, shared);
  jbyteArray report = text_from(env, [&](char** out) {
    return cft_replica_round(object<cft_replica>(replica), iter, steps, floats.data(),
                             floats.size(), out);
  });
  if (report) floats.put();
  return report;
}
CFT_CATCH(jbyteArray)

CFT_JNI(jbyteArray, replicaTest)(JNIEnv* env, jclass, jlong replica, jbyteArray shared) try {
  Floats floats(env, shared);
  return text_from(env, [&](char** out) {
    return cft_replica_test(object<cft_replica>(replica), floats.data(), floats.size(), out);
  });
}
CFT_CATCH(jbyteArray)

CFT_JNI(jbyteArray, replicaPosterior)(JNIEnv* env, jclass, jlong replica, jbyteArray begun) try {
  Floats floats(env, begun);
  return bytes_from(env, [&](void** out, uint64_t* size) {
    return cft_replica_posterior(object<cft_replica>(replica), floats.data(), floats.size(), out,
                                 size);
  });
}
CFT_CATCH(jbyteArray)

CFT_JNI(jbyteArray, replicaHistory)(JNIEnv* env, jclass, jlong replica) try {
  return bytes_from(env, [&](void** out, uint64_t* size) {
    return cft_replica_history(object<cft_replica>(replica), out, size);
  });
}
CFT_CATCH(jbyteArray)

CFT_JNI(jlong, replicaStep)(JNIEnv* env, jclass, jlong replica) try {
  int64_t step = 0;
  check(env, cft_replica_step(object<cft_replica>(replica), &step));
  return step;
}
CFT_CATCH(jlong)

CFT_JNI(void, replicaCancel)(JNIEnv* env, jclass, jlong replica) try {
  cft_replica_cancel(object<cft_replica>(replica));
}
CFT_CATCH(void)

CFT_JNI(void, replicaDestroy)(JNIEnv* env, jclass, jlong replica) try {
  cft_replica_destroy(object<cft_replica>(replica));
}
CFT_CATCH(void)

CFT_JNI(jlong, roundsCreate)(JNIEnv* env, jclass, jbyteArray options) try {
  cft_rounds* rounds = nullptr;
  check(env, cft_rounds_create(to_text(env, options).c_str(), &rounds));
  return address_of(rounds);
}
CFT_CATCH(jlong)

CFT_JNI(void, roundsRestore)
(JNIEnv* env, jclass, jlong rounds, jbyteArray model, jbyteArray state) try {
  const Bytes weights(env, model);
  const Bytes history(env, state);
  check(env, cft_rounds_restore(object<cft_rounds>(rounds), weights.data(), weights.size(),
                                history.data(), history.size()));
}
CFT_CATCH(void)

CFT_JNI(jbyteArray, roundsDescribe)(JNIEnv* env, jclass, jlong rounds) try {
  return text_from(
      env, [&](char** out) { return cft_rounds_describe(object<cft_rounds>(rounds), out); });
}
CFT_CATCH(jbyteArray)

CFT_JNI(jbyteArray, roundsShared)(JNIEnv* env, jclass, jlong rounds, jlong floats) try {
  std::vector<float> shared(floats);
  if (!check(env, cft_rounds_shared(object<cft_rounds>(rounds), shared.data(), shared.size()))) {
    return nullptr;
  }
  return to_java(env, shared.data(), shared.size() * sizeof(float));
}
CFT_CATCH(jbyteArray)

CFT_JNI(void, roundsEnd)(JNIEnv* env, jclass, jlong rounds, jobjectArray sums) try {
  const FloatArrays terms(env, sums);
  check(env,
        cft_rounds_end(object<cft_rounds>(rounds), terms.data(), terms.count(), terms.floats()));
}
CFT_CATCH(void)

CFT_JNI(void, roundsTest)(JNIEnv* env, jclass, jlong rounds, jdouble value) try {
  check(env, cft_rounds_test(object<cft_rounds>(rounds), value));
}
CFT_CATCH(void)

CFT_JNI(jbyteArray, roundsBeginPosterior)(JNIEnv* env, jclass, jlong rounds) try {
  return bytes_from(env, [&](void** out, uint64_t* size) {
    return cft_rounds_begin_posterior(object<cft_rounds>(rounds), out, size);
  });
}
CFT_CATCH(jbyteArray)

CFT_JNI(void, roundsEndPosterior)(JNIEnv* env, jclass, jlong rounds, jobjectArray sums) try {
  const FloatArrays terms(env, sums);
  check(env, cft_rounds_end_posterior(object<cft_rounds>(rounds), terms.data(), terms.count(),
                                      terms.floats()));
}
CFT_CATCH(void)

CFT_JNI(jbyteArray, roundsModel)(JNIEnv* env, jclass, jlong rounds) try {
  return bytes_from(env, [&](void** out, uint64_t* size) {
    return cft_rounds_model(object<cft_rounds>(rounds), out, size);
  });
}
CFT_CATCH(jbyteArray)

CFT_JNI(jbyteArray, roundsState)(JNIEnv* env, jclass, jlong rounds, jobjectArray histories) try {
  const FloatArrays arrays(env, histories);
  return bytes_from(env, [&](void** out, uint64_t* size) {
    return cft_rounds_state(object<cft_rounds>(rounds), arrays.data(), arrays.count(),
                            arrays.floats(), out, size);
  });
}
CFT_CATCH(jbyteArray)

CFT_JNI(void, roundsDestroy)(JNIEnv* env, jclass, jlong rounds) try {
  cft_rounds_destroy(object<cft_rounds>(rounds));
}
CFT_CATCH(void)
