// SPDX-License-Identifier: MIT OR Apache-2.0
// Tests of the unit that makes tables (rtl/precompute) against the oracle, to the byte, with functional coverage and a signature.
//   precompute_test all | few [SIGNATURE]    `few` for the multipliers in RTL; ends with 'N passed, N failed'
#include <deque>
#include <random>
#include "Vprecompute.h"
#include "problem.h"
#include "svdpi.h"
#include "verilated.h"

extern "C" unsigned long long coverage_bin(int n);

namespace {

constexpr uint64_t SOURCE_AT = 0x2000000040, TABLE_AT = 0x3000;
const char *const BINS[] = {"abort while a word is written", "abort in the reduction", "abort while results drain",
    "abort in the affine part", "abort in the inversion", "abort in a doubling", "abort in the first part", "abort while loading",
    "abort while asking", "identity", "nothing to subtract", "P subtracted", "2 P subtracted", "4 P subtracted",
    "more than 128 doublings", "31 levels", "one level", "entry past the batch", "a further batch", "partial batch", "whole batch",
    "write back-pressure", "data waits", "request waits"};

int passed, failed;
uint64_t signature = 1469598103934665603ull;  // FNV-1a over the bytes of every complete table

bool judge(bool good, const std::string &name) {
  (good ? passed : failed)++;
  if (!good) printf("FAILED %s\n", name.c_str());
  return good;
}

struct Run {
  std::vector<Fe> words;
  bool finished = false, in_order = true;
  uint64_t clocks = 0;
};

struct Unit {
  VerilatedContext context;
  Vprecompute top{&context};
  std::mt19937_64 random{377};
  int pause_percent = 0;
  // The memory's open requests: address, beats, clock of the first beat.
  struct Request {
    uint64_t address, beats, at;
  };
  std::deque<Request> requests;
  bool held = false;
  uint64_t now = 0;

  Unit() {
    top.start = top.__SYM__abort = top.points_data_valid = 0;
    reset();
  }
  void reset() {
    top.rst = 1;
    top.points_req_ready = top.wr_ready = 0;
    for (int i = 0; i < 3; i++) edge();
    top.rst = 0;
    requests.clear();
    held = false;
    top.points_data_valid = 0;
    edge();
  }
  void edge() {
    top.clk = 0;
    top.eval();
    top.clk = 1;
    top.eval();
    now++;
  }
  bool pause() { return pause_percent && int(random() % 100) < pause_percent; }

  // What lies at an address: the plain entry of a point, and past the last one noise that must not matter.
  void beat(const Table &t, uint64_t address) {
    for (int l = 0; l < ADDERS; l++) {
      const uint64_t point = (address - SOURCE_AT) / 144 + l;
      char *to = reinterpret_cast<char *>(&top.points_data) + 144 * l;
      if (point < uint64_t(t.points)) memcpy(to, &t.entries[3 * t.levels * point], 144);
      else memset(to, int(random()), 144);
      memset(to + 96, int(random()), 48);  // the third word is not read
    }
  }
  void clock(const Table &t, Run &r) {
    if (!held && !requests.empty() && requests.front().at <= now && !pause()) {
      beat(t, requests.front().address);
      top.points_data_valid = held = true;
    }
    top.points_req_ready = !pause();
    top.wr_ready = !pause();
    top.clk = 0;
    top.eval();
    if (top.points_req_valid && top.points_req_ready) requests.push_back({top.points_req_addr, top.points_req_beats, now + 40});
    if (top.wr_valid && top.wr_ready) {
      r.in_order &= top.wr_addr == TABLE_AT + 48 * r.words.size();
      Fe word;
      memcpy(word.w, &top.wr_data, 48);
      r.words.push_back(word);
    }
    const bool taken = top.points_data_valid && top.points_data_ready;
    top.clk = 1;
    top.eval();
    if (taken) {
      top.points_data_valid = held = false;
      requests.front().address += 144 * ADDERS;
      if (--requests.front().beats == 0) requests.pop_front();
    }
    now++;
  }

