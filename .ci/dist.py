#!/usr/bin/env python3
"""Makes the release of one platform in a folder, from a program that is built: an archive with the program, its manual
pages, completions, units and configurations; the chart; the bill of materials; and SHA256SUMS of them all.

The same checkout and the same program give the same bytes: files are sorted, belong to nobody, and have the time of the last
commit (SOURCE_DATE_EPOCH, if that is set). It needs nothing but Python 3.9, git and cargo.
"""

import argparse
import gzip
import hashlib
import io
import json
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import sbom

REPOSITORY = Path(__file__).resolve().parent.parent
CHART = "deploy/helm/proofmill"
SHELLS = {
    "bash": "share/bash-completion/completions/proofmill",
    "fish": "share/fish/vendor_completions.d/proofmill.fish",
    "zsh": "share/zsh/site-functions/_proofmill",
}
# Folders of the checkout, and where the archive has them.
FOLDERS = {
    "deploy/compose": "share/proofmill/compose",
    "deploy/container": "share/proofmill/container",
    "deploy/grafana": "share/proofmill/grafana",
    "deploy/nats": "share/proofmill/nats",
    "deploy/prometheus": "share/proofmill/prometheus",
    "deploy/systemd": "share/proofmill/systemd",
    "docs": "share/doc/proofmill/docs",
    "examples": "share/proofmill/examples",
}
DOCUMENTS = ["CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT", "README.md", "SECURITY.md"]


def run(*command):
    return subprocess.run([str(word) for word in command], cwd=REPOSITORY, check=True, capture_output=True).stdout


def tracked(folder):
    """The files of a folder that git knows, by their paths in it: what lies beside them is not released."""
    listed = run("git", "ls-files", "-z", "--", folder).decode().split("\0")
    return {Path(name).relative_to(folder).as_posix(): REPOSITORY / name for name in listed if name}


def executable(path):
    return bool(path.stat().st_mode & 0o100)


def archive(files, prefix, epoch):
    """A .tar.gz of `files`: path to (bytes, executable)."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
        folders = sorted({f"{prefix}/{parent}".rstrip("/.") for name in files for parent in Path(name).parents})
        for folder in folders:
            tar.addfile(entry(folder, epoch, 0o755, tarfile.DIRTYPE))
        for name, (content, runs) in sorted(files.items()):
            made = entry(f"{prefix}/{name}", epoch, 0o755 if runs else 0o644, tarfile.REGTYPE)
            made.size = len(content)
            tar.addfile(made, io.BytesIO(content))
    squeezed = io.BytesIO()
    # Without a name and a time of its own.
    with gzip.GzipFile(filename="", fileobj=squeezed, mode="wb", compresslevel=6, mtime=0) as file:
        file.write(packed.getvalue())
    return squeezed.getvalue()


def entry(name, epoch, mode, kind):
    made = tarfile.TarInfo(name)
    made.mtime, made.mode, made.type = epoch, mode, kind
    return made


def release_files(program, bill, licences):
    files = {"bin/proofmill": (program.read_bytes(), True)}
    with tempfile.TemporaryDirectory(prefix="dist-") as folder:
        run(program, "man", "--out", folder)
        for page in Path(folder).iterdir():
            files[f"share/man/man1/{page.name}"] = (page.read_bytes(), False)
    for shell, path in SHELLS.items():
        files[path] = (run(program, "completions", shell), False)
    for folder, place in FOLDERS.items():
        for name, path in tracked(folder).items():
            files[f"{place}/{name}"] = (path.read_bytes(), executable(path))
    for name in DOCUMENTS:
        files[f"share/doc/proofmill/{name}"] = ((REPOSITORY / name).read_bytes(), False)
    files["share/doc/proofmill/licences.txt"] = (licences.encode(), False)
    files["share/doc/proofmill/sbom.cdx.json"] = (bill, False)
    return files


def chart_files():
    """The chart, as `helm package` makes it: links are followed, and what .helmignore names is left out."""
    ignored = [line for line in (REPOSITORY / CHART / ".helmignore").read_text().split("\n") if line.endswith("/")]
    return {
        name: (path.read_bytes(), False)
        for name, path in tracked(CHART).items()
        if not any(name.startswith(folder) for folder in ignored)
    }


def make(program, target, out):
    version = re.search(r"^proofmill (\S+)", run(program, "--version").decode())[1]
    metadata = sbom.cargo_metadata(target)
    epoch = sbom.source_epoch()
    bill = (json.dumps(sbom.bill(metadata, (REPOSITORY / "Cargo.lock").read_text(), epoch), indent=1) + "\n").encode()
    name = f"proofmill-{version}-{target}"
    made = {
        f"{name}.tar.gz": archive(release_files(program, bill, sbom.licence_texts(metadata)), name, epoch),
        f"{name}.cdx.json": bill,
        f"proofmill-chart-{version}.tgz": archive(chart_files(), "proofmill", epoch),
    }
    out.mkdir(parents=True, exist_ok=True)
    for file, content in made.items():
        (out / file).write_bytes(content)
    sums = "".join(f"{hashlib.sha256(content).hexdigest()}  {file}\n" for file, content in sorted(made.items()))
    (out / "SHA256SUMS").write_text(sums)
    return sums


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--program", type=Path, required=True, help="the proofmill of this checkout")
    options.add_argument("--target", default=sbom.host(), help="its platform [default: that of rustc]")
    options.add_argument("--out", type=Path, default=REPOSITORY / "dist", help="the folder [default: dist]")
    chosen = options.parse_args()
    try:
        print(make(chosen.program.resolve(), chosen.target, chosen.out), end="")
    except subprocess.CalledProcessError as error:
        print(f"error: {error}\n{error.stderr.decode(errors='replace')}", file=sys.stderr)
        return 1
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
