// SPDX-License-Identifier: MIT OR Apache-2.0
// The simulated core between memories: streams of scalars and table entries with latency and, on demand, random pauses.
#pragma once
#include <deque>
#include "Vmsm_core.h"
#include "verilated.h"
#include "problem.h"

#ifndef ADDERS
#define ADDERS 2
#endif

// One read port: requests answered in order, one beat a clock, after `latency` clocks.
struct Stream {
  struct Request {
    uint64_t addr;
    uint32_t beats;
    uint64_t at;
  };
  std::deque<Request> queue;
  uint64_t beat_bytes, requests = 0;
  bool held = false;
  explicit Stream(uint64_t bytes) : beat_bytes(bytes) {}
};

struct Result {
  Fe x, y, z, t;
  int writes = 0, error = 0;
  uint64_t cycles = 0, operations = 0, conflicts = 0, replicas = 0, stalls = 0, clocks = 0;
  bool finished = false;
};

constexpr uint64_t SCALARS_AT = 0x100000000, POINTS_AT = 0x2000000000, RESULT_AT = 0x5000;

struct Sim {
  VerilatedContext context;
  Vmsm_core core;
  Stream scalars_port{32}, points_port{144 * ADDERS};
  uint64_t now = 0;
  int latency = 40;
  int pause_percent = 0;  // chance that a memory port pauses for a clock
  Rng rng{7};
  const Table* table = nullptr;
  const std::vector<Scalar>* scalars = nullptr;

  Sim() : core(&context) {
    core.rst = 1;
    core.clk = 0;
    core.start = core.__SYM__abort = 0;
    core.scalars_data_valid = core.points_data_valid = 0;
    core.scalars_req_ready = core.points_req_ready = core.wr_ready = 0;
    for (int i = 0; i < 4; i++) edge();
    core.rst = 0;
    for (int i = 0; i < 2; i++) edge();
  }
  void edge() {
    core.clk = 0;
    core.eval();
    core.clk = 1;
    core.eval();
    now++;
  }
  bool pause() { return pause_percent && (int)rng.below(100) < pause_percent; }

  // Presents a beat; once valid it stays until taken.
  template <class Data>
  void offer(Stream& s, CData& valid, Data&& put) {
    if (!s.held) {
      bool there = !s.queue.empty() && s.queue.front().at <= now && !pause();
      valid = there;
      if (there) {
        put(s.queue.front().addr);
        s.held = true;
      }
    }
  }
  void settle(Stream& s, CData& valid, bool ready) {
    if (!valid || !ready) return;
    auto& q = s.queue.front();
    q.addr += s.beat_bytes;
    s.held = false;
    valid = 0;
    if (--q.beats == 0) s.queue.pop_front();
  }

  // One clock with the memories.
  void step(Result& r) {
    offer(scalars_port, core.scalars_data_valid, [&](uint64_t addr) {
      size_t i = (addr - SCALARS_AT) / 32;
      if (i >= scalars->size()) fail("scalar address past the end");
      memcpy(&core.scalars_data, (*scalars)[i].w, 32);
    });
    offer(points_port, core.points_data_valid, [&](uint64_t addr) {
      for (int l = 0; l < ADDERS; l++) {
        uint64_t e = (addr - POINTS_AT) / 144 + l;
        size_t at = e % ((uint64_t)table->points * table->levels);
        memcpy((char*)&core.points_data + 144 * l, &table->entries[3 * at], 144);
      }
    });
    core.scalars_req_ready = !pause();
    core.points_req_ready = !pause();
    core.wr_ready = !pause();
    core.clk = 0;
    core.eval();
    bool take_scalar = core.scalars_data_valid && core.scalars_data_ready;
    bool take_points = core.points_data_valid && core.points_data_ready;
    if (core.scalars_req_valid && core.scalars_req_ready) ask(scalars_port, core.scalars_req_addr, core.scalars_req_beats);
    if (core.points_req_valid && core.points_req_ready) ask(points_port, core.points_req_addr, core.points_req_beats);
    if (core.wr_valid && core.wr_ready) {
      Fe* to[4] = {&r.x, &r.y, &r.z, &r.t};
      int i = (int)((core.wr_addr - RESULT_AT) / 48);
      if (i != r.writes || i > 3) fail("write address out of order");
      memcpy(to[i]->w, &core.wr_data, 48);
      r.writes++;
    }
    core.clk = 1;
    core.eval();
    settle(scalars_port, core.scalars_data_valid, take_scalar);
    settle(points_port, core.points_data_valid, take_points);
    now++;
  }
  void ask(Stream& s, uint64_t addr, uint32_t beats) {
    s.queue.push_back({addr, beats, now + latency});
    s.requests++;
  }
  [[noreturn]] void fail(const char* text) {
    fprintf(stderr, "error: %s at clock %llu\n", text, (unsigned long long)now);
    exit(1);
  }

  // Runs a job; aborts it at clock `abort_at` after its start if that is not zero.
  Result run(const Table& t, const std::vector<Scalar>& s, uint64_t limit = 0, uint64_t abort_at = 0) {
    Result r;
    table = &t;
    scalars = &s;
    core.scalars_addr = SCALARS_AT;
    core.points_addr = POINTS_AT;
    core.result_addr = RESULT_AT;
    core.count = (uint32_t)s.size();
    core.window = t.window;
    if (t.levels > 31 || t.window > 31) fail("levels and window have 5 bits");
    core.levels = t.levels;
    core.start = 1;
    step(r);
    core.start = 0;
    if (!limit) limit = 400000 + 100ull * s.size() * t.levels + (uint64_t)40 * (1 << t.window);
    for (uint64_t i = 0; i < limit; i++) {
      core.__SYM__abort = abort_at && i == abort_at;
      step(r);
      if (core.done) {
        r.finished = true;
        break;
      }
    }
    r.error = core.error;
    r.cycles = core.cycles;
    r.operations = core.operations;
    r.conflicts = core.conflicts;
    r.replicas = core.replicas;
    r.stalls = core.stalls;
    if (r.finished && core.busy) fail("busy after done");
    if (r.finished && !(scalars_port.queue.empty() && points_port.queue.empty())) fail("requests left after done");
    return r;
  }

  static bool right(const Result& r, const Pt& expected) {
    return r.finished && !r.error && r.writes == 4 && right_result(r.x, r.y, r.z, r.t, expected);
  }
};
