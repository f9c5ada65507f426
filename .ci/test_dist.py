#!/usr/bin/env python3
"""Tests of dist.py with a real program: two releases of it are the same bytes, and hold what they should."""

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import dist
import sbom

REPOSITORY = Path(__file__).resolve().parent.parent


def made(program, folder, mask):
    """A release in `folder`, by a process with another mask and another folder for what is temporary."""
    temporary = folder / "tmp"
    temporary.mkdir(parents=True)
    os.umask(mask)
    command = [sys.executable, "-B", dist.__file__, "--program", program, "--out", folder / "out"]
    subprocess.run(command, check=True, env=os.environ | {"TMPDIR": str(temporary)}, stdout=subprocess.DEVNULL)
    return {path.name: path.read_bytes() for path in (folder / "out").iterdir()}


def check_bill(bill):
    """What is wrong with a bill of materials, beside what its making refuses."""
    parts = {part["bom-ref"]: part for part in [bill["metadata"]["component"], *bill["components"]]}
    if len(parts) != len(bill["components"]) + 1:
        yield "the bill of materials names a crate twice"
    edges = {entry["ref"]: entry["dependsOn"] for entry in bill["dependencies"]}
    if edges.keys() != parts.keys():
        yield "the bill of materials has other crates than dependencies"
    reached, waiting = set(), [bill["metadata"]["component"]["bom-ref"]]
    while waiting:
        part = waiting.pop()
        if part not in reached:
            reached.add(part)
            waiting += edges[part]
    if reached != parts.keys():
        yield f"nothing uses {sorted(parts.keys() - reached)}"
    allowed = set(re.findall(r'"([^"]+)"', re.search(r"^allow = \[(.+)\]", (REPOSITORY / "deny.toml").read_text(), re.MULTILINE)[1]))
    for part in parts.values():
        expression = part["licenses"][0]["expression"]
        if not licence_allowed(expression, allowed):
            yield f"{part['name']}: {expression} is not allowed by deny.toml"
        if "hashes" not in part and not part["name"].startswith("proofmill"):
            yield f"{part['name']} has no checksum"


def licence_allowed(expression, allowed):
    """Whether an SPDX expression can be met with the licences in `allowed`."""
    words = re.findall(r"\(|\)|[^\s()]+(?: WITH [^\s()]+)?", expression)

    def either():
        result = both()
        while words and words[0] == "OR":
            words.pop(0)
            result = both() or result
        return result

    def both():
        result = one()
        while words and words[0] == "AND":
            words.pop(0)
            result = one() and result
        return result

    def one():
        word = words.pop(0)
        if word == "(":
            result = either()
            words.pop(0)
            return result
        return word in allowed

    return either()


def check(program):
    with tempfile.TemporaryDirectory(prefix="dist-test-") as place:
        first, second = (made(program, Path(place, name), mask) for name, mask in (("a", 0o022), ("longer-name", 0o077)))
        if first != second:
            yield f"two releases differ: {[name for name in first if first[name] != second.get(name)]}"
        sums = dict(reversed(line.split("  ")) for line in first.pop("SHA256SUMS").decode().split("\n") if line)
        if sums != {name: hashlib.sha256(content).hexdigest() for name, content in first.items()}:
            yield "SHA256SUMS is not that of the files"
        names = sorted(first)
        [whole] = [name for name in names if name.endswith(".tar.gz")]
        [bill] = [name for name in names if name.endswith(".cdx.json")]
        yield from check_bill(json.loads(first[bill]))
        yield from check_archive(Path(place, "a/out", whole), Path(place), program)
        [chart] = [name for name in names if name.endswith(".tgz")]
        with tarfile.open(Path(place, "a/out", chart)) as tar:
            inside = {member.name: member for member in tar.getmembers()}
            for name in ("proofmill/Chart.yaml", "proofmill/values.schema.json", "proofmill/files/cluster.conf"):
                if name not in inside or not inside[name].isreg():
                    yield f"{chart} has no file {name}"
            if any("/ci/" in name for name in inside):
                yield f"{chart} has what .helmignore names"


def check_archive(path, place, program):
    with tarfile.open(path) as tar:
        members = tar.getmembers()
        names = [member.name for member in members]
        root = path.name.removesuffix(".tar.gz")
        # Folders and files are each sorted, and the former come first.
        files = [member.name for member in members if member.isreg()]
        if files != sorted(files) or len(set(names)) != len(names) or not all(name == root or name.startswith(root + "/") for name in names):
            yield f"{path.name}: not sorted, twice the same, or outside of its folder"
        if {(member.uid, member.gid, member.uname) for member in members} != {(0, 0, "")} or len({m.mtime for m in members}) != 1:
            yield f"{path.name}: owners or times that are not the same"
        tar.extractall(place, filter="data")
    folder = place / root
    shown = subprocess.run([folder / "bin/proofmill", "--version"], capture_output=True, check=True).stdout
    if shown != subprocess.run([program, "--version"], capture_output=True, check=True).stdout:
        yield "the program in the archive is another one"
    pages = {page.name for page in (folder / "share/man/man1").iterdir()}
    if not {"proofmill.1", "proofmill-run.1", "proofmill-engine-serve.1"} <= pages:
        yield f"manual pages are missing: {sorted(pages)}"
    completions = folder / dist.SHELLS["bash"]
    if subprocess.run(["bash", "-n", completions], check=False).returncode:
        yield "the completions are no script of bash"
    for name in ("systemd/proofmill.service", "nats/cluster.conf", "compose/compose.yaml", "grafana/chain.json"):
        if not (folder / "share/proofmill" / name).is_file():
            yield f"share/proofmill/{name} is not in the archive"
    if not os.access(folder / "share/proofmill/compose/prepare.sh", os.X_OK):
        yield "prepare.sh cannot be run"
    if "MIT" not in (folder / "share/doc/proofmill/licences.txt").read_text():
        yield "no licences of the crates"


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--program", type=Path, required=True)
    program = options.parse_args().program.resolve()
    assert licence_allowed("(MIT OR X) AND (Y OR Zlib)", {"MIT", "Zlib"}) and not licence_allowed("MIT AND X", {"MIT"})
    for broken in ({"license": None}, {"license": ""}):
        try:
            sbom.licence({"name": "a", "version": "1"} | broken)
            raise AssertionError("a crate without a licence is accepted")
        except ValueError:
            pass
    faults = list(check(program))
    for fault in faults:
        print(f"FAILED {fault}")
    print(f"two releases, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
