#!/usr/bin/env python3
"""Makes blobs.txt, cells.txt and random.blob beside this file: known answers for the tests.

    git clone https://github.com/ethereum/c-kzg-4844 && python3 make.py c-kzg-4844

They are the consensus specification's vectors for verify_blob_kzg_proof and
verify_cell_kzg_proof_batch, as c-kzg-4844 has them in its folder `tests` (Apache-2.0), without the
YAML and with repeated field elements written once. Left out: two of three random blobs, the seven
cases with all 128 cells of a blob, and cases whose lists differ in length, which a list of cells
cannot express.

A line is a case: its name; `true`, `false`, or `null` where the specification refuses the input; for
each proof the cell's index (not for blobs), commitment, proof and data. Data are segments
HEX*COUNT or FILE:BYTES (so many of its bytes), separated by commas.
"""

import pathlib
import re
import sys

HERE = pathlib.Path(__file__).parent
RANDOM_CASE = "correct_proof_2"
ELEMENT_DIGITS = 64


def cases(folder):
    for path in sorted(folder.glob("*/*/data.yaml")):
        name = re.sub(r"^verify_(blob_kzg_proof|cell_kzg_proof_batch)_case_", "", path.parent.name)
        yield name, path.read_text()


def values(text, key):
    """The values of a key: one, or a list in either of YAML's forms. All are numbers or hex."""
    after = re.search(rf"^ *{key}:(.*(?:\n *- .*)*)", text, re.M).group(1)
    return re.findall(r"0x([0-9a-f]*)|\b(\d+)\b", after)


def hexes(text, key):
    return [digits for digits, _ in values(text, key)]


def segments(data):
    """Repeated field elements as one."""
    runs = []
    for at in range(0, len(data), ELEMENT_DIGITS):
        element = data[at : at + ELEMENT_DIGITS]
        if runs and runs[-1][0] == element:
            runs[-1][1] += 1
        else:
            runs.append([element, 1])
    return ",".join(f"{element}*{count}" for element, count in runs)


def output(text):
    return re.search(r"^output: (true|false|null)", text, re.M).group(1)


def blobs(folder):
    everything = dict(cases(folder))
    random = hexes(everything[RANDOM_CASE], "blob")[0]
    (HERE / "random.blob").write_bytes(bytes.fromhex(random))
    for name, text in everything.items():
        blob = hexes(text, "blob")[0]
        if blob.startswith(random[:-2]):
            rest = blob[len(random) :]
            data = f"random.blob:{min(len(blob), len(random)) // 2}" + (f",{rest}*1" if rest else "")
        elif len(set(re.findall("." * ELEMENT_DIGITS, blob))) > 100:
            continue
        else:
            data = segments(blob)
        yield " ".join([name, output(text), hexes(text, "commitment")[0], hexes(text, "proof")[0], data])


def cells(folder):
    for name, text in cases(folder):
        indices = [number for _, number in values(text, "cell_indices")]
        lists = [indices, *(hexes(text, key) for key in ("commitments", "proofs"))]
        data = [segments(cell) for cell in hexes(text, "cells")]
        if len({len(one) for one in [*lists, data]}) != 1 or re.fullmatch(r"valid_\d", name):
            continue
        fields = [field for proof in zip(*lists, data) for field in proof]
        yield " ".join([name, output(text), *fields])


tests = pathlib.Path(sys.argv[1]) / "tests"
for name, lines in [
    ("blobs.txt", blobs(tests / "verify_blob_kzg_proof")),
    ("cells.txt", cells(tests / "verify_cell_kzg_proof_batch")),
]:
    lines = list(lines)
    (HERE / name).write_text("".join(line + "\n" for line in lines))
    print(f"{name}: {len(lines)} cases")
