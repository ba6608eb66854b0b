// SPDX-License-Identifier: Apache-2.0
// doors OPTIONS WEIGHTS OUT: scores the rows of test_doors.py in C, and writes the scores as floats.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cafetiere/c_api.h"

enum { kRows = 1000, kMostBytes = 128, kClasses = 3, kMostText = 1 << 20 };

static void must(int code) {
  if (code == CFT_OK) return;
  fprintf(stderr, "%s\n", cft_last_error());
  exit(1);
}

// A cell: its size, then its bytes; none where it is missing.
static char* put(char* to, const void* value, size_t size, int missing) {
  const uint32_t bytes = missing ? 0 : (uint32_t)size;
  memcpy(to, &bytes, sizeof bytes);
  memcpy(to + sizeof bytes, value, bytes);
  return to + sizeof bytes + bytes;
}

static char* put_row(char* to, int i) {
  const double age = i % 71 + 0.25;
  const int64_t visits = i % 13;
  const int32_t born = 7305 + i;  // 1990-01-01
  const int64_t seen = 1599955200000000 + i * INT64_C(3600000000) + 123;  // 2020-09-13
  char city[32];
  const int length = snprintf(city, sizeof city, "city \xc3\xa9 %d", i % 23);
  to = put(to, &age, sizeof age, i % 9 == 0);
  to = put(to, &visits, sizeof visits, i % 11 == 0);
  to = put(to, city, (size_t)length, i % 7 == 0);
  to = put(to, &born, sizeof born, i % 5 == 0);
  return put(to, &seen, sizeof seen, i % 6 == 0);
}

int main(int count, char** arguments) {
  static char options[kMostText], chunk[kRows * kMostBytes];
  static float scores[kRows * kClasses];
  if (count != 4) return 2;
  FILE* file = fopen(arguments[1], "rb");  // JSON, as cft_predictor_create() takes it
  if (!file) return 2;
  options[fread(options, 1, kMostText - 1, file)] = '\0';
  fclose(file);
  file = fopen(arguments[2], "rb");
  if (!file) return 2;
  static char weights[kMostText];
  const size_t size = fread(weights, 1, kMostText, file);
  fclose(file);

  char* to = chunk;
  for (int i = 0; i < kRows; ++i) to = put_row(to, i);
  cft_predictor* predictor = NULL;
  must(cft_predictor_create(options, weights, size, &predictor));
  float* const outputs[] = {scores};
  const uint64_t room[] = {kRows * kClasses};
  must(cft_predictor_fill(predictor, kRows, chunk, (uint64_t)(to - chunk), outputs, room, 1));
  cft_predictor_destroy(predictor);

  file = fopen(arguments[3], "wb");
  if (!file || fwrite(scores, sizeof scores, 1, file) != 1) return 1;
  return fclose(file);
}
