#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""A stock Debian kernel with nvme-tcp and nvme-cli, in QEMU, multiplies points on the device by both personalities.

Usage: run.py --proofmill PROGRAM [--rtl SIMULATOR] [--log-n N] [--host-program] [--seconds N]

The device is what `proofmill zkpu serve` serves: the functional model, or the simulated circuit with --rtl. guest.sh is
what the guest does. product.py makes the points and the scalars, and compares each result. Exits with 1 on any
difference, 0 where all is right, and says "skipped" where Debian's packages cannot be had.
"""
import argparse
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import initramfs  # noqa: E402
import packages  # noqa: E402
import product  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGES = os.path.join(HERE, "..", "build", "linux")
WINDOW, LEVELS, SEED = 10, 1, 21
# The tag that guest.sh gives its job, and the job table's state of a job that is done.
JOB_TAG, JOB_DONE = 4711, 3
MEMORY = "16MiB"
# Where guest.sh puts them by the compute personality: scalars, table, result.
AREAS = [8 << 20, 9 << 20, 14 << 20]


class Failed(Exception):
    """The test fails, for this reason."""


def ranges(areas, lengths):
    """Descriptors of memory ranges: namespace 2, length and first byte; lengths are multiples of 64."""
    pairs = zip(areas, lengths)
    return b"".join(struct.pack("<IIQ16x", 2, (length + 63) // 64 * 64, first) for first, length in pairs)


def serve(arguments):
    """The target's process, its port and its subsystem."""
    command = [arguments.proofmill, "zkpu", "serve", "--listen", "127.0.0.1:0", "--memory", MEMORY]
    if arguments.rtl:
        command += ["--rtl", arguments.rtl]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        found = re.search(r"on 127\.0\.0\.1:(\d+), subsystem (\S+)", line)
        if found:
            print("host:", line.strip())
            # What else it says is shown as it comes.
            threading.Thread(target=lambda: sys.stderr.writelines(process.stderr), daemon=True).start()
            return process, found.group(1), found.group(2)
        sys.stderr.write(line)
    raise Failed("`proofmill zkpu serve` ended before it served")


def emulator():
    """The emulator's command and its environment: this machine's, or the unpacked one with its libraries."""
    if shutil.which("qemu-system-x86_64"):
        return ["qemu-system-x86_64"], dict(os.environ)
    root = os.path.join(PACKAGES, "host", "usr")
    libraries = [os.path.join(PACKAGES, "host", folder) for folder in initramfs.LIBRARY_FOLDERS]
    environment = dict(os.environ, LD_LIBRARY_PATH=":".join(libraries), QEMU_MODULE_DIR=os.path.join(libraries[1], "qemu"))
    program = os.path.join(root, "bin", "qemu-system-x86_64")
    data = [os.path.join(root, "share", "seabios"), os.path.join(root, "share", "qemu")]
    return [program, *[part for folder in data for part in ("-L", folder)]], environment


def boot(kernel, archive, log, seconds):
    """Runs the guest to its end; gives the lines that are for this program."""
    command, environment = emulator()
    # The guest's clock counts its instructions, so that a busy machine does not make its timers expire too soon.
    command += ["-machine", "q35", "-accel", "tcg", "-icount", "shift=2", "-cpu", "max", "-m", "512", "-nographic", "-no-reboot", "-nodefaults",
                "-serial", "stdio", "-kernel", kernel, "-initrd", archive,
                "-append", "console=ttyS0 loglevel=4 panic=-1 random.trust_cpu=on",
                "-netdev", "user,id=net0", "-device", "virtio-net-pci,netdev=net0,romfile="]
    guest = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    timer = threading.Timer(seconds, guest.kill)
    timer.start()
    lines = []
    with open(log, "wb") as file:
        for line in guest.stdout:
            file.write(line)
            file.flush()
            text = line.decode(errors="replace").strip()
            if text.startswith("zkpu: "):
                lines.append(text[6:])
                if not text.startswith(("zkpu: result", "zkpu: jobs")):
                    print("guest:", text[6:], flush=True)
    timer.cancel()
    guest.wait()
    return lines


