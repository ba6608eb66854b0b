// SPDX-License-Identifier: Apache-2.0
// JNI glue for cafetiere.core.score.
#include <memory>
#include <nlohmann/json.hpp>

#include "jvm/native/predictor.h"

#define CFT_SCORER(type, name) \
  extern "C" JNIEXPORT type JNICALL Java_cafetiere_core_score_NativeScorer_##name

using namespace cafetiere::jni;

namespace {

constexpr size_t kFewFloats = 4096;

/// Names, each with a text behind it.
nlohmann::json named_texts(JNIEnv* env, jobjectArray array) {
  nlohmann::json named = nlohmann::json::object();
  for (jsize i = 0; i + 1 < env->GetArrayLength(array); i += 2) {
    const auto text = [&](jsize at) {
      auto* const element = static_cast<jbyteArray>(env->GetObjectArrayElement(array, at));
      std::string bytes = to_text(env, element);
      env->DeleteLocalRef(element);
      return bytes;
    };
    named[text(i)] = text(i + 1);
  }
  return named;
}

}  // namespace

CFT_SCORER(jlong, create)
(JNIEnv* env, jclass, jbyteArray net, jbyteArray weights, jbyteArray output, jint batch,
 jobjectArray mean_files) try {
  nlohmann::json options{
      {"net", to_text(env, net)}, {"batch", batch}, {"mean_files", named_texts(env, mean_files)}};
  const std::string blob = to_text(env, output);
  if (!blob.empty()) options["outputs"] = {blob};
  const Bytes model(env, weights);
  cft_predictor* scorer = nullptr;
  check(env, cft_predictor_create(options.dump().c_str(), model.data(), model.size(), &scorer));
  return address_of(scorer);
}
CFT_CATCH(jlong)

CFT_SCORER(jlong, share)(JNIEnv* env, jclass, jlong scorer) try {
  return share_predictor(env, scorer);
}
CFT_CATCH(jlong)

CFT_SCORER(jlong, size)(JNIEnv* env, jclass, jlong scorer) try {
  int64_t size = 0;
  if (cft_predictor_row_size(object<cft_predictor>(scorer), 1, &size) == CFT_OK) return -1;
  check(env, cft_predictor_row_size(object<cft_predictor>(scorer), 0, &size));
  return size;
}
CFT_CATCH(jlong)

// The arrays are copied, so that the garbage collector need not wait for the net: on the stack where
// they are small, where a call to the allocator would show beside the net.
CFT_SCORER(void, score)
(JNIEnv* env, jclass, jlong scorer, jint count, jfloatArray rows, jfloatArray scores) try {
  if (!rows || !scores) throw std::invalid_argument("an array is null");
  const jsize given = env->GetArrayLength(rows), room = env->GetArrayLength(scores);
  const size_t floats = size_t(given) + size_t(room);
  float few[kFewFloats];
  const std::unique_ptr<float[]> many(floats > kFewFloats ? new float[floats] : nullptr);
  float* const memory = many ? many.get() : few;
  float* const values = memory + given;
  env->GetFloatArrayRegion(rows, 0, given, memory);
  const float* const columns[] = {memory};
  const uint64_t of_row = count > 0 ? uint64_t(given) / uint64_t(count) : 0;
  const auto space = uint64_t(room);
  auto* const predictor = object<cft_predictor>(scorer);
  int64_t size = 0;
  if (check(env, cft_predictor_row_size(predictor, 0, &size)) &&
      check(env, cft_predictor_floats(predictor, count, columns, &of_row, 1, &values, &space, 1))) {
    env->SetFloatArrayRegion(scores, 0, jsize(size * count), values);
  }
}
CFT_CATCH(void)

CFT_SCORER(void, destroy)(JNIEnv* env, jclass, jlong scorer) try { destroy_predictor(scorer); }
CFT_CATCH(void)
