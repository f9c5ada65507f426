// SPDX-License-Identifier: MIT OR Apache-2.0
// One job: core_run LOG_N WINDOW LEVELS KIND [SEED]; prints its counters and whether the result is the oracle's.
#include <chrono>
#include "core_sim.h"

int main(int argc, char** argv) {
  if (argc < 5) {
    fprintf(stderr, "usage: core_run LOG_N WINDOW LEVELS KIND [SEED]\n");
    return 2;
  }
  size_t n = (size_t)1 << atoi(argv[1]);
  int window = atoi(argv[2]), levels = atoi(argv[3]);
  uint64_t seed = argc > 5 ? strtoull(argv[5], 0, 0) : 1;
  if (oracle_self_test()) return 3;
  Table table(window, levels, (int)std::min<size_t>(n, 512), seed);
  auto scalars = make_scalars(argv[4], n, window, seed);
  Sim sim;
  auto begin = std::chrono::steady_clock::now();
  Result r = sim.run(table, scalars);
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  bool right = Sim::right(r, table.expected(scalars));
  printf("n=2^%s w=%d L=%d %s: %s error=%d cycles=%llu (%.4f a point) operations=%llu conflicts=%llu replicas=%llu "
         "stalls=%llu; %.0f clocks a second\n",
         argv[1], window, levels, argv[4], right ? "right" : "WRONG", r.error, (unsigned long long)r.cycles,
         (double)r.cycles / n, (unsigned long long)r.operations, (unsigned long long)r.conflicts,
         (unsigned long long)r.replicas, (unsigned long long)r.stalls, sim.now / seconds);
  return !right;
}
