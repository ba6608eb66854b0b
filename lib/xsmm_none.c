// SPDX-License-Identifier: Apache-2.0
// libxsmm for processors that it generates no code for: the functions that the engine calls, each
// answering as libxsmm does under LIBXSMM_TARGET=generic.
#include <libxsmm.h>
#include <stdlib.h>

int libxsmm_get_target_archid(void) { return LIBXSMM_TARGET_ARCH_GENERIC; }

void libxsmm_set_target_archid(int id) { (void)id; }

int libxsmm_get_registry_info(libxsmm_registry_info* info) {
  *info = (libxsmm_registry_info){0};
  return EXIT_SUCCESS;
}

libxsmm_smmfunction_reducebatch_addr libxsmm_smmdispatch_reducebatch_addr(
    libxsmm_blasint m, libxsmm_blasint n, libxsmm_blasint k, const libxsmm_blasint* lda,
    const libxsmm_blasint* ldb, const libxsmm_blasint* ldc, const float* alpha, const float* beta,
    const int* flags, const int* prefetch) {
  (void)m, (void)n, (void)k, (void)lda, (void)ldb, (void)ldc;
  (void)alpha, (void)beta, (void)flags, (void)prefetch;
  return NULL;
}
