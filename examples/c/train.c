/* SPDX-License-Identifier: Apache-2.0 */
/* Trains a net of twelve weights on rows made here, then predicts with it: the whole of a C program.
 *
 *   cc train.c -o train $(pkg-config --cflags --libs cafetiere) && ./train
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cafetiere/c_api.h"

enum { kRows = 300, kFloats = 3, kClasses = 3 };

static const char* const kOptions =
    "{\"solver\": \"base_lr: 0.5 lr_policy: 'fixed' max_iter: 60 random_seed: 1\","
    " \"net\": \"layer { name: 'in' type: 'MemoryData' top: 'data' top: 'label'"
    "   memory_data_param { batch_size: 30 channels: 3 height: 1 width: 1 } }"
    " layer { name: 'ip' type: 'InnerProduct' bottom: 'data' top: 'ip'"
    "   inner_product_param { num_output: 3 weight_filler { type: 'xavier' } } }"
    " layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' top: 'loss' }\"}";

static const char* const kPredictor =
    "{\"net\": \"layer { name: 'in' type: 'Input' top: 'data'"
    "   input_param { shape { dim: 1 dim: 3 dim: 1 dim: 1 } } }"
    " layer { name: 'ip' type: 'InnerProduct' bottom: 'data' top: 'ip'"
    "   inner_product_param { num_output: 3 } }\","
    " \"schema\": {\"columns\": [{\"name\": \"data\", \"type\": \"f32\"}], \"id\": \"\"}}";

/* Ends the program with the engine's own words where a call fails. */
static void must(int code) {
  if (code == CFT_OK) return;
  fprintf(stderr, "%s\n", cft_last_error());
  exit(1);
}

/* Adds a column to an encoded row: its size, then its bytes. */
static char* put(char* to, const void* column, uint32_t bytes) {
  memcpy(to, &bytes, sizeof bytes);
  memcpy(to + sizeof bytes, column, bytes);
  return to + sizeof bytes + bytes;
}

/* Class `label` has its largest number at place `label`. */
static void features(int label, int row, float* data) {
  for (int i = 0; i < kFloats; ++i) data[i] = (i == label ? 1.f : 0.f) + 0.001f * (float)(row % 7);
}

static cft_rows* make_rows(void) {
  static char chunk[kRows * (2 * sizeof(uint32_t) + kFloats * sizeof(float) + sizeof(int32_t))];
  char* to = chunk;
  for (int row = 0; row < kRows; ++row) {
    const int32_t label = row % kClasses;
    float data[kFloats];
    features(label, row, data);
    to = put(put(to, data, sizeof data), &label, sizeof label);
  }
  cft_rows* rows = NULL;
  must(cft_rows_create("{\"columns\": [{\"name\": \"data\", \"type\": \"f32\"},"
                       " {\"name\": \"label\", \"type\": \"i32\"}], \"id\": \"\"}",
                       &rows));
  must(cft_rows_append(rows, kRows, chunk, (uint64_t)(to - chunk)));
  return rows;
}

static int show(void* context, const char* json) {
  (void)context;
  printf("%s\n", json);
  return 0;
}

int main(void) {
  if (cft_api_version() < CFT_API_VERSION) return 1; /* an older library than this was compiled for */
  const cft_callbacks callbacks = {sizeof callbacks, NULL, show, NULL};
  cft_trainer* trainer = NULL;
  cft_rows* rows = make_rows();
  must(cft_trainer_create(kOptions, &callbacks, &trainer));
  must(cft_trainer_run(trainer, NULL, rows));
  void* model = NULL;
  uint64_t bytes = 0;
  must(cft_trainer_model(trainer, &model, &bytes));
  cft_rows_destroy(rows);
  cft_trainer_destroy(trainer);

  cft_predictor* predictor = NULL;
  must(cft_predictor_create(kPredictor, model, bytes, &predictor));
  cft_free(model);
  int right = 0;
  for (int label = 0; label < kClasses; ++label) {
    float data[kFloats], scores[kClasses];
    float* const outputs[] = {scores};
    const uint64_t room[] = {kClasses};
    char row[sizeof(uint32_t) + sizeof data];
    features(label, 0, data);
    put(row, data, sizeof data);
    must(cft_predictor_fill(predictor, 1, row, sizeof row, outputs, room, 1));
    int best = 0;
    for (int i = 1; i < kClasses; ++i) best = scores[i] > scores[best] ? i : best;
    right += best == label;
  }
  cft_predictor_destroy(predictor);
  printf("%d of %d classes are told apart\n", right, kClasses);
  return right == kClasses ? 0 : 1;
}
