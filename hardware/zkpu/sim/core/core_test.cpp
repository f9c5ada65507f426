// SPDX-License-Identifier: MIT OR Apache-2.0
// Tests of the whole core against the oracle, with functional coverage and a signature of the results.
//   core_test run LOG_N WINDOW LEVELS KIND [SEED]   one job
//   core_test all                                    every test; ends with 'N passed, N failed'
//   core_test few                                    a few small jobs, for the slow multipliers
//   core_test table WINDOWS.. (see bench)            rows of the cycle tables
#include <chrono>
#include "core_sim.h"

static int passed = 0, failed = 0;
static uint64_t signature = 1469598103934665603ull;  // FNV-1a over the bytes of every result

static void judge(bool ok, const std::string& name) {
  (ok ? passed : failed)++;
  if (!ok) printf("FAILED %s\n", name.c_str());
}

static void sign(const Result& r) {
  for (const Fe* c : {&r.x, &r.y, &r.z, &r.t})
    for (uint64_t w : c->w)
      for (int b = 0; b < 8; b++) signature = (signature ^ (w >> (8 * b) & 255)) * 1099511628211ull;
}

static Result job(Sim& sim, const Table& table, const std::string& kind, size_t n, uint64_t seed, bool quiet = false) {
  auto scalars = make_scalars(kind, n, table.window, seed);
  Result r = sim.run(table, scalars);
  bool ok = Sim::right(r, table.expected(scalars));
  if (!quiet) judge(ok, kind + " n=" + std::to_string(n) + " w=" + std::to_string(table.window) + " L=" + std::to_string(table.levels));
  sign(r);
  return r;
}

#ifdef COVERAGE
#include "svdpi.h"
extern "C" unsigned long long coverage_bin(int n);
static const char* BINS[] = {"stop: abort or bad scalar", "Horner doubling", "reduction scoreboard holds", "merge into a slot", "merge waits", "empty bucket read",
    "identity entry", "scalar folded", "top digit above half", "negative digit", "zero digit", "write back-pressure",
    "scalars wait", "points wait", "points without digits", "digits without points", "FIFO full", "relief in a pass", "second head launches to a slot",
    "spill with a reservation", "spill without one", "spill to the other bank", "all slots given", "replica given", "replica used again", "waiting FIFO full", "conflict beside a retry",
    "conflict beside the other lane", "conflict", "turn of the waiting FIFO", "second head launches", "first head launches",
    "waiting operation launches"};
static void report_coverage() {
  svSetScope(svGetScopeFromName("TOP.msm_core.coverage"));
  int hit = 0, bins = sizeof BINS / sizeof *BINS;
  for (int i = 0; i < bins; i++) {
    unsigned long long n = coverage_bin(i);
    hit += n != 0;
    printf("  %-32s %llu\n", BINS[i], n);
  }
  printf("coverage: %d of %d bins\n", hit, bins);
  judge(hit * 100 >= bins * 98, "coverage below 98 %");
}
#endif

static void small_jobs(Sim& sim, bool all) {
  for (int log_n = 5; log_n <= (all ? 10 : 5); log_n++) {
    int w = log_n < 9 ? 9 : log_n;  // `levels` has 5 bits: one pass needs a window of 9 bits
    Table table(w, digits_of(w), 1 << log_n, log_n);
    for (const char* kind : {"random", "equal", "zero-one", "sparse", "bits", "hot", "edge", "minus-one"}) {
      if (!all && kind[0] != 'r' && kind[0] != 'e') continue;
      job(sim, table, kind, (size_t)1 << log_n, log_n);
    }
  }
  Table odd(11, 23, 7, 1);
  for (size_t n : {1, 2, 3, 7}) job(sim, odd, "random", n, n);
}