def check_jobs(lines, count):
    """The job of the memory personality is in the job table, is done, and has the tag and the count of guest.sh."""
    page = bytes.fromhex(next(line.split()[1] for line in lines if line.startswith("jobs ")))
    entries = [page[at : at + 64] for at in range(64, len(page), 64)]
    if not any(struct.unpack_from("<IIB3xI", entry)[1:] == (JOB_TAG, JOB_DONE, count) for entry in entries):
        raise Failed("the job table has no such job that is done")


def check(lines, made, count):
    """Compares the results that the guest printed with this machine's."""
    if any(line.startswith("jobs ") for line in lines):
        check_jobs(lines, count)
    missing = []
    for personality in ["memory", "compute"]:
        found = [line.split()[2] for line in lines if line.startswith(f"result {personality} ")]
        if len(found) != 1 or len(found[0]) != 2 * product.RESULT_BYTES:
            missing.append(personality)
            continue
        difference = made.difference(bytes.fromhex(found[0]))
        if difference:
            raise Failed(f"the {personality} personality's result is wrong: {difference}")
        print(f"host: the {personality} personality's result is the sum of {count} products")
    failed = [line.removeprefix("FAILED: ") for line in lines if line.startswith("FAILED")]
    if failed or not lines or lines[-1] != "DONE":
        raise Failed(failed[0] if failed else "the guest did not come to its end")
    if missing:
        raise Failed(f"the guest printed no result of: {', '.join(missing)}")


def run(arguments):
    packages.fetch(PACKAGES)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        count, made = 1 << arguments.log_n, product.Product(arguments.log_n, SEED)
        target, port, subsystem = serve(arguments)
        try:
            parameters = {"PORT": port, "NQN": subsystem, "COUNT": count, "WINDOW": WINDOW, "LEVELS": LEVELS,
                          "SCALARS_BYTES": len(made.scalars), "TABLE_BYTES": len(made.table), "HOST_PROGRAM": "1" if arguments.host_program else ""}
            files = {
                "data/parameters": "".join(f"{name}='{value}'\n" for name, value in parameters.items()).encode(),
                "data/scalars": made.scalars,
                "data/table": made.table,
                "data/ranges": ranges(AREAS, [len(made.scalars), len(made.table), product.RESULT_BYTES]),
            }
            guest, archive = os.path.join(PACKAGES, "guest"), os.path.join(folder, "initramfs.gz")
            script = initramfs.read(os.path.join(HERE, "guest.sh"))
            programs = [arguments.proofmill] if arguments.host_program else []
            release = initramfs.build(guest, script, files, archive, programs)
            print(f"host: the initramfs has {os.path.getsize(archive) >> 10} KiB, for kernel {release}")
            log = os.path.join(PACKAGES, "rtl.log" if arguments.rtl else "model.log")
            lines = boot(os.path.join(guest, "boot", f"vmlinuz-{release}"), archive, log, arguments.seconds)
            print(f"host: the guest's console is in {os.path.relpath(log)}")
            if target.poll() is not None:
                raise Failed("the target ended before the guest")
            check(lines, made, count)
        finally:
            target.terminate()
            target.wait()
    kind = "the circuit in RTL" if arguments.rtl else "the functional model"
    print(f"zkpu-linux: right by both personalities on {kind}, {time.monotonic() - began:.0f} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--proofmill", required=True)
    parser.add_argument("--rtl")
    parser.add_argument("--log-n", type=int, default=10, choices=range(1, 13))
    parser.add_argument("--host-program", action="store_true", help="PROGRAM runs in the guest as well, over /dev/nvme0n1")
    parser.add_argument("--seconds", type=int, default=900, help="limit for the guest")
    try:
        run(parser.parse_args())
    except packages.Unavailable as reason:
        print(f"zkpu-linux: skipped, Debian's packages cannot be had: {reason}")
    except Failed as reason:
        print(f"zkpu-linux: FAILED: {reason}")
        return 1
    return 0


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)
    sys.exit(main())
