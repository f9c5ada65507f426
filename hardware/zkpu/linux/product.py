# SPDX-License-Identifier: MIT OR Apache-2.0
"""A product in the device's formats (docs/zkpu.md), by Python's integers alone: nothing of the device's or the host's code.

Points are known multiples of the generator, so that their weighted sum is one multiple of it, which a device does not
know.
"""
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "scripts"))
import constants as curve  # noqa: E402

BLOCK_BYTES, RESULT_BYTES = 512, 192
# Steps of the walk from one point to the next.
STEPS = 32


def element(value):
    """48 bytes of a field element in Montgomery form."""
    return (value * curve.R % curve.P).to_bytes(48, "little")


def entry(point):
    """A table's entry, 144 bytes."""
    x, y = curve.to_edwards(point)
    return element((y - x) % curve.P) + element((y + x) % curve.P) + element(curve.K * x * y % curve.P)


def blocks(data):
    return data.ljust((len(data) + BLOCK_BYTES - 1) // BLOCK_BYTES * BLOCK_BYTES, b"\0")


class Product:
    """2^log_n random scalars and points of a seed; the table has one level."""

    def __init__(self, log_n, seed):
        choose = random.Random(seed)
        number = lambda: choose.randrange(1, curve.R_ORDER)
        multiple = lambda of: (of, curve.w_mul(of, curve.generator()))
        steps = [multiple(number()) for _ in range(STEPS)]
        factor, point = multiple(number())
        self.sum, entries, scalars = 0, [], []
        for _ in range(1 << log_n):
            scalar = number()
            scalars.append(scalar.to_bytes(32, "little"))
            entries.append(entry(point))
            self.sum = (self.sum + scalar * factor) % curve.R_ORDER
            by, step = choose.choice(steps)
            factor, point = (factor + by) % curve.R_ORDER, curve.w_add(point, step)
        self.scalars, self.table = blocks(b"".join(scalars)), blocks(b"".join(entries))

    def difference(self, result):
        """None if 192 bytes of a result are the product; else what is wrong with them."""
        if len(result) != RESULT_BYTES:
            return f"{len(result)} bytes instead of {RESULT_BYTES}"
        raw = [int.from_bytes(result[at : at + 48], "little") for at in range(0, RESULT_BYTES, 48)]
        if max(raw) >= curve.P or raw[2] == 0:
            return "a coordinate is out of range"
        x, y, z, t = (value * curve.inv(curve.R) % curve.P for value in raw)
        if t * z % curve.P != x * y % curve.P:
            return "T is not XY / Z"
        affine = (x * curve.inv(z) % curve.P, y * curve.inv(z) % curve.P)
        expected = curve.to_edwards(curve.w_mul(self.sum, curve.generator()))
        return None if affine == expected else "it is another sum"
