// The moduli, as the curves' papers have them; all else is worked out from these.
#pragma once
#include "field.cuh"

namespace proofmill {

// The base field of BLS12-381: 381 bits.
struct Bls12_381Base {
  static constexpr u32 LIMBS = 12;
  DEVICE static constexpr Limbs<LIMBS> value() {
    return {{0xffffaaab, 0xb9feffff, 0xb153ffff, 0x1eabfffe, 0xf6b0f624, 0x6730d2a0,
             0xf38512bf, 0x64774b84, 0x434bacd7, 0x4b1ba7b6, 0x397fe69a, 0x1a0111ea}};
  }
};

// The scalar field of BLS12-381: 255 bits.
struct Bls12_381Scalar {
  static constexpr u32 LIMBS = 8;
  DEVICE static constexpr Limbs<LIMBS> value() {
    return {{0x00000001, 0xffffffff, 0xfffe5bfe, 0x53bda402, 0x09a1d805, 0x3339d808,
             0x299d7d48, 0x73eda753}};
  }
};

// The base field of BLS12-377: 377 bits.
struct Bls12_377Base {
  static constexpr u32 LIMBS = 12;
  DEVICE static constexpr Limbs<LIMBS> value() {
    return {{0x00000001, 0x8508c000, 0x30000000, 0x170b5d44, 0xba094800, 0x1ef3622f,
             0x00f5138f, 0x1a22d9f3, 0x6ca1493b, 0xc63b05c0, 0x17c510ea, 0x01ae3a46}};
  }
};

// The scalar field of BLS12-377: 253 bits.
struct Bls12_377Scalar {
  static constexpr u32 LIMBS = 8;
  DEVICE static constexpr Limbs<LIMBS> value() {
    return {{0x00000001, 0x0a118000, 0xd0000001, 0x59aa76fe, 0x5c37b001, 0x60b44d1e,
             0x9a2ca556, 0x12ab655e}};
  }
};

// The base field of BN254: 254 bits.
struct Bn254Base {
  static constexpr u32 LIMBS = 8;
  DEVICE static constexpr Limbs<LIMBS> value() {
    return {{0xd87cfd47, 0x3c208c16, 0x6871ca8d, 0x97816a91, 0x8181585d, 0xb85045b6,
             0xe131a029, 0x30644e72}};
  }
};

// The scalar field of BN254: 254 bits.
struct Bn254Scalar {
  static constexpr u32 LIMBS = 8;
  DEVICE static constexpr Limbs<LIMBS> value() {
    return {{0xf0000001, 0x43e1f593, 0x79b97091, 0x2833e848, 0x8181585d, 0xb85045b6,
             0xe131a029, 0x30644e72}};
  }
};

}  // namespace proofmill
