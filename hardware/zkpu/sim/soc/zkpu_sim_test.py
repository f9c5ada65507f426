#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Drives zkpu-sim by its frames: identify, writes, a product of one point by 1, its event, a reset, refusals.

Usage: zkpu_sim_test.py ZKPU_SIM FIRMWARE.hex. Ends with 'N passed, N failed'.
"""
import os
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts"))
import constants as curve  # noqa: E402

passed = failed = 0


def check(ok, name):
    global passed, failed
    passed, failed = passed + bool(ok), failed + (not ok)
    if not ok:
        print("FAILED:", name)


class Device:
    def __init__(self):
        self.process = subprocess.Popen([sys.argv[1], sys.argv[2], str(1 << 20)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.tag, self.early = 0, {}

    def send(self, kind, body=b""):
        self.tag += 1
        self.process.stdin.write(struct.pack("<IB3xI", 8 + len(body), kind, self.tag) + body)
        self.process.stdin.flush()
        return self.tag

    def receive(self, tag):
        while tag not in self.early:
            length, = struct.unpack("<I", self.process.stdout.read(4))
            frame = self.process.stdout.read(length)
            kind, got = struct.unpack_from("<B3xI", frame)
            self.early[got] = (kind, frame[8:])
        return self.early.pop(tag)

    def command(self, queue, opcode, nsid=0, dwords=(), data=b"", read=0, cid=None):
        entry = bytearray(64)
        entry[0] = opcode
        if cid is not None:
            struct.pack_into("<H", entry, 2, cid)
        struct.pack_into("<I", entry, 4, nsid)
        for at, value in dict(dwords).items():
            struct.pack_into("<I", entry, 4 * at, value)
        direction = 1 if data else 2 if read else 0
        keeps_id = cid is not None
        return self.send(1, struct.pack("<HBBI", queue, direction, keeps_id, len(data) or read) + bytes(entry) + data)

    def run(self, *arguments, **named):
        kind, body = self.receive(self.command(*arguments, **named))
        assert kind == 129, kind
        dw0, dw1, status, _, count = struct.unpack_from("<IIHHI", body)
        return dw0, dw1, status, body[16 : 16 + count]


def queues_and_identifiers(device):
    # An Abort names a command by the identifier that it kept.
    event = device.command(0, 0x0C, cid=0x4321)
    check(device.receive(device.command(0, 0x0C, cid=0x4321))[0] == 255, "identifier in use")
    check(device.run(0, 8, dwords={10: 0x4321 << 16})[0] == 0, "aborted by its identifier")
    check(struct.unpack_from("<H", device.receive(event)[1], 8)[0] & 0x7FF == 0x007, "abort requested")
    device.run(1, 0x80, 1, {10: 0, 11: 1, 12: 2, 13: 1, 14: 8 | 1 << 8})
    check(device.receive(device.send(8, struct.pack("<H", 1)))[1] == b"\1\0\0\0", "queue renewal")
    check(device.run(1, 0, 1)[2] == 0, "the renewed queue takes commands")
    check(device.receive(device.send(8, struct.pack("<H", 0)))[0] == 255, "the admin queue is not renewed")
    # NVM alone: namespace 2 does not exist. Then disabled: nothing is taken.
    check(device.receive(device.send(2, struct.pack("<I", 0x460001)))[1] == b"\1\0\0\0", "NVM command set alone")
    check(device.run(1, 2, 2, {12: 4}, read=4)[2] & 0x7FF == 0x00B, "namespace 2 does not exist")
    check(device.receive(device.send(2, struct.pack("<I", 0)))[1] == b"\1\0\0\0", "disabled")
    check(device.receive(device.send(3, struct.pack("<I", 0x1C)))[1] == b"\0\0\0\0", "CSTS of a disabled controller")
    check(device.receive(device.command(1, 0, 1))[0] == 255, "commands are refused")
    check(device.receive(device.send(2))[1] == b"\1\0\0\0", "enabled again")


def main():
    device = Device()
    page = device.run(0, 6, dwords={10: 1}, read=4096)[3]
    check(page[3072:3076] == b"ZKPU" and page[24:28] == b"ZKPU", "identify")
    event = device.command(0, 0x0C)
    # One point, the generator, times 5; the table entry made with Python's integers.
    p, r = curve.P, curve.R
    x, y = curve.to_edwards(curve.generator())
    entry = b"".join((v * r % p).to_bytes(48, "little") for v in ((y - x) % p, (y + x) % p, curve.K * x * y % p))
    check(device.run(1, 1, 1, {10: 0, 12: 0}, data=(5).to_bytes(512, "little"))[2] == 0, "write of scalars")
    check(device.run(1, 1, 1, {10: 1, 12: 0}, data=entry.ljust(512, b"\0"))[2] == 0, "write of the table")
    job, _, status, _ = device.run(1, 0x80, 1, {10: 0, 11: 1, 12: 2, 13: 1, 14: 8 | 1 << 8, 15: 3})
    check(status == 0 and job == 1, "start")
    kind, body = device.receive(event)
    check(kind == 129 and struct.unpack_from("<I", body)[0] == 0xC10107, "event")
    result = device.run(2, 2, 1, {10: 2, 12: 0}, read=512)[3]
    rx, ry, rz, rt = (int.from_bytes(result[48 * i : 48 * i + 48], "little") for i in range(4))
    want = curve.to_edwards(curve.w_mul(5, curve.generator()))
    check(rz and (rx * curve.inv(rz) % p, ry * curve.inv(rz) % p) == want and rt * rz % p == rx * ry % p, "result")
    check(device.run(1, 0x80, 1, {13: 0, 14: 8 | 1 << 8})[2] & 0x7FF == 0x1C9, "count 0 is refused")
    event = device.command(0, 0x0C)
    kind, body = device.receive(device.send(2))
    check(kind == 130 and body == b"\1\0\0\0", "reset")
    check(device.receive(event)[0] == 143, "event request dropped by the reset")
    check(device.run(3, 2, 1, {10: 2, 12: 0}, read=512)[3] == result, "memory after the reset")
    check(device.receive(device.send(3, struct.pack("<I", 8)))[1] == struct.pack("<I", 0x20000), "VS")
    check(device.receive(device.send(9))[0] == 255, "unknown request")
    queues_and_identifiers(device)
    check(device.receive(device.send(1, b"short"))[0] == 255, "short command")
    check(device.receive(device.send(6, struct.pack("<Q", 77)))[1] == b"\1\0\0\0", "power cycle")
    check(device.run(0, 6, dwords={10: 1}, read=4096)[3][3112:3120] == struct.pack("<Q", 77), "power-on identifier")
    kind, body = device.receive(device.send(5))
    check(kind == 133 and struct.unpack_from("<I", body, 12)[0] == 0, "status")
    device.send(7)
    check(device.process.wait(10) == 0, "quit")
    print(f"{passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
