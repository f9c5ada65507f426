"""Containers without a cluster: processes of this machine, each in a root of its own.

A container gets what Kubernetes and compose would give it: a read-only root with the programs of this machine, the volumes at
their places with the owners and modes that a kubelet gives them, one user without rights, and its variables. What is not
there: a network of its own (all share loopback, in a network namespace of their own), limits of memory, and the image.

It needs Linux, root, `unshare` and `mount`.
"""

import fcntl
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

# Set where this process has a network of its own.
ISOLATED = "PROOFMILL_DEPLOYED_ISOLATED"


@dataclass
class Container:
    name: str
    command: list
    environment: dict
    # Folder of the container to (folder or file of this machine, whether it may be written).
    mounts: dict
    user: int
    group: int
    # Groups beside that, and folders in memory with their modes.
    groups: list = field(default_factory=list)
    memory: dict = field(default_factory=dict)
    folder: str = "/"


def why_not():
    """Why containers cannot be run here; None if they can."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "only root of a Linux machine may"
    for tool in ("unshare", "mount"):
        if not shutil.which(tool):
            return f"{tool} is not installed"
    if subprocess.run(["unshare", "--net", "--mount", "true"], stderr=subprocess.DEVNULL, check=False).returncode:
        return "namespaces are not allowed here"
    return None


def isolate():
    """Goes on in namespaces of its own for the network, for processes and for mounts, with loopback alone."""
    if os.environ.get(ISOLATED):
        raise_loopback()
        return
    os.environ[ISOLATED] = "yes"
    own = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    os.execvp(own[0], [*own, sys.executable, "-B", *sys.argv])


def raise_loopback():
    """Brings the loopback interface up: it is down where a network was just made."""
    up, get, put = 0x1, 0x8913, 0x8914
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        request = struct.pack("16sH14x", b"lo", 0)
        flags = struct.unpack("16sH14x", fcntl.ioctl(sock, get, request))[1]
        fcntl.ioctl(sock, put, struct.pack("16sH14x", b"lo", flags | up))


class Host:
    """Runs containers, and ends them."""

    def __init__(self, folder, programs, names):
        """Containers find `programs` (name to path) on their path, and hosts by `names` (name to address)."""
        self.folder = Path(folder)
        self.programs = self.folder / "programs"
        self.programs.mkdir()
        for name, path in programs.items():
            shutil.copy(path, self.programs / name)
            (self.programs / name).chmod(0o755)
        self.hosts = self.folder / "hosts"
        self.hosts.write_text("".join(f"{address} {name}\n" for name, address in names.items()))
        self.running = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process, _ in self.running.values():
            if process.poll() is None:
                process.kill()
                process.wait()

    def start(self, container):
        specification = asdict(container) | {"programs": str(self.programs), "hosts": str(self.hosts)}
        file = self.folder / f"{container.name}.json"
        file.write_text(json.dumps(specification))
        log = self.folder / f"{container.name}.log"
        with open(log, "ab") as out:
            command = ["unshare", "--mount", sys.executable, "-B", __file__, str(file)]
            self.running[container.name] = (subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT), log)

    def run(self, container, timeout=60):
        """Runs one to its end: its exit status, and what it printed."""
        self.start(container)
        process, log = self.running.pop(container.name)
        process.wait(timeout)
        return process.returncode, log.read_text(errors="replace")

    def log(self, name):
        return self.running[name][1].read_text(errors="replace")

    def check_running(self):
        for name, (process, log) in self.running.items():
            if process.poll() is not None:
                raise RuntimeError(f"{name} ended with {process.returncode}:\n{log.read_text(errors='replace')}")

    def kill(self, name):
        process, _ = self.running.pop(name)
        process.kill()
        process.wait()

    def stop(self, name, limit):
        """SIGTERM: the exit status. A container that does not end within `limit` seconds is an error."""
        process, log = self.running.pop(name)
        process.send_signal(signal.SIGTERM)
        try:
            return process.wait(limit)
        except subprocess.TimeoutExpired:
            process.kill()
            raise RuntimeError(f"{name} did not end within {limit} s:\n{log.read_text(errors='replace')}") from None


def wait_for(what, holds, host, limit=60):
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        if holds():
            return
        host.check_running()
        time.sleep(0.1)
    logs = "\n".join(f"--- {name}\n{host.log(name)}" for name in host.running)
    raise RuntimeError(f"{what}: not within {limit} s\n{logs}")


# --- Inside of the container


def mount(*arguments):
    subprocess.run(["mount", *map(str, arguments)], check=True)


def enter(specification):
    """Builds the root, gives up all rights and runs the command."""
    root = Path("/mnt")
    mount("--make-rprivate", "/")
    mount("-t", "tmpfs", "-o", "mode=0755", "tmpfs", root)
    for name in ("usr", "etc", "proc", "dev", "programs"):
        (root / name).mkdir()
    for name in ("bin", "lib", "lib64", "sbin"):
        if Path("/", name).is_symlink():
            (root / name).symlink_to(os.readlink(f"/{name}"))
        elif Path("/", name).is_dir():
            (root / name).mkdir()
            bind(f"/{name}", root / name, writable=False)
    bind("/usr", root / "usr", writable=False)
    for name in ("proc", "dev"):
        mount("--rbind", f"/{name}", root / name)
    bind(specification["programs"], root / "programs", writable=False)
    shutil.copy(specification["hosts"], root / "etc/hosts")
    for place, mode in specification["memory"].items():
        target = root / place.lstrip("/")
        target.mkdir(parents=True)
        mount("-t", "tmpfs", "-o", f"mode={mode},uid={specification['user']},gid={specification['group']}", "tmpfs", target)
    for place, (source, writable) in sorted(specification["mounts"].items()):
        target = root / place.lstrip("/")
        if Path(source).is_dir():
            target.mkdir(parents=True, exist_ok=True)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.touch()
        bind(source, target, writable)
    mount("-o", "remount,ro", root)
    os.chroot(root)
    os.chdir(specification["folder"])
    os.setgroups(specification["groups"])
    os.setresgid(*[specification["group"]] * 3)
    os.setresuid(*[specification["user"]] * 3)
    variables = {"PATH": "/programs:/usr/bin:/bin"} | specification["environment"]
    os.execvpe(specification["command"][0], specification["command"], variables)


def bind(source, target, writable):
    mount("--bind", source, target)
    if not writable:
        mount("-o", "remount,bind,ro", target)


if __name__ == "__main__":
    enter(json.loads(Path(sys.argv[1]).read_text()))
