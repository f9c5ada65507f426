// SPDX-License-Identifier: MIT OR Apache-2.0
// The simulated core between memories: streams of scalars and table entries with latency and, on demand, random pauses.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string>
#include "Vmsm_core.h"
#include "verilated.h"
#include "oracle.h"

#ifndef ADDERS
#define ADDERS 2
#endif

inline int digits_of(int window) { return (252 + window - 1) / window; }

// Multiples of base points that are known multiples of the generator, so that the oracle's product is one multiplication.
struct Table {
  int window, levels, points;
  std::vector<Scalar> factors;
  std::vector<Fe> entries;  // [point][level][Y - X, Y + X, 2 d X Y]

  // Every eighth point is the identity if `identities`.
  Table(int window, int levels, int points, uint64_t seed, bool identities = false)
      : window(window), levels(levels), points(points) {
    int passes = (digits_of(window) + levels - 1) / levels;
    Rng rng(seed);
    Scalar k = rng.scalar(), step = rng.scalar();
    Pt p = mul(k, generator()), q = mul(step, generator());
    std::vector<Pt> all;
    for (int i = 0; i < points; i++) {
      bool zero_point = identities && i % 8 == 3;
      factors.push_back(zero_point ? Scalar{{0, 0, 0, 0}} : k);
      Pt m = zero_point ? identity() : p;
      for (int l = 0; l < levels; l++) {
        all.push_back(m);
        if (l + 1 < levels)
          for (int d = 0; d < window * passes; d++) m = add(m, m);
      }
      scalar_add(k, step);
      p = add(p, q);
    }
    // Affine by one inversion.
    std::vector<Fe> before(all.size());
    Fe product = one();
    for (size_t i = 0; i < all.size(); i++) {
      before[i] = product;
      product = mul(product, all[i].z);
    }
    Fe inv = inverse(product);
    entries.resize(all.size() * 3);
    for (size_t i = all.size(); i-- > 0;) {
      Fe z = mul(inv, before[i]);
      inv = mul(inv, all[i].z);
      Fe x = mul(all[i].x, z), y = mul(all[i].y, z);
      entries[3 * i] = sub(y, x);
      entries[3 * i + 1] = add(y, x);
      entries[3 * i + 2] = mul(fe(constants::K_MONT), mul(x, y));
    }
  }

  Pt expected(const std::vector<Scalar>& scalars) const {
    std::vector<Scalar> sums(points, Scalar{{0, 0, 0, 0}});
    for (size_t i = 0; i < scalars.size(); i++) scalar_add(sums[i % points], scalars[i]);
    Scalar total = {{0, 0, 0, 0}};
    for (int i = 0; i < points; i++) scalar_add(total, scalar_mul(factors[i], sums[i]));
    return mul(total, generator());
  }
};

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
    if (!r.finished || r.error || r.writes != 4) return false;
    for (const Fe* c : {&r.x, &r.y, &r.z, &r.t})
      if (geq(c->w, constants::P, 6)) return false;
    return equal({r.x, r.y, r.z}, expected) && mul(r.t, r.z) == mul(r.x, r.y) && !(r.z == zero());
  }
};

// Scalars by kind.
inline Scalar small_scalar(uint64_t v) { return Scalar{{v, 0, 0, 0}}; }
inline Scalar minus_one() {
  Scalar s;
  memcpy(s.w, constants::R_ORDER, sizeof s.w);
  s.w[0] -= 1;
  return s;
}
inline std::vector<Scalar> make_scalars(const std::string& kind, size_t n, int window, uint64_t seed) {
  Rng rng(seed);
  std::vector<Scalar> s(n);
  Scalar one_for_all = rng.scalar();
  for (size_t i = 0; i < n; i++) {
    if (kind == "random") s[i] = rng.scalar();
    else if (kind == "equal") s[i] = one_for_all;
    else if (kind == "zero-one") s[i] = small_scalar(rng.below(2));
    else if (kind == "sparse") s[i] = rng.below(8) ? small_scalar(0) : rng.scalar();
    else if (kind == "bits") {
      s[i] = small_scalar(0);
      for (int b = 0; b < 3; b++) {
        int at = (int)rng.below(250);
        s[i].w[at / 64] |= 1ull << (at % 64);
      }
    } else if (kind == "hot") {  // every digit is 3
      s[i] = small_scalar(0);
      for (int at = 0; at < 250; at += window)
        for (int b = 0; b < 2; b++)
          if (at + b < 251) s[i].w[(at + b) / 64] |= 1ull << ((at + b) % 64);
    } else if (kind == "minus-one") s[i] = minus_one();
    else if (kind == "zero") s[i] = small_scalar(0);
    else if (kind == "edge") {
      // Around (r - 1) / 2, r - 1, 0, and digits at the borders of their range.
      Scalar half = {{0x8508c00000000000ull >> 1, 0, 0, 0}};
      memcpy(half.w, constants::R_ORDER, sizeof half.w);
      for (int w = 0; w < 4; w++) half.w[w] = half.w[w] >> 1 | (w < 3 ? half.w[w + 1] << 63 : 0);
      switch (i % 6) {
        case 0: s[i] = half; break;
        case 1: s[i] = half; s[i].w[0] += 1; break;
        case 2: s[i] = minus_one(); break;
        case 3: s[i] = small_scalar(0); break;
        case 4: s[i] = small_scalar(1ull << (window - 1)); break;
        default: s[i] = small_scalar((1ull << (window - 1)) - 1);
      }
    } else if (kind == "mixed") s[i] = i < n / 2 ? rng.scalar() : one_for_all;
    else {
      fprintf(stderr, "error: no scalars of kind %s\n", kind.c_str());
      exit(1);
    }
  }
  return s;
}
