// SPDX-License-Identifier: Apache-2.0
// The program `cafetiere`: the command line is a function of the library.
#include "cafetiere/c_api.h"

int main(int count, char** arguments) {
  return cft_main(count, (const char* const*)arguments);
}
