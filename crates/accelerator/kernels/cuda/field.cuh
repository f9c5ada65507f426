// Prime fields in Montgomery form: limbs of 32 bits, least significant first, below the modulus.
// As bytes that is what arkworks keeps, whose limbs are of 64 bits.
#pragma once
#include "chain.cuh"

namespace proofmill {

template <u32 N>
struct Limbs {
  u32 limb[N];
};

// Constants of a modulus, worked out by the compiler.
template <class Modulus>
struct Montgomery {
  static constexpr u32 N = Modulus::LIMBS;

  // −1/p mod 2³²; each step of Newton's doubles the bits that are right.
  DEVICE static constexpr u32 negative_inverse() {
    constexpr u32 low = Modulus::value().limb[0];
    u32 inverse = low;
    for (int step = 0; step < 5; ++step) inverse *= 2 - low * inverse;
    return 0 - inverse;
  }

  // p − 2, the exponent that inverts.
  DEVICE static constexpr Limbs<N> inverting_exponent() {
    Limbs<N> value = Modulus::value();
    u64 borrow = 2;
    for (u32 i = 0; i < N; ++i) {
      const u64 difference = u64{value.limb[i]} - borrow;
      value.limb[i] = static_cast<u32>(difference);
      borrow = difference >> 63;
    }
    return value;
  }

  // 2^(32·N) mod p: one, in Montgomery form.
  DEVICE static constexpr Limbs<N> one() {
    constexpr Limbs<N> modulus = Modulus::value();
    Limbs<N> value{};
    value.limb[0] = 1;
    for (u32 bit = 0; bit < 32 * N; ++bit) {
      Limbs<N> twice{}, reduced{};
      u64 borrow = 0;
      for (u32 i = 0; i < N; ++i) {
        twice.limb[i] = value.limb[i] << 1 | (i > 0 ? value.limb[i - 1] >> 31 : 0);
        const u64 difference = u64{twice.limb[i]} - modulus.limb[i] - borrow;
        reduced.limb[i] = static_cast<u32>(difference);
        borrow = difference >> 63;
      }
      value = borrow != 0 ? twice : reduced;
    }
    return value;
  }
};

// A field whose modulus leaves the top bit of its limbs free, with an even number of them.
template <class Modulus>
struct alignas(16) Field {
  static constexpr u32 N = Modulus::LIMBS;
  static_assert(N % 2 == 0, "limbs are multiplied in pairs");

  u32 limb[N];

  DEVICE static Field zero() {
    Field r;
    UNROLL for (u32 i = 0; i < N; ++i) r.limb[i] = 0;
    return r;
  }

  DEVICE static Field one() {
    constexpr Limbs<N> value = Montgomery<Modulus>::one();
    Field r;
    UNROLL for (u32 i = 0; i < N; ++i) r.limb[i] = value.limb[i];
    return r;
  }

  // One of two, limb by limb, so that neither needs an address.
  DEVICE static Field select(bool first, const Field& a, const Field& b) {
    Field r;
    UNROLL for (u32 i = 0; i < N; ++i) r.limb[i] = first ? a.limb[i] : b.limb[i];
    return r;
  }

  DEVICE bool is_zero() const {
    u32 any = 0;
    UNROLL for (u32 i = 0; i < N; ++i) any |= limb[i];
    return any == 0;
  }

  DEVICE friend Field operator+(const Field& a, const Field& b) {
    Field r;
    Chain chain;
    r.limb[0] = chain.add(a.limb[0], b.limb[0]);
    UNROLL for (u32 i = 1; i < N; ++i) r.limb[i] = chain.addc(a.limb[i], b.limb[i]);
    return r.reduced();
  }

  DEVICE friend Field operator-(const Field& a, const Field& b) {
    constexpr Limbs<N> modulus = Modulus::value();
    Field r;
    Chain chain;
    r.limb[0] = chain.sub(a.limb[0], b.limb[0]);
    UNROLL for (u32 i = 1; i < N; ++i) r.limb[i] = chain.subc(a.limb[i], b.limb[i]);
    // All ones if a < b: then the modulus comes back.
    const u32 mask = chain.subc(0, 0);
    Chain back;
    r.limb[0] = back.add(r.limb[0], modulus.limb[0] & mask);
    UNROLL for (u32 i = 1; i < N; ++i) r.limb[i] = back.addc(r.limb[i], modulus.limb[i] & mask);
    return r;
  }

  DEVICE Field operator-() const { return zero() - *this; }

  DEVICE Field doubled() const { return *this + *this; }

  // Of two rows of partial products, `even` and `odd`, the second is a limb further left. Each limb
  // of b adds its products with a, and the multiple of p that clears the lowest limb; then the rows
  // change places, which divides by 2³². Products of even and of odd limbs of a lie in rows of their
  // own so that low and high halves of one product are neighbours in one chain, which the card has
  // one instruction for.
  DEVICE friend Field operator*(const Field& a, const Field& b) {
    u32 even[N], odd[N];
    UNROLL for (u32 i = 0; i < N; i += 2) {
      even[i] = a.limb[i] * b.limb[0];
      even[i + 1] = high_half(a.limb[i], b.limb[0]);
      odd[i] = a.limb[i + 1] * b.limb[0];
      odd[i + 1] = high_half(a.limb[i + 1], b.limb[0]);
    }
    clear_lowest(even, odd);
    UNROLL for (u32 i = 1; i + 1 < N; i += 2) {
      multiply_limb(odd, even, a, b.limb[i]);
      multiply_limb(even, odd, a, b.limb[i + 1]);
    }
    multiply_limb(odd, even, a, b.limb[N - 1]);
    Field r;
    Chain chain;
    r.limb[0] = chain.add(even[0], odd[1]);
    UNROLL for (u32 i = 1; i + 1 < N; ++i) r.limb[i] = chain.addc(even[i], odd[i + 1]);
    r.limb[N - 1] = chain.addc(even[N - 1], 0);
    return r.reduced();
  }

