// SPDX-License-Identifier: MIT OR Apache-2.0
// Products whose result is known: tables of multiples of the generator, scalars of several kinds, the test of a result.
// Used by the tests of the core alone and of the system on chip.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <string>
#include "oracle.h"

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

// A result of the device is right: coordinates below P, T Z = X Y, Z not zero, and the expected point.
inline bool right_result(const Fe& x, const Fe& y, const Fe& z, const Fe& t, const Pt& expected) {
  for (const Fe* c : {&x, &y, &z, &t})
    if (geq(c->w, constants::P, 6)) return false;
  return equal({x, y, z}, expected) && mul(t, z) == mul(x, y) && !(z == zero());
}

// Scalars by kind.
inline Scalar small_scalar(uint64_t v) { return Scalar{{v, 0, 0, 0}}; }
inline Scalar minus_one() {
  Scalar s;
  memcpy(s.w, constants::R_ORDER, sizeof s.w);
  s.w[0] -= 1;
  return s;
}
// Digits of a window that are all even, and below half so that none carries.
inline Scalar even_digits(Rng& rng, int window) {
  Scalar s = small_scalar(0);
  for (int at = 0; at + window <= 250; at += window)
    for (int b = at + 1; b < at + window - 1; b++) s.w[b / 64] |= (uint64_t)rng.below(2) << (b % 64);
  return s;
}
inline std::vector<Scalar> make_scalars(const std::string& kind, size_t n, int window, uint64_t seed) {
  Rng rng(seed);
  std::vector<Scalar> s(n);
  Scalar one_for_all = rng.scalar();
  std::vector<Scalar> few(5);
  for (auto& x : few)
    if (kind == "few") x = rng.scalar();
  for (size_t i = 0; i < n; i++) {
    if (kind == "random") s[i] = rng.scalar();
    else if (kind == "equal") s[i] = one_for_all;
    else if (kind == "even") s[i] = even_digits(rng, window);
    else if (kind == "shift" || kind == "shifts") {  // the one scalar changes half-way, or seven times
      s[i] = one_for_all;
      if ((i + 1) % (kind == "shift" ? n / 2 + 1 : n / 8 + 1) == 0) one_for_all = rng.scalar();
    } else if (kind == "few") s[i] = few[rng.below(few.size())];
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
