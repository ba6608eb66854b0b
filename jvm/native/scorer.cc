// SPDX-License-Identifier: Apache-2.0
// JNI glue for cafetiere.core.score.
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "jvm/native/predictor.h"

#define CFT_SCORER(type, name) \
  extern "C" JNIEXPORT type JNICALL Java_cafetiere_core_score_NativeScorer_##name

using namespace cafetiere::jni;

namespace {

constexpr size_t kFewFloats = 4096;

using Named = std::vector<std::pair<std::string, std::string>>;

/// Names, each with a text behind it.
Named named_texts(JNIEnv* env, jobjectArray array) {
  Named named;
  const auto text = [&](jsize at) {
    auto* const element = static_cast<jbyteArray>(env->GetObjectArrayElement(array, at));
    std::string bytes = to_text(env, element);
    env->DeleteLocalRef(element);
    return bytes;
  };
  for (jsize i = 0; i + 1 < env->GetArrayLength(array); i += 2) {
    named.emplace_back(text(i), text(i + 1));
  }
  return named;
}

/// Whether the net reads all of these columns of a table; else an exception is pending.
bool knows_columns(JNIEnv* env, const nlohmann::json& net, const nlohmann::json& given) {
  char* text = nullptr;
  const nlohmann::json asked{{"net", net}, {"phase", "TEST"}};
  if (!check(env, cft_describe(asked.dump().c_str(), &text))) return false;
  const auto described = nlohmann::json::parse(text);
  cft_free(text);
  std::vector<std::string> known;
  for (const auto& top : described["data_layer"]["tops"]) {
    for (const auto& column : top.value("columns", nlohmann::json::array()))
      known.push_back(column);
  }
  for (const auto& column : given) {
    const std::string name = column["name"];
    if (std::ranges::count(known, name) > 0) continue;
    std::string all;
    for (const std::string& each : known) all += (all.empty() ? "" : ", ") + each;
    throw std::invalid_argument("the net reads no column '" + name + "' of a table; it reads " +
                                (all.empty() ? "none" : all));
  }
  return true;
}

}  // namespace

CFT_SCORER(jlong, create)
(JNIEnv* env, jclass, jbyteArray net, jbyteArray weights, jbyteArray output, jint batch,
 jobjectArray mean_files, jobjectArray columns) try {
  nlohmann::json options{
      {"net", to_text(env, net)}, {"batch", batch}, {"mean_files", nlohmann::json::object()}};
  for (const auto& [name, bytes] : named_texts(env, mean_files)) {
    options["mean_files"][name] = bytes;
  }
  nlohmann::json typed = nlohmann::json::array();
  for (const auto& [name, type] : named_texts(env, columns)) {
    typed.push_back({{"name", name}, {"type", type}});
  }
  if (!typed.empty()) {
    if (!knows_columns(env, options["net"], typed)) return 0;
    options["schema"] = {{"columns", typed}, {"id", ""}};
  }
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

CFT_SCORER(void, scoreEncoded)
(JNIEnv* env, jclass, jlong scorer, jobject row, jint bytes, jfloatArray scores) try {
  const void* const encoded = row ? env->GetDirectBufferAddress(row) : nullptr;
  if (!encoded || !scores) throw std::invalid_argument("a buffer is null or not direct");
  auto* const predictor = object<cft_predictor>(scorer);
  std::vector<float> values(size_t(env->GetArrayLength(scores)));
  float* const outputs[] = {values.data()};
  const uint64_t room = values.size();
  int64_t size = 0;
  if (check(env, cft_predictor_row_size(predictor, 0, &size)) &&
      check(env, cft_predictor_fill(predictor, 1, encoded, uint64_t(bytes), outputs, &room, 1))) {
    env->SetFloatArrayRegion(scores, 0, jsize(size), values.data());
  }
}
CFT_CATCH(void)

CFT_SCORER(void, destroy)(JNIEnv* env, jclass, jlong scorer) try { destroy_predictor(scorer); }
CFT_CATCH(void)
