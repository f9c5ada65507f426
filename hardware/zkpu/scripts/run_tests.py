#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs test programs, JOBS at a time, and ends with one line for all of them, in the words of Rust's test runner, so that both
can be added up: 'test result: ok. N passed; N failed; 0 ignored; finished in N s'.

Usage: run_tests.py [JOBS] "NAME=COMMAND" ...; JOBS is one for each processor by default. Each program ends its output with 'N passed,
N failed'; one that does not, or that ends with another code than its line says, counts as a failure. Outputs are shown whole, in the
order in which the programs end; those that take longest come first.
"""
import concurrent.futures
import os
import re
import shlex
import subprocess
import sys
import time


def run(argument):
    """One program: its name, how long it ran, its output, and how many of its checks passed and failed."""
    name, _, command = argument.partition("=")
    began = time.monotonic()
    try:
        done = subprocess.run(shlex.split(command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        output, code = done.stdout, done.returncode
    except OSError as error:
        output, code = f"error: {error}\n", 1
    counts = re.findall(r"(\d+) passed, (\d+) failed", output)
    passed, failed = map(int, counts[-1]) if counts else (0, 0)
    if not counts or (code != 0) != (failed != 0) or passed + failed == 0:
        output += f"FAILED: {name} ended with code {code} and without a matching count\n"
        failed += 1
    return name, time.monotonic() - began, output, passed, failed


def main():
    arguments = sys.argv[1:]
    jobs = int(arguments.pop(0)) if arguments and arguments[0].isdigit() else os.cpu_count()
    began = time.monotonic()
    passed = failed = 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for program in concurrent.futures.as_completed([pool.submit(run, argument) for argument in arguments]):
            name, seconds, output, good, bad = program.result()
            print(f"-- {name} ({seconds:.0f} s)\n{output}", end="", flush=True)
            passed, failed = passed + good, failed + bad
    print(f"test result: {'FAILED' if failed else 'ok'}. {passed} passed; {failed} failed; 0 ignored; finished in "
          f"{time.monotonic() - began:.2f}s")
    return failed != 0 or passed == 0


sys.exit(main())
