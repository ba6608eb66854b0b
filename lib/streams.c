// SPDX-License-Identifier: Apache-2.0
// The standard streams under names of the library's own. Some of the archives that are linked in
// address glibc's variables as a program does, which a shared library may not.
#include <dlfcn.h>
#include <stdio.h>

#undef stdin
#undef stdout
#undef stderr
#define HIDDEN __attribute__((visibility("hidden")))
HIDDEN FILE* stdin;
HIDDEN FILE* stdout;
HIDDEN FILE* stderr;

/// Before any other constructor, which may write.
__attribute__((constructor(101))) static void find_streams(void) {
  stdin = *(FILE**)dlsym(RTLD_DEFAULT, "stdin");
  stdout = *(FILE**)dlsym(RTLD_DEFAULT, "stdout");
  stderr = *(FILE**)dlsym(RTLD_DEFAULT, "stderr");
}
