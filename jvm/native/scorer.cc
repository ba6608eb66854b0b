// SPDX-License-Identifier: Apache-2.0
// JNI glue for cafetiere.core.score.
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "jvm/native/predictor.h"

#define CFT_SCORER(type, name) \
  extern "C" JNIEXPORT type JNICALL Java_cafetiere_core_score_NativeScorer_##name

using namespace cafetiere::jni;

namespace {

constexpr size_t kFewFloats = 4096;

/// Texts that Java has as bytes.
std::vector<std::string> texts_of(JNIEnv* env, jobjectArray array) {
  std::vector<std::string> texts;
  for (jsize i = 0; i < env->GetArrayLength(array); ++i) {
    auto* const element = static_cast<jbyteArray>(env->GetObjectArrayElement(array, i));
    texts.push_back(to_text(env, element));
    env->DeleteLocalRef(element);
  }
  return texts;
}

/// A column of a caller's table.
struct GivenColumn {
  std::string name;
  std::string cells;  // the name of a CellType
};

/// Days, microseconds and numbers are the same to the engine, which would take one for another.
void check_kind(const GivenColumn& given, const std::string& learned) {
  const bool is_time = given.cells == "DATE" || given.cells == "TIMESTAMP";
  const bool wanted = learned == "DATE" || learned == "TIMESTAMP";
  if (wanted ? given.cells == learned : !is_time || learned != "NUMBER") return;
  throw std::invalid_argument("column '" + given.name + "' is of type " + given.cells +
                              ", and the net has learned it as a " + learned);
}

/// What a net has learned of a table.
struct LearnedColumns {
  std::vector<std::pair<std::string, std::string>> kinds;  // by column; one may be read twice
  std::string names;                                       // of those that a row to score has
};

std::optional<LearnedColumns> learned_columns(JNIEnv* env, const nlohmann::json& net) {
  char* text = nullptr;
  const nlohmann::json asked{{"net", net}, {"phase", "TEST"}};
  if (!check(env, cft_describe(asked.dump().c_str(), &text))) return std::nullopt;
  const auto described = nlohmann::json::parse(text);
  cft_free(text);
  LearnedColumns learned;
  for (const auto& top : described["data_layer"]["tops"]) {
    const auto columns = top.value("columns", nlohmann::json::array());
    for (size_t i = 0; i < columns.size(); ++i) {
      learned.kinds.emplace_back(columns[i], top["kinds"][i]);
      if (top.value("target", false)) continue;
      learned.names += (learned.names.empty() ? "" : ", ") + learned.kinds.back().first;
    }
  }
  return learned;
}

/// Whether the net reads all of these columns of a table, as what they are; else an exception is pending.
bool knows_columns(JNIEnv* env, const nlohmann::json& net, std::span<const GivenColumn> columns) {
  const std::optional<LearnedColumns> learned = learned_columns(env, net);
  if (!learned) return false;
  for (const GivenColumn& given : columns) {
    bool known = false;
    for (const auto& [name, kind] : learned->kinds) {
      if (name != given.name) continue;
      known = true;
      check_kind(given, kind);
    }
    if (known) continue;
    throw std::invalid_argument("the net reads no column '" + given.name +
                                "' of a table; it reads " +
                                (learned->names.empty() ? "none" : learned->names));
  }
  return true;
}

}  // namespace

CFT_SCORER(jlong, create)
(JNIEnv* env, jclass, jbyteArray net, jbyteArray weights, jbyteArray output, jint batch,
 jobjectArray mean_files, jobjectArray columns) try {
  nlohmann::json options{
      {"net", to_text(env, net)}, {"batch", batch}, {"mean_files", nlohmann::json::object()}};
  const std::vector<std::string> means = texts_of(env, mean_files), cells = texts_of(env, columns);
  for (size_t i = 0; i + 1 < means.size(); i += 2) options["mean_files"][means[i]] = means[i + 1];
  std::vector<GivenColumn> given;
  nlohmann::json typed = nlohmann::json::array();
  for (size_t i = 0; i + 2 < cells.size(); i += 3) {
    given.push_back({cells[i], cells[i + 2]});
    typed.push_back({{"name", cells[i]}, {"type", cells[i + 1]}});
  }
  if (!given.empty()) {
    if (!knows_columns(env, options["net"], given)) return 0;
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
