// SPDX-License-Identifier: MIT OR Apache-2.0
// The oracle: BLS12-377's base field by 64-bit words and its twisted Edwards curve by projective formulas that differ
// from the RTL's. Independent of the RTL; checked against known answers of scripts/constants.py.
#pragma once
#include <cstdint>
#include <cstring>
#include <vector>
#include "constants.h"

typedef unsigned __int128 u128;

struct Fe {
  uint64_t w[6];
  bool operator==(const Fe& o) const { return memcmp(w, o.w, sizeof w) == 0; }
};

inline Fe fe(const uint64_t* words) {
  Fe r;
  memcpy(r.w, words, sizeof r.w);
  return r;
}

inline bool geq(const uint64_t* a, const uint64_t* b, int n) {
  for (int i = n - 1; i >= 0; i--)
    if (a[i] != b[i]) return a[i] > b[i];
  return true;
}

inline void sub_words(uint64_t* a, const uint64_t* b, int n) {
  uint64_t borrow = 0;
  for (int i = 0; i < n; i++) {
    u128 d = (u128)a[i] - b[i] - borrow;
    a[i] = (uint64_t)d;
    borrow = (uint64_t)(d >> 64) & 1;
  }
}

inline void canonical(Fe& a) {
  while (geq(a.w, constants::P, 6)) sub_words(a.w, constants::P, 6);
}

// Montgomery product, R = 2^384, for operands with a b < 144 P^2; the result is below 2 P.
inline Fe mul_lazy(const Fe& a, const Fe& b) {
  uint64_t t[7] = {0};
  for (int i = 0; i < 6; i++) {
    u128 c = 0;
    for (int j = 0; j < 6; j++) {
      c += (u128)a.w[j] * b.w[i] + t[j];
      t[j] = (uint64_t)c;
      c >>= 64;
    }
    u128 top = (u128)t[6] + c;
    uint64_t q = t[0] * constants::NEG_INV_P_64;
    c = (u128)q * constants::P[0] + t[0];
    c >>= 64;
    for (int j = 1; j < 6; j++) {
      c += (u128)q * constants::P[j] + t[j];
      t[j - 1] = (uint64_t)c;
      c >>= 64;
    }
    top += c;
    t[5] = (uint64_t)top;
    t[6] = (uint64_t)(top >> 64);
  }
  Fe r;
  memcpy(r.w, t, sizeof r.w);
  return r;
}

inline Fe mul(const Fe& a, const Fe& b) {
  Fe r = mul_lazy(a, b);
  canonical(r);
  return r;
}

inline Fe add(const Fe& a, const Fe& b) {
  Fe r;
  u128 c = 0;
  for (int i = 0; i < 6; i++) {
    c += (u128)a.w[i] + b.w[i];
    r.w[i] = (uint64_t)c;
    c >>= 64;
  }
  canonical(r);
  return r;
}

inline Fe neg(const Fe& a) {
  Fe r = fe(constants::P);
  sub_words(r.w, a.w, 6);
  canonical(r);
  return r;
}

inline Fe sub(const Fe& a, const Fe& b) { return add(a, neg(b)); }
inline Fe one() { return fe(constants::ONE); }
inline Fe zero() { return Fe{{0, 0, 0, 0, 0, 0}}; }

inline Fe inverse(const Fe& a) {
  uint64_t e[6];
  memcpy(e, constants::P, sizeof e);
  e[0] -= 2;  // P is odd and its lowest word is 1 modulo 2^46, above 2 as a 64-bit word
  Fe r = one();
  for (int i = 383; i >= 0; i--) {
    r = mul(r, r);
    if (e[i / 64] >> (i % 64) & 1) r = mul(r, a);
  }
  return r;
}

// Projective twisted Edwards point (X : Y : Z), a = -1; add-2008-bbjlp.
struct Pt {
  Fe x, y, z;
};

inline Pt identity() { return {zero(), one(), one()}; }

inline Pt add(const Pt& p, const Pt& q) {
  Fe a = mul(p.z, q.z), b = mul(a, a), c = mul(p.x, q.x), d = mul(p.y, q.y);
  Fe e = mul(fe(constants::D_MONT), mul(c, d)), f = sub(b, e), g = add(b, e);
  Fe cross = sub(sub(mul(add(p.x, p.y), add(q.x, q.y)), c), d);
  return {mul(a, mul(f, cross)), mul(a, mul(g, add(d, c))), mul(f, g)};
}

inline Pt neg(const Pt& p) { return {neg(p.x), p.y, p.z}; }

inline bool equal(const Pt& p, const Pt& q) {
  return mul(p.x, q.z) == mul(q.x, p.z) && mul(p.y, q.z) == mul(q.y, p.z);
}

struct Scalar {
  uint64_t w[4];
};

inline Pt mul(const Scalar& k, const Pt& p) {
  Pt r = identity();
  for (int i = 255; i >= 0; i--) {
    r = add(r, r);
    if (k.w[i / 64] >> (i % 64) & 1) r = add(r, p);
  }
  return r;
}

inline Pt generator() { return {fe(constants::GENERATOR_X_MONT), fe(constants::GENERATOR_Y_MONT), one()}; }

// Scalars modulo r, by schoolbook shift and add: slow and simple.
inline void scalar_add(Scalar& a, const Scalar& b) {
  u128 c = 0;
  for (int i = 0; i < 4; i++) {
    c += (u128)a.w[i] + b.w[i];
    a.w[i] = (uint64_t)c;
    c >>= 64;
  }
  if (geq(a.w, constants::R_ORDER, 4)) sub_words(a.w, constants::R_ORDER, 4);
}

inline Scalar scalar_mul(const Scalar& a, const Scalar& b) {
  Scalar r = {{0, 0, 0, 0}};
  for (int i = 252; i >= 0; i--) {
    scalar_add(r, Scalar(r));
    if (b.w[i / 64] >> (i % 64) & 1) scalar_add(r, a);
  }
  return r;
}

// xorshift64*; tests are repeatable.
struct Rng {
  uint64_t s;
  explicit Rng(uint64_t seed) : s(seed * 2654435769u + 88172645463325252ull) {}
  uint64_t next() {
    s ^= s >> 12;
    s ^= s << 25;
    s ^= s >> 27;
    return s * 2685821657736338717ull;
  }
  uint64_t below(uint64_t n) { return next() % n; }
  Scalar scalar() {
    Scalar k;
    do {
      for (auto& w : k.w) w = next();
      k.w[3] &= (1ull << 61) - 1;
    } while (geq(k.w, constants::R_ORDER, 4));
    return k;
  }
  Fe field() {
    Fe a;
    do {
      for (auto& w : a.w) w = next();
      a.w[5] &= (1ull << 57) - 1;
    } while (geq(a.w, constants::P, 6));
    return a;
  }
};

inline int oracle_self_test() {
  int failed = 0;
  Scalar k;
  memcpy(k.w, constants::KNOWN_SCALAR, sizeof k.w);
  Pt p = mul(k, generator());
  failed += !equal(p, {fe(constants::KNOWN_X_MONT), fe(constants::KNOWN_Y_MONT), one()});
  failed += !(mul(fe(constants::KNOWN_A), fe(constants::KNOWN_B)) == fe(constants::KNOWN_AB));
  Scalar r;
  memcpy(r.w, constants::R_ORDER, sizeof r.w);
  failed += !equal(mul(r, generator()), identity());
  return failed;
}
