// SPDX-License-Identifier: Apache-2.0
// OpenSSL without the machine's configuration, which may name providers that this copy has not.
#include <openssl/crypto.h>

__attribute__((constructor)) static void ignore_configuration(void) {
  OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT, NULL);
}
