#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Derives the constants of BLS12-377 G1 in twisted Edwards form, checks them, and prints the package.

The curve is y^2 = x^3 + 1 over F_p. Its root of order two (-1, 0) gives the Montgomery form
B v^2 = u^3 + A u^2 + u with s = 1/sqrt(3), A = -3 s, B = s and (u, v) = (s (x + 1), s y). The Montgomery form
gives a' X^2 + Y^2 = 1 + d' X^2 Y^2 with a' = (A + 2) / B, d' = (A - 2) / B and (X, Y) = (u / v, (u - 1) / (u + 1)).
Scaling X by sqrt(-a') makes a = -1 and d = -d' / a'; the sign of sqrt(3) is the one for which -a' is a square.

Usage: constants.py [sv|cpp|check]; `check` (the default) also compares the files made of them, and ends with
'N passed, N failed'.
"""
import pathlib
import random
import sys

X = 0x8508C00000000001  # the curve family's parameter
R_ORDER = X**4 - X**2 + 1
P = (X - 1) ** 2 * R_ORDER // 3 + X
R = 1 << 384


def sqrt_mod(a):
    """Square root modulo P by Tonelli and Shanks, or None."""
    a %= P
    if a == 0:
        return 0
    if pow(a, (P - 1) // 2, P) != 1:
        return None
    q, e = P - 1, 0
    while q % 2 == 0:
        q, e = q // 2, e + 1
    n = next(n for n in range(2, 100) if pow(n, (P - 1) // 2, P) == P - 1)
    c, t, r = pow(n, q, P), pow(a, q, P), pow(a, (q + 1) // 2, P)
    while t != 1:
        i, u = 0, t
        while u != 1:
            u, i = u * u % P, i + 1
        b = pow(c, 1 << (e - i - 1), P)
        e, c = i, b * b % P
        t, r = t * c % P, r * b % P
    assert r * r % P == a
    return r


def inv(a):
    return pow(a, -1, P)


def derive():
    root3 = sqrt_mod(3)
    for sign in (1, -1):
        s = inv(sign * root3 % P)
        a_m, b_m = -3 * s % P, s
        scale = sqrt_mod(-(a_m + 2) * inv(b_m))
        if scale is not None:
            d = -(a_m - 2) * inv(a_m + 2) % P
            return s, scale, d
    raise AssertionError("no sign of sqrt(3) gives a = -1")


S, SCALE, D = derive()
K = 2 * D % P


def to_edwards(point):
    """Weierstrass affine (None for infinity) to twisted Edwards affine."""
    if point is None:
        return (0, 1)
    x, y = point
    u, v = S * (x + 1) % P, S * y % P
    return (u * inv(v) * SCALE % P, (u - 1) * inv(u + 1) % P)


def to_weierstrass(point):
    x, y = point
    if x == 0 and y == 1:
        return None
    xs = x * inv(SCALE) % P
    u = (1 + y) * inv(1 - y) % P
    v = u * inv(xs) % P
    return ((u * inv(S) - 1) % P, v * inv(S) % P)


def w_add(p, q):
    if p is None:
        return q
    if q is None:
        return p
    if p[0] == q[0]:
        if (p[1] + q[1]) % P == 0:
            return None
        m = 3 * p[0] * p[0] * inv(2 * p[1]) % P
    else:
        m = (q[1] - p[1]) * inv(q[0] - p[0]) % P
    x = (m * m - p[0] - q[0]) % P
    return (x, (m * (p[0] - x) - p[1]) % P)


def w_mul(k, p):
    acc = None
    while k:
        if k & 1:
            acc = w_add(acc, p)
        p, k = w_add(p, p), k >> 1
    return acc


def e_add(p, q):
    t = D * p[0] * q[0] * p[1] * q[1] % P
    return ((p[0] * q[1] + p[1] * q[0]) * inv(1 + t) % P, (p[1] * q[1] + p[0] * q[0]) * inv(1 - t) % P)


def generator():
    """A point of order r: the cofactor times the first point with a small x."""
    cofactor = (X - 1) ** 2 // 3
    x = 1
    while True:
        y = sqrt_mod(x**3 + 1)
        if y is not None:
            g = w_mul(cofactor, (x, min(y, P - y)))
            if g is not None:
                return g
        x += 1


def check():
    assert P.bit_length() == 377 and R_ORDER.bit_length() == 253
    assert P % (1 << 46) == 1
    assert pow(3, P - 1, P) == 1 and pow(2, R_ORDER - 1, R_ORDER) == 1
    assert 3 * P == (X - 1) ** 2 * (X**4 - X**2 + 1) + 3 * X
    # -1 is a square, and so is d: the addition law has exceptional pairs, but all of them differ by points of
    # even order, so that it is complete on the group of (odd) order r, the identity and doubling included.
    assert sqrt_mod(-1) is not None and sqrt_mod(D) is not None and R_ORDER % 2 == 1
    g = generator()
    assert w_mul(R_ORDER, g) is None
    rng = random.Random(377)
    for _ in range(8):
        a, b = (w_mul(rng.randrange(1, R_ORDER), g) for _ in range(2))
        ea, eb = to_edwards(a), to_edwards(b)
        assert (-ea[0] ** 2 + ea[1] ** 2 - 1 - D * ea[0] ** 2 * ea[1] ** 2) % P == 0
        assert to_weierstrass(ea) == a
        assert e_add(ea, eb) == to_edwards(w_add(a, b))
        assert e_add(ea, ea) == to_edwards(w_add(a, a))
        assert e_add(ea, to_edwards(None)) == ea
        assert e_add(ea, (-ea[0] % P, ea[1])) == (0, 1)
    return g


def sv():
    g = check()
    lines = ["// SPDX-License-Identifier: MIT OR Apache-2.0",
             "// Constants of BLS12-377 G1 in twisted Edwards form. Made by scripts/constants.py; do not edit.",
             "package field_pkg;",
             "  // Width of a field element on every bus; values stay below 4 P unless a comment says otherwise.",
             "  localparam int FE_BITS = 384;",
             "  typedef logic [FE_BITS-1:0] fe_t;", ""]

    def const(name, value, bits, text):
        lines.append(f"  // {text}")
        lines.append(f"  localparam logic [{bits - 1}:0] {name} = {bits}'h{value:x};")

    const("P", P, 384, "The field's modulus, 377 bits.")
    const("P4", 4 * P, 384, "4 P, added before a subtraction so that it cannot be negative.")
    const("ONE", R % P, 384, "1 in Montgomery form, R = 2^384.")
    const("CURVE_K", K * R % P, 384, "k = 2 d in Montgomery form; the curve is -x^2 + y^2 = 1 + d x^2 y^2.")
    const("NEG_INV_3P", -inv_pow2(3 * P) % R, 384, "-(3 P)^-1 modulo 2^384: the quotients of the Karatsuba multiplier.")
    const("NEG_INV_P_48", -inv_pow2(P) % (1 << 48), 48, "-P^-1 modulo 2^48: the quotients of the FIOS multiplier.")
    const("R_ORDER", R_ORDER, 256, "Order of the group, 253 bits.")
    const("R_HALF", R_ORDER // 2, 256, "(r - 1) / 2: scalars above it are replaced by r - s with the sign flipped.")
    lines.append("endpackage")
    return "\n".join(lines) + "\n"


def inv_pow2(a):
    return pow(a, -1, R)


def cpp():
    g = check()
    ge = to_edwards(g)

    def words(v, n=6):
        return "{" + ", ".join(f"0x{(v >> (64 * i)) & (2**64 - 1):016x}ull" for i in range(n)) + "}"

    out = ["// SPDX-License-Identifier: MIT OR Apache-2.0",
           "// Constants of BLS12-377 G1 for the oracle. Made by scripts/constants.py; do not edit.", "#pragma once",
           "#include <cstdint>", "namespace constants {"]
    for name, value in (("P", P), ("ONE", R % P), ("R_SQUARED", R * R % P), ("D_MONT", D * R % P), ("K_MONT", K * R % P),
                        ("GENERATOR_X_MONT", ge[0] * R % P), ("GENERATOR_Y_MONT", ge[1] * R % P)):
        out.append(f"constexpr uint64_t {name}[6] = {words(value)};")
    out.append(f"constexpr uint64_t R_ORDER[4] = {words(R_ORDER, 4)};")
    out.append(f"constexpr uint64_t NEG_INV_P_64 = 0x{-inv_pow2(P) % 2**64:016x}ull;")
    # Known answers, computed here with Python's integers and the Weierstrass formulas.
    rng = random.Random(2)
    k = rng.randrange(R_ORDER)
    e = to_edwards(w_mul(k, g))
    out.append(f"constexpr uint64_t KNOWN_SCALAR[4] = {words(k, 4)};")
    out.append(f"constexpr uint64_t KNOWN_X_MONT[6] = {words(e[0] * R % P)};")
    out.append(f"constexpr uint64_t KNOWN_Y_MONT[6] = {words(e[1] * R % P)};")
    a, b = rng.randrange(P), rng.randrange(P)
    out.append(f"constexpr uint64_t KNOWN_A[6] = {words(a)};")
    out.append(f"constexpr uint64_t KNOWN_B[6] = {words(b)};")
    out.append(f"constexpr uint64_t KNOWN_AB[6] = {words(a * b * inv(R) % P)};")
    out.append("}  // namespace constants")
    return "\n".join(out) + "\n"


if __name__ == "__main__":
    what = sys.argv[1] if len(sys.argv) > 1 else "check"
    if what == "sv":
        print(sv(), end="")
    elif what == "cpp":
        print(cpp(), end="")
    else:
        check()
        root = pathlib.Path(__file__).resolve().parent.parent
        stale = [name for name, text in (("rtl/field/field_pkg.sv", sv()), ("sim/core/constants.h", cpp()))
                 if (root / name).read_text() != text]
        for name in stale:
            print(f"FAILED: {name} is not what scripts/constants.py makes")
        print(f"{3 - len(stale)} passed, {len(stale)} failed")
        sys.exit(bool(stale))
