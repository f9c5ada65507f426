#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Turns a 32-bit little-endian ELF file into the memory image that rtl/soc/soc_sram.sv reads.

Usage: image.py firmware.elf firmware.hex [BYTES]. One line for each 32 bytes, most significant digit first.
"""
import struct
import sys


def main():
    elf = open(sys.argv[1], "rb").read()
    size = int(sys.argv[3]) if len(sys.argv) > 3 else 65536
    assert elf[:6] == b"\x7fELF\x01\x01", "not a 32-bit little-endian ELF file"
    table, = struct.unpack_from("<I", elf, 28)
    entry_bytes, entries = struct.unpack_from("<HH", elf, 42)
    image, used = bytearray(size), 0
    for i in range(entries):
        kind, offset, _, address, file_bytes, memory_bytes = struct.unpack_from("<6I", elf, table + i * entry_bytes)
        if kind != 1:
            continue
        assert address + memory_bytes <= size, "the image does not fit"
        image[address : address + file_bytes] = elf[offset : offset + file_bytes]
        if file_bytes:
            used = max(used, address + file_bytes)
    with open(sys.argv[2], "w") as out:
        for at in range(0, size, 32):
            out.write(image[at : at + 32][::-1].hex() + "\n")
    print(f"{sys.argv[2]}: {used} bytes of code and constants in {size}")


if __name__ == "__main__":
    main()
