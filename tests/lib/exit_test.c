// SPDX-License-Identifier: Apache-2.0
// A program that ends while the library's threads work: main() returns in the middle of a training that
// runs generated code on several threads, beside connected ranks that encrypt. What libraries do at the
// end of a process must leave alone what those threads use.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cafetiere/c_api.h"

static atomic_int steps;

static int count_step(void* context) {
  (void)context;
  atomic_fetch_add(&steps, 1);
  return 0;
}

static void must(int code) {
  if (code == CFT_OK) return;
  fprintf(stderr, "failed: %s\n", cft_last_error());
  _Exit(2);
}

static void* train(void* context) {
  (void)context;
  cft_host host = {.struct_size = sizeof host};
  host.on_start = count_step;
  cft_solver* solver = NULL;
  must(cft_solver_create(
      "{\"threads\": 3, \"text\": \"base_lr: 0.001 lr_policy: 'fixed' max_iter: 100000000 "
      "net_param {"
      "layer { name: 'x' type: 'DummyData' top: 'x' top: 'y' dummy_data_param {"
      " shape { dim: 16 dim: 3 dim: 16 dim: 16 } shape { dim: 16 }"
      " data_filler { type: 'gaussian' } data_filler { type: 'constant' } } }"
      "layer { name: 'c' type: 'Convolution' bottom: 'x' top: 'c' convolution_param {"
      " num_output: 16 kernel_size: 3 weight_filler { type: 'xavier' } } }"
      "layer { name: 'ip' type: 'InnerProduct' bottom: 'c' top: 'ip' inner_product_param {"
      " num_output: 4 weight_filler { type: 'xavier' } } }"
      "layer { name: 'l' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'y' top: 'l' } }\"}",
      &host, &solver));
  must(cft_solver_solve(solver));
  return NULL;
}

static cft_group* groups[2];
static char addresses[256];

static void* meet(void* group) {
  must(cft_group_connect(group, addresses));
  return NULL;
}

/// Two ranks of this process, whose heartbeats go on to the end.
static void connect_ranks(void) {
  char* address[2];
  for (int rank = 0; rank < 2; ++rank) {
    char options[256];
    snprintf(options, sizeof options,
             "{\"rank\": %d, \"size\": 2, \"encrypt\": 1, \"timeout_ms\": 100, \"secret\": "
             "\"a secret of the tests\"}",
             rank);
    must(cft_group_create(options, &groups[rank]));
    must(cft_group_address(groups[rank], &address[rank]));
  }
  snprintf(addresses, sizeof addresses, "[\"%s\", \"%s\"]", address[0], address[1]);
  pthread_t threads[2];
  for (int rank = 0; rank < 2; ++rank) pthread_create(&threads[rank], NULL, meet, groups[rank]);
  for (int rank = 0; rank < 2; ++rank) pthread_join(threads[rank], NULL);
}

/// Holds the end of the process up, after the finalisers that were registered later, for the others to
/// run into what those took away.
static void let_others_work(void) {
  const int before = atomic_load(&steps);
  while (atomic_load(&steps) < before + 20) {
  }
}

int main(void) {
  atexit(let_others_work);
  pthread_t thread;
  connect_ranks();
  if (pthread_create(&thread, NULL, train, NULL) != 0) return 2;
  while (atomic_load(&steps) < 5) {
  }
  return 0;
}
