#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs test programs one after another and prints one line at the end: 'N passed, N failed'.

Usage: run_tests.py "NAME=COMMAND" ... Each program ends its output with such a line of its own; one that does not, or that
ends with another code than its line says, counts as a failure.
"""
import re
import shlex
import subprocess
import sys
import time


def main():
    passed = failed = 0
    for argument in sys.argv[1:]:
        name, _, command = argument.partition("=")
        began = time.monotonic()
        run = subprocess.run(shlex.split(command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        counts = re.findall(r"(\d+) passed, (\d+) failed", run.stdout)
        print(f"-- {name} ({time.monotonic() - began:.0f} s)\n{run.stdout}", end="", flush=True)
        good, bad = map(int, counts[-1]) if counts else (0, 0)
        if not counts or (run.returncode != 0) != (bad != 0) or good + bad == 0:
            print(f"FAILED: {name} ended with code {run.returncode} and without a matching count")
            bad += 1
        passed, failed = passed + good, failed + bad
    print(f"{passed} passed, {failed} failed")
    return failed != 0


sys.exit(main())
