// SPDX-License-Identifier: MIT OR Apache-2.0
// Constants of BLS12-377 G1 in twisted Edwards form. Made by scripts/constants.py; do not edit.
package field_pkg;
  // Width of a field element on every bus; values stay below 4 P unless a comment says otherwise.
  localparam int FE_BITS = 384;
  typedef logic [FE_BITS-1:0] fe_t;

  // The field's modulus, 377 bits.
  localparam logic [383:0] P = 384'h1ae3a4617c510eac63b05c06ca1493b1a22d9f300f5138f1ef3622fba094800170b5d44300000008508c00000000001;
  // 4 P, added before a subtraction so that it cannot be negative.
  localparam logic [383:0] P4 = 384'h6b8e9185f1443ab18ec1701b28524ec688b67cc03d44e3c7bcd88bee82520005c2d7510c00000021423000000000004;
  // 1 in Montgomery form, R = 2^384.
  localparam logic [383:0] ONE = 384'h8d6661e2fdf49a4cf495bf803c84e87b4e97b76e7c63059f7db3a98a7d3ff251409f837fffffb102cdffffffffff68;
  // k = 2 d in Montgomery form; the curve is -x^2 + y^2 = 1 + d x^2 y^2.
  localparam logic [383:0] CURVE_K = 384'h1784602fbff628a8bf6c1dd0d95a93e5597097dc5f2bb260f4d7cf27ef38fa5eae0237580faa8faf24b7e8444a706c6;
  // -(3 P)^-1 modulo 2^384: the quotients of the Karatsuba multiplier.
  localparam logic [383:0] NEG_INV_3P = 384'hea8c601ffa42ba1460fd55c0802369a41e6173d799a47e06674f066d3259f95545f86c7d3555555581ad955555555555;
  // -P^-1 modulo 2^48: the quotients of the FIOS multiplier.
  localparam logic [47:0] NEG_INV_P_48 = 48'hbfffffffffff;
  // Order of the group, 253 bits.
  localparam logic [255:0] R_ORDER = 256'h12ab655e9a2ca55660b44d1e5c37b00159aa76fed00000010a11800000000001;
  // (r - 1) / 2: scalars above it are replaced by r - s with the sign flipped.
  localparam logic [255:0] R_HALF = 256'h955b2af4d1652ab305a268f2e1bd800acd53b7f680000008508c00000000000;
endpackage
