// SPDX-License-Identifier: Apache-2.0
// Nothing cleans up at the end of the process: the host's, a JVM perhaps, ends while threads of the
// library run. libxsmm would take away the code that it generated from under them.
#define HIDDEN __attribute__((visibility("hidden")))

/// In the place of the function that each object gets from glibc's archive; for the library alone.
HIDDEN int atexit(void (*function)(void)) {
  (void)function;
  return 0;
}
