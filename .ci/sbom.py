#!/usr/bin/env python3
"""Bill of materials of the program: the crates that it is built of, with licences and checksums, as CycloneDX 1.5 (JSON).

It reads `cargo metadata` and Cargo.lock: all that `proofmill` depends on at run time or in its build, for one platform, with
the features that the workspace gives it. The same checkout gives the same bytes. A crate without a licence is an error.
It needs nothing but Python 3.9 and cargo.
"""

import argparse
import datetime
import json
import os
import re
import subprocess
import sys
import uuid
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
PROGRAM = "proofmill"
# Names of files with a crate's licence, or what it asks to be passed on with it.
LICENCE_FILE = re.compile(r"^(licen[cs]e|copying|notice|unlicense|copyright)([-._].*)?$", re.IGNORECASE)


def cargo_metadata(target):
    command = ["cargo", "metadata", "--format-version=1", "--locked", f"--filter-platform={target}"]
    run = lambda command: subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True, text=True).stdout
    metadata = json.loads(run(command))
    # The metadata also names optional crates that a weak feature (`crate?/feature`) mentions and nothing enables.
    tree = run(["cargo", "tree", "--locked", f"--package={PROGRAM}", f"--target={target}", "--edges=normal,build",
                "--prefix=none", "--format={p}"])
    metadata["built"] = {tuple(line.split()[:2]) for line in tree.splitlines() if line}
    return metadata


def checksums(lock):
    """SHA-256 of each crate's archive by (name, version), from the text of Cargo.lock."""
    found = {}
    for block in lock.split("[[package]]")[1:]:
        fields = dict(re.findall(r'^(name|version|checksum) = "([^"]*)"$', block, re.MULTILINE))
        if "checksum" in fields:
            found[fields["name"], fields["version"]] = fields["checksum"]
    return found


def reachable(metadata):
    """The packages that the program is built of, by id, and for each the ids of those it uses. Tests' are left out."""
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    packages = {package["id"]: package for package in metadata["packages"]}
    members = [id for id in metadata["workspace_members"] if packages[id]["name"] == PROGRAM]
    built = metadata.get("built")
    is_built = lambda id: built is None or (packages[id]["name"], "v" + packages[id]["version"]) in built
    used, open_ids = {}, list(members)
    while open_ids:
        id = open_ids.pop()
        if id in used:
            continue
        dependencies = nodes[id]["deps"]
        used[id] = sorted(
            dependency["pkg"] for dependency in dependencies
            if any(kind["kind"] in (None, "build") for kind in dependency["dep_kinds"]) and is_built(dependency["pkg"])
        )
        open_ids += used[id]
    return members[0], {id: packages[id] for id in used}, used


def licence(package):
    """The SPDX expression of a crate's licence. Cargo used to allow `/` for OR."""
    stated = package.get("license")
    if not stated:
        raise ValueError(f"{package['name']} {package['version']} states no licence")
    return stated.replace("/", " OR ").replace("  ", " ")


def reference(package):
    return f"pkg:cargo/{package['name']}@{package['version'].replace('+', '%2B')}"


def component(package, sums, kind="library"):
    made = {
        "type": kind,
        "bom-ref": reference(package),
        "name": package["name"],
        "version": package["version"],
    }
    if package.get("description"):
        made["description"] = " ".join(package["description"].split())
    checksum = sums.get((package["name"], package["version"]))
    if checksum:
        made["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    made["licenses"] = [{"expression": licence(package)}]
    made["purl"] = reference(package)
    if package.get("repository"):
        made["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
    return made


def bill(metadata, lock, epoch):
    sums = checksums(lock)
    root, packages, used = reachable(metadata)
    by_name = lambda id: (packages[id]["name"], packages[id]["version"])
    others = sorted((id for id in packages if id != root), key=by_name)
    made = {
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": datetime.datetime.fromtimestamp(epoch, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": component(packages[root], sums, "application"),
        },
        "components": [component(packages[id], sums) for id in others],
        "dependencies": [
            {"ref": reference(packages[id]), "dependsOn": sorted(reference(packages[other]) for other in used[id])}
            for id in [root, *others]
        ],
    }
    # The same content has the same number.
    made["serialNumber"] = f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(made, sort_keys=True))}"
    return made


def licence_texts(metadata):
    """The licence files of all crates that come from elsewhere, each text once, with the crates that have it."""
    _, packages, _ = reachable(metadata)
    texts, stated = {}, []
    for package in sorted(packages.values(), key=lambda package: (package["name"], package["version"])):
        if not package["source"]:
            continue
        stated.append(f"{package['name']} {package['version']}: {licence(package)}")
        folder = Path(package["manifest_path"]).parent
        for file in sorted(folder.iterdir()):
            if LICENCE_FILE.match(file.name) and file.is_file():
                text = file.read_text(encoding="utf-8", errors="replace").replace("\r\n", "\n").strip()
                texts.setdefault(text, []).append(f"{package['name']} {package['version']}")
    line = "\n" + "=" * 100 + "\n"
    parts = ["Crates that the program is built of, and their licences.\n\n" + "\n".join(stated) + "\n"]
    parts += [f"{', '.join(crates)}\n\n{text}\n" for text, crates in sorted(texts.items(), key=lambda pair: pair[1])]
    return line.join(parts)


def host():
    shown = subprocess.run(["rustc", "-vV"], check=True, capture_output=True, text=True).stdout
    return re.search(r"^host: (.+)$", shown, re.MULTILINE)[1]


def source_epoch():
    """SOURCE_DATE_EPOCH, or the time of the last commit."""
    if "SOURCE_DATE_EPOCH" in os.environ:
        return int(os.environ["SOURCE_DATE_EPOCH"])
    command = ["git", "log", "-1", "--format=%ct"]
    return int(subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True, text=True).stdout)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--target", default=host(), help="the platform, such as x86_64-unknown-linux-gnu")
    chosen = options.parse_args()
    try:
        made = bill(cargo_metadata(chosen.target), (REPOSITORY / "Cargo.lock").read_text(), source_epoch())
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    json.dump(made, sys.stdout, indent=1)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
