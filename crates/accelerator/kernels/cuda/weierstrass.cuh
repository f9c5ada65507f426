// Points of y² = x³ + b: affine ones, and sums in extended Jacobian coordinates ("XYZZ").
// Formulas: the Explicit-Formulas Database, shortw/xyzz, for a = 0.
#pragma once
#include "field.cuh"

namespace proofmill {

// The point at infinity is (0, 0), which is on no curve with b ≠ 0.
template <class F>
struct Affine {
  F x, y;

  DEVICE bool is_identity() const { return x.is_zero() && y.is_zero(); }
};

// x = X/ZZ, y = Y/ZZZ, with ZZ³ = ZZZ². The point at infinity has ZZ = 0.
template <class F>
struct Xyzz {
  F x, y, zz, zzz;

  DEVICE static Xyzz identity() { return {F::zero(), F::zero(), F::zero(), F::zero()}; }

  DEVICE static Xyzz from(const Affine<F>& p) {
    if (p.is_identity()) return identity();
    return {p.x, p.y, F::one(), F::one()};
  }

  DEVICE bool is_identity() const { return zz.is_zero(); }

  // What is inverted to make the point affine: one for infinity.
  DEVICE F denominator() const { return is_identity() ? F::one() : zzz; }

  // The affine point, by the denominator's inverse. 1/ZZ = (ZZ/ZZZ)², since ZZ³ = ZZZ².
  DEVICE Affine<F> affine(const F& inverse) const {
    if (is_identity()) return {F::zero(), F::zero()};
    const F inverse_z = inverse * zz;
    return {x * inverse_z.squared(), y * inverse};
  }

  // dbl-2008-s-1. No point of the prime-order subgroup has y = 0; one elsewhere that has doubles
  // to infinity, since ZZ becomes 0.
  DEVICE Xyzz doubled() const {
    const F u = y.doubled();
    const F v = u.squared();
    const F w = u * v;
    const F s = x * v;
    const F xx = x.squared();
    const F m = xx.doubled() + xx;
    Xyzz r;
    r.x = m.squared() - s.doubled();
    r.y = m * (s - r.x) - w * y;
    r.zz = v * zz;
    r.zzz = w * zzz;
    return r;
  }

  // madd-2008-s, of p or of −p.
  DEVICE void add(const Affine<F>& p, bool negative) {
    if (p.is_identity()) return;
    const F y2 = negative ? -p.y : p.y;
    if (is_identity()) {
      *this = {p.x, y2, F::one(), F::one()};
      return;
    }
    const F dx = p.x * zz - x;
    const F dy = y2 * zzz - y;
    if (dx.is_zero()) {
      *this = dy.is_zero() ? doubled_apart(*this) : identity();
      return;
    }
    combine(dx, dy, x, y);
  }

  // add-2008-s.
  DEVICE void add(const Xyzz& p) {
    if (p.is_identity()) return;
    if (is_identity()) {
      *this = p;
      return;
    }
    // Each coordinate is used up as soon as can be: they fill the registers.
    const F u1 = x * p.zz;
    const F dx = p.x * zz - u1;
    zz = zz * p.zz;
    const F s1 = y * p.zzz;
    const F dy = p.y * zzz - s1;
    zzz = zzz * p.zzz;
    if (dx.is_zero()) {
      *this = dy.is_zero() ? doubled_apart(p) : identity();
      return;
    }
    combine(dx, dy, u1, s1);
  }

 private:
  // For the rare case, whose code is not to be in each addition.
  DEVICE_CALL static Xyzz doubled_apart(Xyzz p) { return p.doubled(); }

  // What both additions end with: coordinates over a common denominator, and their differences.
  DEVICE void combine(const F& dx, const F& dy, const F& x1, const F& y1) {
    const F square = dx.squared();
    const F cube = dx * square;
    const F q = x1 * square;
    const F x3 = dy.squared() - cube - q.doubled();
    y = dy * (q - x3) - y1 * cube;
    x = x3;
    zz = zz * square;
    zzz = zzz * cube;
  }
};

// What kernels know of a group: its field, its points, its sums.
template <class F>
struct Weierstrass {
  using Base = F;
  using Point = Affine<F>;
  using Sum = Xyzz<F>;
};

}  // namespace proofmill
