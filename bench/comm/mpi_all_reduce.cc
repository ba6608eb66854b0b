// SPDX-License-Identifier: Apache-2.0
// MPI's all-reduce, timed as comm_bench times ours: the seconds of each run by the array's KiB.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <vector>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const char* separator = "{";
  for (size_t kib : {4, 1024, 28 * 1024, 244 * 1024}) {
    const size_t bytes = kib << 10;
    std::vector<float> arena(bytes / sizeof(float), 0.f);
    const size_t runs = std::clamp<size_t>((size_t{1} << 30) / bytes, 5, 400);
    if (rank == 0) std::printf("%s\"%zu\": [", separator, kib);
    for (size_t run = 0; run < 3 + runs; ++run) {
      MPI_Barrier(MPI_COMM_WORLD);
      const double start = MPI_Wtime();
      MPI_Allreduce(MPI_IN_PLACE, arena.data(), static_cast<int>(arena.size()), MPI_FLOAT, MPI_SUM,
                    MPI_COMM_WORLD);
      const double seconds = MPI_Wtime() - start;
      if (rank == 0 && run >= 3) std::printf("%s%.9f", run > 3 ? "," : "", seconds);
    }
    if (rank == 0) std::printf("]");
    separator = ",";
  }
  if (rank == 0) std::printf("}\n");
  MPI_Finalize();
}