  DEVICE Field squared() const { return *this * *this; }

  // The number itself, out of Montgomery form.
  DEVICE Field canonical() const {
    Field plain_one = zero();
    plain_one.limb[0] = 1;
    return *this * plain_one;
  }

  // 1/a by Fermat's theorem; 0 of 0.
  DEVICE_CALL static Field inverse(const Field& a) {
    constexpr Limbs<N> exponent = Montgomery<Modulus>::inverting_exponent();
    Field r = one();
    for (u32 bit = 32 * N; bit-- > 0;) {
      r = r.squared();
      if (exponent.limb[bit / 32] >> (bit % 32) & 1) r = r * a;
    }
    return r;
  }

 private:
  // The odd row moves a limb to the right: its lowest limb is zero, its next goes to the even row.
  DEVICE static void multiply_limb(u32* even, u32* odd, const Field& a, u32 b) {
    Chain chain;
    even[0] = chain.add(even[0], odd[1]);
    UNROLL for (u32 i = 0; i + 2 < N; i += 2) {
      odd[i] = chain.madc_lo(a.limb[i + 1], b, odd[i + 2]);
      odd[i + 1] = chain.madc_hi(a.limb[i + 1], b, odd[i + 3]);
    }
    odd[N - 2] = chain.madc_lo(a.limb[N - 1], b, 0);
    odd[N - 1] = chain.madc_hi(a.limb[N - 1], b, 0);
    add_products(even, odd, a.limb, b);
    clear_lowest(even, odd);
  }

  // Adds the multiple of p that makes the lowest limb zero.
  DEVICE static void clear_lowest(u32* even, u32* odd) {
    constexpr Limbs<N> modulus = Modulus::value();
    const u32 factor = even[0] * Montgomery<Modulus>::negative_inverse();
    Chain reduction;
    odd[0] = reduction.mad_lo(modulus.limb[1], factor, odd[0]);
    odd[1] = reduction.madc_hi(modulus.limb[1], factor, odd[1]);
    UNROLL for (u32 i = 2; i < N; i += 2) {
      odd[i] = reduction.madc_lo(modulus.limb[i + 1], factor, odd[i]);
      odd[i + 1] = reduction.madc_hi(modulus.limb[i + 1], factor, odd[i + 1]);
    }
    add_products(even, odd, modulus.limb, factor);
  }

  // even += the even limbs of a, times b; what runs over goes to the odd row's top.
  DEVICE static void add_products(u32* even, u32* odd, const u32* a, u32 b) {
    Chain chain;
    even[0] = chain.mad_lo(a[0], b, even[0]);
    even[1] = chain.madc_hi(a[0], b, even[1]);
    UNROLL for (u32 i = 2; i < N; i += 2) {
      even[i] = chain.madc_lo(a[i], b, even[i]);
      even[i + 1] = chain.madc_hi(a[i], b, even[i + 1]);
    }
    odd[N - 1] = chain.addc(odd[N - 1], 0);
  }

  // From below 2p to below p.
  DEVICE Field reduced() const {
    constexpr Limbs<N> modulus = Modulus::value();
    Field r;
    Chain chain;
    r.limb[0] = chain.sub(limb[0], modulus.limb[0]);
    UNROLL for (u32 i = 1; i < N; ++i) r.limb[i] = chain.subc(limb[i], modulus.limb[i]);
    const bool below = chain.subc(0, 0) != 0;
    return select(below, *this, r);
  }
};

// Pairs c0 + c1·u with u² = −1.
template <class Base>
struct Quadratic {
  Base c0, c1;

  DEVICE static Quadratic zero() { return {Base::zero(), Base::zero()}; }
  DEVICE static Quadratic one() { return {Base::one(), Base::zero()}; }
  DEVICE bool is_zero() const { return c0.is_zero() && c1.is_zero(); }
  DEVICE friend Quadratic operator+(const Quadratic& a, const Quadratic& b) {
    return {a.c0 + b.c0, a.c1 + b.c1};
  }
  DEVICE friend Quadratic operator-(const Quadratic& a, const Quadratic& b) {
    return {a.c0 - b.c0, a.c1 - b.c1};
  }
  DEVICE Quadratic operator-() const { return {-c0, -c1}; }
  DEVICE Quadratic doubled() const { return *this + *this; }
  DEVICE friend Quadratic operator*(const Quadratic& a, const Quadratic& b) { return product(a, b); }
  DEVICE Quadratic squared() const { return square(*this); }

  DEVICE_CALL static Quadratic inverse(const Quadratic& a) {
    const Base norm = Base::inverse(a.c0.squared() + a.c1.squared());
    return {a.c0 * norm, -(a.c1 * norm)};
  }

 private:
  // Karatsuba's three products.
  DEVICE_CALL static Quadratic product(const Quadratic& a, const Quadratic& b) {
    const Base low = a.c0 * b.c0;
    const Base high = a.c1 * b.c1;
    const Base mixed = (a.c0 + a.c1) * (b.c0 + b.c1);
    return {low - high, mixed - low - high};
  }

  DEVICE_CALL static Quadratic square(const Quadratic& a) {
    const Base half = a.c0 * a.c1;
    return {(a.c0 + a.c1) * (a.c0 - a.c1), half.doubled()};
  }
};

}  // namespace proofmill