static void all_jobs(Sim& sim) {
  small_jobs(sim, true);
  {
    Table t(9, 28, 64, 4, true);  // top digit above half; identities among the points
    job(sim, t, "random", 300, 5);
    job(sim, t, "edge", 60, 5);
    job(sim, t, "zero", 10, 5);
    job(sim, t, "mixed", 1000, 5);
  }
  // Hot buckets that change, so that slots are merged in the middle of a pass; digits of one parity.
  Table hot(11, 23, 256, 6);
  for (const char* kind : {"shift", "shifts", "few", "even"}) job(sim, hot, kind, 1024, 6);
  // The second pass gives slots anew that the first had merged.
  Table again(8, 3, 64, 2);
  for (const char* kind : {"random", "hot", "equal"}) job(sim, again, kind, 26, 2);
  for (int w = 4; w <= 8; w++) {  // narrow windows
    Table narrow(w, w == 4 ? 31 : 21, 16, w);
    job(sim, narrow, "random", 40, w);
    job(sim, narrow, "hot", 40, w);
  }
  for (int levels : {1, 2, 5, 9, 13}) {  // several passes
    Table t(10, levels, 40, levels);
    job(sim, t, "random", 77, levels);
  }
  Table t(8, 16, 64, 9);
  for (int percent : {10, 50, 90}) {  // memory ports that pause
    sim.pause_percent = percent;
    job(sim, t, "random", 200, percent);
    job(sim, t, "hot", 200, percent);
  }
  sim.pause_percent = 0;
  // An abort at any moment ends the job, and the next one is right.
  auto scalars = make_scalars("random", 128, 8, 3);
  for (uint64_t at : {1, 3, 5, 40, 60, 200, 1000, 2100, 2300, 2900}) {
    Result r = sim.run(t, scalars, 0, at);
    judge(r.finished && (r.error == 5 ? r.writes < 4 : at > 2000 && Sim::right(r, t.expected(scalars))), "abort at " + std::to_string(at));
    job(sim, t, "random", 20, at);
  }
  // Refusals.
  auto bad = scalars;
  memcpy(bad[77].w, constants::R_ORDER, 32);
  Result r = sim.run(t, bad);
  judge(r.finished && r.error == 4 && r.writes == 0, "a scalar that is not below r");
  job(sim, t, "random", 20, 1);
  Table wrong = t;
  wrong.window = 3;
  r = sim.run(wrong, scalars);
  judge(r.finished && r.error == 1 && r.writes == 0, "a window too narrow");
  wrong.window = 31;
  r = sim.run(wrong, scalars);
  judge(r.finished && r.error == 1 && r.writes == 0, "a window too wide");
  for (int levels : {0, 27}) {
    wrong = t;
    wrong.window = 10;
    wrong.levels = levels;
    r = sim.run(wrong, scalars);
    judge(r.finished && r.error == 2 && r.writes == 0, "levels that the window has not");
  }
  Result none = sim.run(t, {});
  judge(Sim::right(none, identity()), "count 0 gives the identity");
}

static int one_job(Sim& sim, char** a, uint64_t seed) {
  size_t n = (size_t)1 << atoi(a[0]);
  Table table(atoi(a[1]), atoi(a[2]), (int)std::min<size_t>(n, 512), seed);
  auto scalars = make_scalars(a[3], n, table.window, seed);
  auto begin = std::chrono::steady_clock::now();
  Result r = sim.run(table, scalars);
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  bool right = Sim::right(r, table.expected(scalars));
  printf("adders=%d n=2^%s w=%s L=%s %s seed=%llu: %s cycles=%llu a_point=%.4f operations=%llu conflicts=%llu replicas=%llu "
         "stalls=%llu clocks_a_second=%.0f\n",
         ADDERS, a[0], a[1], a[2], a[3], (unsigned long long)seed, right ? "right" : "WRONG", (unsigned long long)r.cycles,
         (double)r.cycles / n, (unsigned long long)r.operations, (unsigned long long)r.conflicts,
         (unsigned long long)r.replicas, (unsigned long long)r.stalls, r.cycles / seconds);
  fflush(stdout);
  return !right;
}

int main(int argc, char** argv) {
  std::string what = argc > 1 ? argv[1] : "";
  judge(oracle_self_test() == 0, "the oracle's known answers");
  Sim sim;
  // The memory is cleared once after reset; the first job waits for it, and its cycles would count that.
  Table warm(9, 28, 1, 1);
  sim.run(warm, make_scalars("random", 1, 9, 1));
  if (what == "run" && argc > 5) return one_job(sim, argv + 2, argc > 6 ? strtoull(argv[6], 0, 0) : 1);
  if (what == "all") {
    all_jobs(sim);
#ifdef COVERAGE
    report_coverage();
#endif
  } else if (what == "few") {
    small_jobs(sim, false);
  } else {
    fprintf(stderr, "usage: core_test run LOG_N WINDOW LEVELS KIND [SEED] | all | few\n");
    return 2;
  }
  printf("signature %016llx\n", (unsigned long long)signature);
  if (argc > 2) judge(strtoull(argv[2], 0, 16) == signature, std::string("signature is not ") + argv[2]);
  printf("%d passed, %d failed\n", passed, failed);
  return failed != 0;
}
