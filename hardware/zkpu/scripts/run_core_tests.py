#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs the core's simulations and prints one line: 'N passed, N failed'. Usage: run_core_tests.py BUILD_FOLDER [NAME ...];
with names only those of RUNS.

Signatures are hashes of every result of a fixed run: they change when the netlist's behaviour does. The multipliers in RTL
and the C model give the same coordinates, so `few` has one signature for both; `all` with the Karatsuba multiplier
gives that of `one` (three minutes, not run here). Tables are the same bytes with any multiplier and number of adders.
The multipliers' own test signs the products modulo P, so that both have one signature.
"""
import json
import pathlib
import re
import subprocess
import sys

RUNS = {"multiplier_karatsuba": ("multiplier_test",), "multiplier_fios": ("multiplier_test",),
        "two": ("core_test", "all"), "one": ("core_test", "all"), "karatsuba": ("core_test", "few"), "fios": ("core_test", "few"),
        "tables_two": ("precompute_test", "all"), "tables_one": ("precompute_test", "all"),
        "tables_karatsuba": ("precompute_test", "few"), "tables_fios": ("precompute_test", "few")}
SIGNATURES = pathlib.Path(__file__).parent.parent / "sim/core/signatures.json"


def main():
    build, wanted = pathlib.Path(sys.argv[1]), sys.argv[2:] or list(RUNS)
    if unknown := [name for name in wanted if name not in RUNS]:
        sys.exit(f"error: no simulation {unknown[0]}; there are {' '.join(RUNS)}")
    signatures = json.loads(SIGNATURES.read_text()) if SIGNATURES.exists() else {}
    passed = failed = 0
    for name in wanted:
        program, *command = RUNS[name]
        signature = [signatures[name]] if name in signatures else []
        run = subprocess.run([build / name / program, *command, *signature], capture_output=True, text=True)
        print(f"{name}:\n{run.stdout}{run.stderr}", end="")
        counts = re.search(r"(\d+) passed, (\d+) failed", run.stdout)
        if counts:
            passed, failed = passed + int(counts[1]), failed + int(counts[2])
        if not counts or run.returncode and not int(counts[2]):
            failed += 1
        if not signature:
            print(f"{name} has no signature in {SIGNATURES.name}")
            failed += 1
    print(f"{passed} passed, {failed} failed")
    return failed != 0


sys.exit(main())
