#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Cycles a point of the simulated core (C-model multiplier), reduction counted, beside the paper's table 1.

Equal scalars depend on the scalar: the median and the worst of EQUAL_SEEDS of them (3 from 2^16 on), and the worst divided by
random scalars, which may be 1.2 at most: the script fails otherwise. `shift`: equal scalars that change half-way.

Usage: bench_core.py BUILD_FOLDER [LOG_N_MAX]; the default of 20 takes about 20 minutes. 21 and 22 are by the cycle model `model`, which is
printed beside every simulated number. The paper's cycles are milliseconds times 10^5 (100 MHz); its reduction is not counted.
"""
import pathlib
import re
import subprocess
import sys

PAPER_MS = {5: .0030, 6: .0057, 7: .0123, 8: .0247, 9: .0502, 10: .1009, 11: .2014, 12: .4095, 13: .8184, 14: 1.6333,
            15: 3.2371, 16: 6.5438, 17: 13.0650, 18: 26.0817, 19: 52.1813, 20: 104.5091, 21: 209.0369, 22: 418.0618}
R_HALF = 0x955B2AF4D1652AB305A268F2E1BD800ACD53B7F680000008508C00000000000
READ, CONVERT, ADD, MEMORY = 2, 17, 36, 40  # clocks; MEMORY is the simulated latency
FULL, DOUBLE = READ + CONVERT + ADD + 1, READ + ADD + 1


def shape(w, adders):
    digits = -(-252 // w)
    buckets = (R_HALF >> (252 - w)) + 1 if w * digits == 252 else 1 << (w - 1)
    addresses = -(-buckets // adders)
    length = 0
    while (addresses - 1) >> length >= 64:
        length += 1
    return digits, buckets, addresses, length, ((addresses - 1) >> length) + 1


def model(log_n, w, adders):
    """Cycles with uniform digits: the stream, the expected imbalance of two banks, the reduction's rounds and its dependent steps."""
    digits, _, addresses, length, chains = shape(w, adders)
    n = 1 << log_n
    operations = n * digits
    # The busier of two banks has on average sqrt(N / (2 pi)) operations more than half. Once that passes half of what a bank's
    # FIFOs hold (2 x 256), full FIFOs hold the stream up instead: one clock in 1,024.
    imbalance = (operations / 6.283) ** .5
    if imbalance > 256:
        imbalance = 256 + operations / adders / 1024
    stream = operations / adders + (imbalance if adders == 2 else 0)
    rounds = 1 << length
    run = (rounds - 1) * max(2 * chains, FULL) + chains
    logc = (chains - 1).bit_length()
    tree = sum(max((chains >> (l + 1)) * (2 + l), FULL) for l in range(logc))
    doublings = logc + length - 1 + (adders == 2)
    tail = tree + (2 * FULL if adders == 2 else 0) + doublings * (DOUBLE + 1) + 3 * FULL
    return stream + run + tail + MEMORY + READ + ADD + 40


def best_window(log_n, adders):
    return min(range(9, 19), key=lambda w: model(log_n, w, adders))


EQUAL_SEEDS = 24
EQUAL_LIMIT = 1.2


def simulate(build, adders, log_n, w, kind, seed=1):
    digits = shape(w, adders)[0]
    out = subprocess.run([build / f"bench{adders}" / "core_test", "run", str(log_n), str(w), str(digits), kind, str(seed)],
                         capture_output=True, text=True).stdout
    found = re.search(r": right cycles=(\d+)", out)
    if not found:
        sys.exit(f"error: wrong or no result for 2^{log_n} {kind}, {adders} adders: {out}")
    return int(found[1])


def main():
    build = pathlib.Path(sys.argv[1])
    top = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    too_slow = 0
    print("| n | w | two adders: random | equal: median | worst | worst / random | zero-one | sparse | even | shift | model | error % "
          "| one adder: random | paper, no reduction |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|")
    for log_n in range(5, 23):
        n, w, w1 = 1 << log_n, best_window(log_n, 2), best_window(log_n, 1)
        paper = PAPER_MS[log_n] * 1e5 / n
        m = model(log_n, w, 2)
        if log_n > top:
            print(f"| {log_n} | {w} | | | | | | | | | {m / n:.3f} | | {model(log_n, w1, 1) / n:.3f} (model) | {paper:.3f} |", flush=True)
            continue
        two = [simulate(build, 2, log_n, w, kind) for kind in ("random", "zero-one", "sparse", "even", "shift")]
        equal = sorted(simulate(build, 2, log_n, w, "equal", s + 1) for s in range(EQUAL_SEEDS if log_n < 16 else 3))
        ratio = equal[-1] / two[0]
        too_slow += ratio > EQUAL_LIMIT
        one = simulate(build, 1, log_n, w1, "random")
        cells = [f"{c / n:.3f}" for c in two]
        cells[1:1] = [f"{equal[len(equal) // 2] / n:.3f}", f"{equal[-1] / n:.3f}", f"{ratio:.3f}"]
        cells = " | ".join(cells)
        print(f"| {log_n} | {w} | {cells} | {m / n:.3f} | {100 * (m - two[0]) / two[0]:+.2f} | {one / n:.3f} | {paper:.3f} |", flush=True)
    return too_slow


if __name__ == "__main__":
    sys.exit(main())
