// Points of −x² + y² = 1 + d·x²y² in extended coordinates: Hisil, Wong, Carter and Dawson, "Twisted
// Edwards Curves Revisited", 2008. In a group of odd order the formulas know no exceptions: equal
// points, opposite ones and the neutral one, (0, 1), are added like any others.
#pragma once
#include "field.cuh"

namespace proofmill {

// An affine point in the form in which it is added: seven products.
template <class F>
struct EdwardsPoint {
  // y − x, y + x and 2d·x·y.
  F difference, sum, product;
};

// x = X/Z, y = Y/Z, x·y = T/Z.
template <class Curve>
struct EdwardsSum {
  using F = typename Curve::Base;

  F x, y, z, t;

  DEVICE static EdwardsSum identity() { return {F::zero(), F::one(), F::one(), F::zero()}; }

  // With 2x and 2y at hand, Z is 4.
  DEVICE static EdwardsSum from(const EdwardsPoint<F>& p) {
    const F x2 = p.sum - p.difference;
    const F y2 = p.sum + p.difference;
    return {x2.doubled(), y2.doubled(), F::one().doubled().doubled(), x2 * y2};
  }

  DEVICE F denominator() const { return z; }

  DEVICE EdwardsPoint<F> affine(const F& inverse) const {
    const F ax = x * inverse;
    const F ay = y * inverse;
    return {ay - ax, ay + ax, ax * ay * Curve::twice_d()};
  }

  DEVICE EdwardsSum doubled() const {
    const F xx = x.squared();
    const F yy = y.squared();
    const F zz = z.squared();
    const F e = (x + y).squared() - xx - yy;
    const F g = yy - xx;
    return combined(e, g - zz.doubled(), g, -(xx + yy));
  }

  // p or −p.
  DEVICE void add(const EdwardsPoint<F>& p, bool negative) {
    const F a = (y - x) * (negative ? p.sum : p.difference);
    const F b = (y + x) * (negative ? p.difference : p.sum);
    const F c = t * p.product;
    const F d = z.doubled();
    const F less = d - c, more = d + c;
    *this = combined(b - a, F::select(negative, more, less), F::select(negative, less, more), b + a);
  }

  DEVICE void add(const EdwardsSum& p) {
    const F a = (y - x) * (p.y - p.x);
    const F b = (y + x) * (p.y + p.x);
    const F c = t * p.t * Curve::twice_d();
    const F d = (z * p.z).doubled();
    *this = combined(b - a, d - c, d + c, b + a);
  }

 private:
  // What all formulas end with.
  DEVICE static EdwardsSum combined(const F& e, const F& f, const F& g, const F& h) {
    return {e * f, g * h, f * g, e * h};
  }
};

// What kernels know of a group. A curve has its `Base` field and `twice_d()`.
template <class Curve>
struct Edwards {
  using Base = typename Curve::Base;
  using Point = EdwardsPoint<Base>;
  using Sum = EdwardsSum<Curve>;
};

}  // namespace proofmill
