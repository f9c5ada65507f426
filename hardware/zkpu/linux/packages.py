# SPDX-License-Identifier: MIT OR Apache-2.0
"""Debian's packages for the guest and for the emulator, downloaded and unpacked into a folder; nothing is installed."""
import os
import shutil
import subprocess

GUEST = ["nvme-cli", "busybox-static"]
# What nvme-cli's program is linked with; what they need comes with them.
GUEST_LIBRARIES = ["libnvme1", "libjson-c5", "zlib1g"]
EMULATOR = "qemu-system-x86"


class Unavailable(Exception):
    """Debian's packages cannot be had here."""


def output(*command):
    done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ, LC_ALL="C"))
    if done.returncode != 0:
        raise Unavailable(f"{' '.join(command[:4])}: {(done.stderr.strip().splitlines() or ['failed'])[-1]}")
    return done.stdout


def closure(names):
    """Names of packages and of all that they depend on."""
    kinds = ["recommends", "suggests", "conflicts", "breaks", "replaces", "enhances"]
    lines = output("apt-cache", "depends", "--recurse", *[f"--no-{kind}" for kind in kinds], *names).splitlines()
    return sorted({line for line in lines if line and line[0] not in " <|"})


def kernel():
    """The package of the distribution's kernel, which another package names."""
    lines = output("apt-cache", "depends", "linux-image-amd64").splitlines()
    names = [line.split()[-1] for line in lines if "Depends: linux-image-" in line]
    if not names:
        raise Unavailable("linux-image-amd64 depends on no kernel")
    return names[0]


def emulator():
    """The emulator and those of its libraries that are not installed here."""
    simulated = output("apt-get", "--simulate", "install", "--no-install-recommends", EMULATOR)
    names = [line.split()[1] for line in simulated.splitlines() if line.startswith("Inst ")]
    return names


def unpack(names, folder, downloads):
    """Downloads the packages that are not there yet, and unpacks them."""
    before = set(os.listdir(downloads))
    done = subprocess.run(["apt-get", "download", "--quiet", *names], cwd=downloads, capture_output=True, text=True)
    if done.returncode != 0:
        raise Unavailable("apt-get download: " + (done.stderr.strip().splitlines() or ["failed"])[-1])
    for name in sorted(set(os.listdir(downloads)) - before):
        subprocess.run(["dpkg", "-x", os.path.join(downloads, name), folder], check=True)


def fetch(folder):
    """Fills `folder`/host and `folder`/guest, once."""
    for program in ["apt-get", "apt-cache", "dpkg"]:
        if shutil.which(program) is None:
            raise Unavailable(f"{program} is not there")
    stamp = os.path.join(folder, ".fetched")
    if os.path.exists(stamp):
        return
    shutil.rmtree(folder, ignore_errors=True)
    parts = {
        "host": emulator() if shutil.which("qemu-system-x86_64") is None else [],
        "guest": sorted({*GUEST, *closure(GUEST_LIBRARIES), kernel()}),
    }
    for part, names in parts.items():
        downloads = os.path.join(folder, "downloads", part)
        for made in [downloads, os.path.join(folder, part)]:
            os.makedirs(made)
        if names:
            unpack(names, os.path.join(folder, part), downloads)
    shutil.rmtree(os.path.join(folder, "downloads"))
    open(stamp, "w").close()