  // Makes the table of the plain entries of `t`; `abort_at` and `reset_at` are clocks after the start, 0 for none.
  Run run(const Table &t, uint64_t abort_at = 0, uint64_t reset_at = 0) {
    Run r;
    const int passes = (digits_of(t.window) + t.levels - 1) / t.levels;
    top.source_addr = SOURCE_AT;
    top.table_addr = TABLE_AT;
    top.count = t.points;
    top.levels = t.levels;
    top.doublings = t.window * passes;
    top.start = 1;
    clock(t, r);
    top.start = 0;
    const uint64_t limit = 100'000'000;
    for (r.clocks = 1; r.clocks < limit && !r.finished; r.clocks++) {
      top.__SYM__abort = abort_at && r.clocks == abort_at;
      if (reset_at && r.clocks == reset_at) {
        reset();
        return r;
      }
      clock(t, r);
      r.finished = top.done;
    }
    top.__SYM__abort = 0;
    return r;
  }
};

// The words written are the first of the oracle's table, in order.
bool right_prefix(const Run &r, const Table &t) {
  return r.in_order && r.words.size() <= t.entries.size() && std::equal(r.words.begin(), r.words.end(), t.entries.begin());
}

uint64_t table(Unit &u, const Table &t) {
  const std::string name = "w = " + std::to_string(t.window) + ", L = " + std::to_string(t.levels) + ", " + std::to_string(t.points) + " points";
  const Run r = u.run(t);
  judge(r.finished && r.words.size() == t.entries.size() && right_prefix(r, t), name);
  judge(!u.top.busy && u.requests.empty(), name + ": the unit rests");
  for (const Fe &word : r.words)
    for (uint64_t w : word.w)
      for (int b = 0; b < 8; b++) signature = (signature ^ (w >> (8 * b) & 255)) * 1099511628211ull;
  return r.clocks;
}

// An abort at a moment: what is written is right, no request stays open, and the next table is right.
void aborted(Unit &u, const Table &t, const Table &next, uint64_t at) {
  const std::string name = "abort after " + std::to_string(at) + " clocks";
  const Run r = u.run(t, at);
  judge(r.finished && right_prefix(r, t) && u.requests.empty() && !u.top.busy, name);
  table(u, next);
}

void all(Unit &u) {
  const Table small(13, 2, 3, 1);
  for (int points : {1, 31, 32, 33, 65}) table(u, Table(13, 3, points, points, true));
  table(u, Table(4, 31, 2, 2));
  table(u, Table(9, 28, 5, 3, true));
  table(u, Table(17, 1, 34, 4, true));
  table(u, Table(18, 2, 9, 5));
  table(u, Table(10, 2, 9, 6));
  for (int percent : {20, 60, 95}) {
    u.pause_percent = percent;
    table(u, Table(15, 17, 33, percent, true));
  }
  u.pause_percent = 30;
  const Table two(18, 2, 34, 8, true);
  const uint64_t clocks = table(u, two);
  for (uint64_t at : {1, 2, 3, 20, 44, 60, 100, 130, 200, 260, 300}) aborted(u, two, small, at);
  for (int i = 1; i < 60; i++) aborted(u, two, small, clocks * i / 60 + u.random() % 64);
  // The end of a batch, without pauses: affine part (512 clocks), draining (32), stores (6 clocks a word).
  u.pause_percent = 0;
  const Table batch(18, 2, 32, 8);
  const uint64_t end = table(u, batch), from = end - 512 - 32 - 6 * batch.entries.size() - 10;
  for (uint64_t at = from; at < end; at += 29) aborted(u, batch, small, at);
  for (uint64_t at : {2, 50, 500, 20000}) {
    const Run r = u.run(two, 0, at);
    judge(right_prefix(r, two) && !u.top.busy, "reset after " + std::to_string(at) + " clocks");
    table(u, small);
  }
}

void report_coverage() {
  svSetScope(svGetScopeFromName("TOP.precompute.coverage"));
  constexpr int count = sizeof BINS / sizeof *BINS;
  int hit = 0;
  for (int i = 0; i < count; i++) {
    const unsigned long long n = coverage_bin(i);
    hit += n != 0;
    printf("  %-32s %llu\n", BINS[i], n);
  }
  printf("coverage: %d of %d bins\n", hit, count);
  judge(hit * 100 >= count * 98, "coverage below 98 %");
}

}  // namespace

int main(int argc, char **argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what != "all" && what != "few") {
    fprintf(stderr, "usage: %s all | few [SIGNATURE]\n", argv[0]);
    return 2;
  }
  judge(oracle_self_test() == 0, "the oracle's known answers");
  Unit unit;
  if (what == "all") {
    all(unit);
    report_coverage();
  } else {
    table(unit, Table(9, 4, 3, 1));
    table(unit, Table(13, 2, 33, 2, true));
  }
  printf("signature %016llx\n", (unsigned long long)signature);
  if (argc > 2) judge(strtoull(argv[2], nullptr, 16) == signature, std::string("signature is not ") + argv[2]);
  printf("%d passed, %d failed\n", passed, failed);
  return failed != 0;
}
