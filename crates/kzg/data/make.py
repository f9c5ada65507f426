#!/usr/bin/env python3
"""Makes setup.bin beside this file: the points of Ethereum's trusted setup that verification needs.

    python3 make.py trusted_setup.txt

trusted_setup.txt is the file of github.com/ethereum/c-kzg-4844, src/trusted_setup.txt (Apache-2.0),
the outcome of the ceremony of 2023. Its lines: 4096 and 65, the numbers of points; 4096 points of G1
in Lagrange form; 65 points of G2, powers of tau; 4096 points of G1, powers of tau.

setup.bin: the first 64 powers of tau in G1 (48 bytes each), tau and tau^64 in G2 (96 bytes each),
compressed as the consensus specification has them.
"""

import hashlib
import pathlib
import sys

SOURCE_SHA256 = "d39b9f2d047cc9dca2de58f264b6a09448ccd34db967881a6713eacacf0f26b7"
CELL_ELEMENTS = 64

source = pathlib.Path(sys.argv[1]).read_bytes()
found = hashlib.sha256(source).hexdigest()
if found != SOURCE_SHA256:
    sys.exit(f"{sys.argv[1]}: SHA-256 {found}: expected {SOURCE_SHA256}")
g1_count, g2_count, *points = source.decode().split()
g1_count, g2_count = int(g1_count), int(g2_count)
assert len(points) == 2 * g1_count + g2_count
g2 = points[g1_count : g1_count + g2_count]
g1 = points[g1_count + g2_count :]
data = bytes.fromhex("".join(g1[:CELL_ELEMENTS] + [g2[1], g2[CELL_ELEMENTS]]))
(pathlib.Path(__file__).parent / "setup.bin").write_bytes(data)
print(f"setup.bin: {len(data)} bytes, SHA-256 {hashlib.sha256(data).hexdigest()}")
