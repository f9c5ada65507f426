#!/usr/bin/env python3
"""Runs a command on a machine that stands still for four seconds, twice a minute: `.ci/with_stalls.py make test`.

Shared machines do that, and a test that compares with a clock then fails without a fault of the product. All
processors are taken at a real-time priority, which needs root or CAP_SYS_NICE. The exit status is the command's.
"""

import os
import random
import subprocess
import sys
import threading

STALL = 4
BETWEEN = (20, 30)
# Above every process that has no real-time priority.
PRIORITY = 50
SPIN = f"import time\nend = time.monotonic() + {STALL}\nwhile time.monotonic() < end: pass"


def at_real_time():
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))


def stall():
    spinners = [
        subprocess.Popen([sys.executable, "-c", SPIN], preexec_fn=at_real_time) for _ in os.sched_getaffinity(0)
    ]
    for spinner in spinners:
        spinner.wait()


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__.strip())
    try:
        at_real_time()
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    except PermissionError:
        sys.exit("error: taking all processors needs root or CAP_SYS_NICE")
    ended = threading.Event()

    def stalls():
        while not ended.wait(random.uniform(*BETWEEN)):
            stall()

    thread = threading.Thread(target=stalls)
    thread.start()
    try:
        status = subprocess.run(sys.argv[1:], check=False).returncode
    except KeyboardInterrupt:
        status = 130
    finally:
        ended.set()
        thread.join()
    sys.exit(status if status >= 0 else 128 - status)


if __name__ == "__main__":
    main()
