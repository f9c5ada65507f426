#!/usr/bin/env python3
"""Builds the workspace's test programs and runs them in two lanes, the tests of the simulated hardware beside them.

Many tests wait: for servers, for processes that are killed, for time limits. Others only compute. One after another
they leave half of two cores idle, so the programs of the two kinds run beside each other, one of each at a time, and
those that compute at the lowest priority, which leaves the others' timing as it is. The hardware's tests, which compute
too, begin with the build and take what it leaves. What a program prints is shown when it has ended. One that does not end
is killed after an hour, and has failed. The exit status is 1 if a program failed.
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
# The tests of the simulated hardware, whose last line counts as the Rust runner's lines do.
HARDWARE = ["make", "--no-print-directory", "zkpu-test"]
# Longest run of a program, in seconds.
LONGEST_RUN = 3600
# Time for a program's last output after its end, in seconds: a process that it left behind may hold the pipe for longer.
LAST_OUTPUT = 5
# Time between two looks at whether a program has ended, in seconds.
PAUSE = 0.05
# Programs whose processor time is shown at the end.
LONGEST_SHOWN = 12
# Begun first, since they take longest.
LONGEST = ["program", "simulation", "proofmill_partition", "log", "pairing", "cluster"]


def build(arguments, lanes):
    """The test programs, as (package, target, executable, folder to run it in)."""
    command = ["test", "--no-run", "--message-format=json-render-diagnostics", *arguments]
    built = subprocess.run([os.environ.get("CARGO", "cargo"), *command], stdout=subprocess.PIPE, check=False)
    if built.returncode:
        lanes.stop(built.returncode)
    for line in built.stdout.splitlines():
        message = json.loads(line)
        if message.get("reason") == "compiler-artifact" and message["profile"]["test"] and message["executable"]:
            manifest = Path(message["manifest_path"])
            # The package id ends with `#NAME@VERSION`.
            package = message["package_id"].rsplit("#", 1)[-1].split("@")[0]
            yield package, message["target"]["name"], message["executable"], manifest.parent


def give_way(process, niceness):
    """Linux gives each session an equal share of the processors; niceness counts within a session only. So the session
    of the process is given the niceness too, where the system has such shares."""
    try:
        Path(f"/proc/{process.pid}/autogroup").write_text(str(niceness), encoding="ascii")
    except OSError:
        # There are none, or the process has ended.
        pass


class Output:
    """What a program prints, read by a thread until every process has closed the pipe."""

    def __init__(self, pipe):
        self.pipe = pipe
        self.chunks = []
        # It ends with this process at the latest.
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        # Past the pipe's buffer: its lock would be held for as long as the pipe is open.
        while chunk := os.read(self.pipe.fileno(), 1 << 16):
            self.chunks.append(chunk)

    def after_the_end(self):
        """What was printed, and whether a process has the pipe open still."""
        self.reader.join(LAST_OUTPUT)
        return b"".join(self.chunks), self.reader.is_alive()


def wait(process):
    """Waits for the end of a process, or ends it and its group. Returns its status, its use of resources and whether it
    took too long."""
    deadline = time.monotonic() + LONGEST_RUN
    is_late = False
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status), usage, is_late
        if not is_late and time.monotonic() > deadline:
            is_late = True
            os.killpg(process.pid, signal.SIGKILL)
        time.sleep(PAUSE)


class Lanes:
    def __init__(self):
        self.failed = []
        self.ran = []
        self.running = set()
        self.lock = threading.Lock()

    def run(self, programs, niceness):
        for package, target, executable, folder in programs:
            environment = {**os.environ, "CARGO_MANIFEST_DIR": str(folder)}
            self.run_one(f"{target} of {package}", [executable], niceness, cwd=folder, env=environment)

    def run_one(self, name, command, niceness, **options):
        began = time.monotonic()
        # A group of its own, so that what a make started can be ended with it.
        process = subprocess.Popen(
            ["nice", "-n", str(niceness), *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            **options,
        )
        give_way(process, niceness)
        with self.lock:
            self.running.add(process)
        output = Output(process.stdout)
        process.returncode, usage, is_late = wait(process)
        output, is_open = output.after_the_end()
        seconds = time.monotonic() - began
        processor = usage.ru_utime + usage.ru_stime
        with self.lock:
            self.running.discard(process)
            self.ran.append((processor, name))
            print(f"     Running {name} ({seconds:.1f} s, {processor:.1f} s of processor time)", flush=True)
            sys.stdout.buffer.write(output)
            sys.stdout.buffer.flush()
            if is_open:
                print(f"warning: a process that {name} started runs on", flush=True)
            if is_late:
                print(f"error: {name} has not ended within {LONGEST_RUN} s, and was killed", flush=True)
            if process.returncode:
                self.failed.append(name)

    def stop(self, status):
        with self.lock:
            for process in self.running:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGTERM)
            os._exit(status)


def main():
    lanes = Lanes()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _frame: lanes.stop(128 + number))
    # A make of its own, without the flags and jobs of the one that runs this.
    alone = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    hardware = threading.Thread(target=lanes.run_one, args=("zkpu-test", HARDWARE, 19), kwargs={"env": alone})
    hardware.start()
    programs = list(build(sys.argv[1:], lanes))
    programs.sort(key=lambda program: LONGEST.index(program[1]) if program[1] in LONGEST else len(LONGEST))

    def computes(program):
        return program[0] in COMPUTING_PACKAGES or program[1] in COMPUTING_PROGRAMS

    computing = [program for program in programs if computes(program)]
    waiting = [program for program in programs if not computes(program)]
    threads = [
        threading.Thread(target=lanes.run, args=(programs, niceness))
        for programs, niceness in ((computing, 19), (waiting, 0))
    ]
    for thread in threads:
        thread.start()
    for thread in [*threads, hardware]:
        thread.join()
    longest = sorted(lanes.ran, reverse=True)[:LONGEST_SHOWN]
    print("Most processor time:", ", ".join(f"{name} {processor:.0f} s" for processor, name in longest))
    if lanes.failed:
        print(f"error: {len(lanes.failed)} of {len(lanes.ran)} test programs failed: {', '.join(lanes.failed)}")
        sys.exit(1)


if __name__ == "__main__":
    main()
