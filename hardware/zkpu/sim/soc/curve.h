// SPDX-License-Identifier: MIT OR Apache-2.0
// BLS12-377 G1 in twisted Edwards form for the tests of the system on chip: field, points, tables, products. Slow and
// plain; constants come from sim/core/constants.h and docs/zkpu.md.
#pragma once
#include "../core/constants.h"
#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

namespace curve {

using Field = std::array<uint64_t, 6>;   // Montgomery form, below p
using Scalar = std::array<uint64_t, 4>;  // integer

inline bool below_p(const Field &a) {
    for (int i = 5; i >= 0; i--)
        if (a[i] != constants::P[i]) return a[i] < constants::P[i];
    return false;
}
inline void subtract_p(Field &a) {
    unsigned __int128 borrow = 0;
    for (int i = 0; i < 6; i++) {
        const unsigned __int128 d = (unsigned __int128)a[i] - constants::P[i] - borrow;
        a[i] = uint64_t(d);
        borrow = d >> 64 & 1;
    }
}
inline Field add(const Field &a, const Field &b) {  // p has 377 bits: no carry out of 384
    Field c;
    unsigned __int128 t = 0;
    for (int i = 0; i < 6; i++) {
        t += (unsigned __int128)a[i] + b[i];
        c[i] = uint64_t(t);
        t >>= 64;
    }
    if (!below_p(c)) subtract_p(c);
    return c;
}
inline Field negate(const Field &a) {
    if (a == Field{}) return a;
    Field c;
    unsigned __int128 borrow = 0;
    for (int i = 0; i < 6; i++) {
        const unsigned __int128 d = (unsigned __int128)constants::P[i] - a[i] - borrow;
        c[i] = uint64_t(d);
        borrow = d >> 64 & 1;
    }
    return c;
}
inline Field subtract(const Field &a, const Field &b) { return add(a, negate(b)); }
inline Field multiply(const Field &a, const Field &b) {
    uint64_t t[8] = {};
    for (int i = 0; i < 6; i++) {
        unsigned __int128 c = 0;
        for (int j = 0; j < 6; j++) {
            c += (unsigned __int128)a[j] * b[i] + t[j];
            t[j] = uint64_t(c);
            c >>= 64;
        }
        c += t[6];
        t[6] = uint64_t(c);
        t[7] = uint64_t(c >> 64);
        const uint64_t m = t[0] * constants::NEG_INV_P_64;
        c = ((unsigned __int128)m * constants::P[0] + t[0]) >> 64;
        for (int j = 1; j < 6; j++) {
            c += (unsigned __int128)m * constants::P[j] + t[j];
            t[j - 1] = uint64_t(c);
            c >>= 64;
        }
        c += t[6];
        t[5] = uint64_t(c);
        t[6] = t[7] + uint64_t(c >> 64);
    }
    Field r;
    memcpy(r.data(), t, 48);
    if (!below_p(r)) subtract_p(r);
    return r;
}
inline Field constant(const uint64_t (&words)[6]) {
    Field f;
    memcpy(f.data(), words, 48);
    return f;
}
inline Field one() { return constant(constants::ONE); }
inline Field invert(const Field &a) {  // a^(p-2)
    Field exponent = constant(constants::P), r = one();
    exponent[0] -= 2;
    for (int i = 383; i >= 0; i--) {
        r = multiply(r, r);
        if (exponent[i / 64] >> (i % 64) & 1) r = multiply(r, a);
    }
    return r;
}

// -X^2 + Y^2 = 1 + d X^2 Y^2, extended coordinates.
struct Point {
    Field x, y, z, t;
};
inline Point neutral() { return {Field{}, one(), one(), Field{}}; }
// Unified addition (add-2008-hwcd-3). Its exceptional pairs differ by a point of even order (scripts/constants.py), so that it
// is complete in the group of order r.
inline Point add(const Point &p, const Point &q) {
    const Field k = constant(constants::K_MONT);
    const Field a = multiply(subtract(p.y, p.x), subtract(q.y, q.x));
    const Field b = multiply(add(p.y, p.x), add(q.y, q.x));
    const Field c = multiply(multiply(p.t, k), q.t);
    const Field d = multiply(add(p.z, p.z), q.z);
    const Field e = subtract(b, a), f = subtract(d, c), g = add(d, c), h = add(b, a);
    return {multiply(e, f), multiply(g, h), multiply(f, g), multiply(e, h)};
}
// Integer multiple; `words` little-endian 64-bit words.
inline Point multiple(const Point &p, const uint64_t *words, int count) {
    Point r = neutral();
    for (int i = 64 * count - 1; i >= 0; i--) {
        r = add(r, r);
        if (words[i / 64] >> (i % 64) & 1) r = add(r, p);
    }
    return r;
}
inline bool equal(const Point &p, const Point &q) {
    return multiply(p.x, q.z) == multiply(q.x, p.z) && multiply(p.y, q.z) == multiply(q.y, p.z);
}
// The point is on the curve and T = XY/Z.
inline bool valid(const Point &p) {
    const Field x2 = multiply(p.x, p.x), y2 = multiply(p.y, p.y), z2 = multiply(p.z, p.z);
    const Field left = multiply(subtract(y2, x2), z2);
    const Field right = add(multiply(z2, z2), multiply(constant(constants::D_MONT), multiply(x2, y2)));
    return p.z != Field{} && left == right && multiply(p.t, p.z) == multiply(p.x, p.y);
}
// The constants are the twisted Edwards coordinates of a point of order r.
inline Point generator() {
    const Field x = constant(constants::GENERATOR_X_MONT), y = constant(constants::GENERATOR_Y_MONT);
    return {x, y, one(), multiply(x, y)};
}

// Table entry: (Y - X, Y + X, 2dXY) of the affine point.
struct Entry {
    Field minus, plus, product;
};
static_assert(sizeof(Entry) == 144);
inline Entry entry(const Point &p) {
    const Field i = invert(p.z), x = multiply(p.x, i), y = multiply(p.y, i);
    return {subtract(y, x), add(y, x), multiply(constant(constants::K_MONT), multiply(x, y))};
}
inline Point from_entry(const Entry &e) {  // Z = 2, so that no halving is needed
    const Field x = subtract(e.plus, e.minus), y = add(e.plus, e.minus), two = add(one(), one());
    return {multiply(x, two), multiply(y, two), multiply(two, two), multiply(x, y)};
}
// Sum of s_j P_j, doublings shared.
inline Point product(const std::vector<Scalar> &scalars, const std::vector<Entry> &entries) {
    std::vector<Point> points;
    for (const Entry &e : entries) points.push_back(from_entry(e));
    Point r = neutral();
    for (int i = 255; i >= 0; i--) {
        r = add(r, r);
        for (size_t j = 0; j < scalars.size(); j++)
            if (scalars[j][i / 64] >> (i % 64) & 1) r = add(r, points[j]);
    }
    return r;
}

}  // namespace curve
