// SPDX-License-Identifier: Apache-2.0
// The library as a C program meets it: the header compiles as C, the functions are exported, errors are
// texts, the command line runs within the process.
#include <stdio.h>
#include <string.h>

#include "cafetiere/c_api.h"

static int failures = 0;

static void expect(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "failed: %s (last error: %s)\n", what, cft_last_error());
  ++failures;
}

int main(void) {
  char* text = NULL;
  expect(strchr(cft_version(), '.') != NULL, "the version has a dot");

  const char* net =
      "{\"net\": \"layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 3 } "
      "} } "
      "layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'ip' inner_product_param { "
      "num_output: 4 } }\", \"phase\": \"TEST\"}";
  expect(cft_describe(net, &text) == CFT_OK, "a net is described");
  expect(text && strstr(text, "\"parameters\":16"), "it has 3 x 4 weights and 4 biases");
  cft_free(text);

  expect(cft_describe("{\"net\": \"layer { type: 'Nonsense' name: 'n' }\"}", &text) != CFT_OK,
         "an unknown layer is refused");
  expect(strstr(cft_last_error(), "Nonsense") != NULL, "the error names it");

  const char* const version[] = {"cafetiere", "version"};
  expect(cft_main(2, version) == 0, "the command line runs");
  const char* const wrong[] = {"cafetiere", "trian"};
  expect(cft_main(2, wrong) == 2, "an unknown command is a wrong usage");
  expect(cft_main(-1, NULL) != 0 && cft_main(3, NULL) != 0, "no arguments are refused");
  return failures;
}
