#!/usr/bin/env python3
"""Builds the workspace's test programs and runs them in two lanes.

Many tests wait: for servers, for processes that are killed, for time limits. Others only compute. One after another
they leave half of two cores idle, so the programs of the two kinds run beside each other, one of each at a time, and
those that compute at the lowest priority, which leaves the others' timing as it is. What a program prints is shown
when it has ended. The exit status is 1 if a program failed.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

# Packages and test programs that only compute.
COMPUTING_PACKAGES = {
    f"proofmill-{name}"
    for name in (
        "accelerator aggregation bitcoin circuits groth16 halo2 ipa kernels kzg mutation partition r1cs".split()
    )
}
COMPUTING_PROGRAMS = {"model", "schedule", "simulation"}
# Begun first, since they take longest.
LONGEST = ["program", "simulation", "proofmill_partition", "log", "pairing", "cluster"]


def build(arguments):
    """The test programs, as (package, target, executable, folder to run it in)."""
    command = ["test", "--no-run", "--message-format=json-render-diagnostics", *arguments]
    built = subprocess.run([os.environ.get("CARGO", "cargo"), *command], stdout=subprocess.PIPE, check=False)
    if built.returncode:
        sys.exit(built.returncode)
    for line in built.stdout.splitlines():
        message = json.loads(line)
        if message.get("reason") == "compiler-artifact" and message["profile"]["test"] and message["executable"]:
            manifest = Path(message["manifest_path"])
            # The package id ends with `#NAME@VERSION`.
            package = message["package_id"].rsplit("#", 1)[-1].split("@")[0]
            yield package, message["target"]["name"], message["executable"], manifest.parent


class Lanes:
    def __init__(self):
        self.failed = []
        self.running = set()
        self.lock = threading.Lock()

    def run(self, programs, niceness):
        for package, target, executable, folder in programs:
            began = time.monotonic()
            environment = {**os.environ, "CARGO_MANIFEST_DIR": str(folder)}
            process = subprocess.Popen(
                ["nice", "-n", str(niceness), executable],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
            with self.lock:
                self.running.add(process)
            output, _ = process.communicate()
            seconds = time.monotonic() - began
            with self.lock:
                self.running.discard(process)
                print(f"     Running {target} of {package} ({seconds:.1f} s)", flush=True)
                sys.stdout.buffer.write(output)
                sys.stdout.buffer.flush()
                if process.returncode:
                    self.failed.append(f"{target} of {package}")

    def stop(self, number, _frame):
        with self.lock:
            for process in self.running:
                process.terminate()
        os._exit(128 + number)


def main():
    programs = list(build(sys.argv[1:]))
    programs.sort(key=lambda program: LONGEST.index(program[1]) if program[1] in LONGEST else len(LONGEST))

    def computes(program):
        return program[0] in COMPUTING_PACKAGES or program[1] in COMPUTING_PROGRAMS

    lanes = Lanes()
    signal.signal(signal.SIGINT, lanes.stop)
    signal.signal(signal.SIGTERM, lanes.stop)
    computing = [program for program in programs if computes(program)]
    waiting = [program for program in programs if not computes(program)]
    threads = [
        threading.Thread(target=lanes.run, args=(programs, niceness))
        for programs, niceness in ((computing, 19), (waiting, 0))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if lanes.failed:
        print(f"error: {len(lanes.failed)} of {len(programs)} test programs failed: {', '.join(lanes.failed)}")
        sys.exit(1)


if __name__ == "__main__":
    main()
