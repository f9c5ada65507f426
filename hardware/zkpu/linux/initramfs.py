# SPDX-License-Identifier: MIT OR Apache-2.0
"""The guest's first file system: busybox, nvme-cli with its libraries, modules, a script and data, as a cpio archive."""
import glob
import gzip
import os
import re
import subprocess
import tempfile

MODULES = ["virtio_pci", "virtio_net", "crc32c_generic", "nvme-tcp"]
LIBRARY_FOLDERS = ["lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu"]
LOADER = "lib64/ld-linux-x86-64.so.2"
APPLETS = ["sh", "mount", "ip", "modprobe", "insmod", "cat", "echo", "sleep", "grep", "sed", "xxd", "dd", "cmp", "ls",
           "poweroff", "seq", "tr", "head", "cut", "test", "timeout", "dmesg", "mkdir", "tail", "uname", "printf", "rm"]


class Archive:
    """An archive of the format newc (070701), which the kernel unpacks."""

    def __init__(self):
        self.bytes, self.inode, self.names = bytearray(), 0, set()

    def entry(self, name, mode, data=b""):
        self.inode += 1
        fields = [self.inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0]
        self.bytes += b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + b"\0"
        self.bytes += b"\0" * (-len(self.bytes) % 4) + data
        self.bytes += b"\0" * (-len(self.bytes) % 4)

    def folder(self, name):
        if name and name not in self.names:
            self.folder(os.path.dirname(name))
            self.names.add(name)
            self.entry(name, 0o040755)

    def file(self, name, data, mode=0o100644):
        self.folder(os.path.dirname(name))
        self.entry(name, mode, data)

    def link(self, name, target):
        self.folder(os.path.dirname(name))
        self.entry(name, 0o120777, target.encode())

    def write(self, path):
        self.entry("TRAILER!!!", 0)
        with gzip.open(path, "wb", compresslevel=1) as out:
            out.write(self.bytes)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def find_library(guest, name):
    for folder in LIBRARY_FOLDERS:
        path = os.path.join(guest, folder, name)
        if os.path.exists(path):
            return path
    raise FileNotFoundError(f"{name}, which the guest's programs need, is in none of the packages")


def needed(path):
    """Names of the libraries that an ELF file asks for."""
    lines = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True).stdout
    return re.findall(r"\(NEEDED\).*\[(.*)\]", lines)


def libraries(guest, program):
    """Paths of the libraries of a program, and of theirs."""
    found, waiting = {}, needed(program)
    while waiting:
        name = waiting.pop()
        if name in found or name.startswith("ld-linux"):
            continue
        found[name] = find_library(guest, name)
        waiting += needed(found[name])
    return found


def without_debug_information(path):
    """A program's bytes without what only a debugger reads: hundreds of megabytes, where the guest has few."""
    with tempfile.NamedTemporaryFile() as stripped:
        subprocess.run(["strip", "--strip-debug", "-o", stripped.name, path], check=True)
        return read(stripped.name)


def add_program(archive, guest, path, name):
    archive.file(name, without_debug_information(path), 0o100755)
    for library, at in libraries(guest, path).items():
        if f"lib/{library}" not in archive.names:
            archive.names.add(f"lib/{library}")
            archive.file(f"lib/{library}", read(at), 0o100755)


def add_modules(archive, guest):
    """Modules with what they depend on, and the table by which modprobe finds them. Gives the kernel's release."""
    release = os.path.basename(glob.glob(os.path.join(guest, "lib/modules/*"))[0])
    root = os.path.join(guest, "lib/modules", release)
    plain = lambda name: name.replace("-", "_")
    paths = {}
    for at in glob.glob(os.path.join(root, "kernel/**/*.ko"), recursive=True):
        paths[plain(os.path.basename(at)[:-3])] = at
    builtin = {plain(os.path.basename(line.strip())[:-3]) for line in open(os.path.join(root, "modules.builtin"))}

    def direct(name):
        found = re.search(rb"\0depends=([^\0]*)", read(paths[name])).group(1).decode()
        return [plain(part) for part in found.split(",") if part]

    def in_order(names, done):
        """Adds the modules and what they depend on to `done`, each after what it depends on."""
        for name in names:
            if name in done or name in builtin and name not in paths:
                continue
            if name not in paths:
                raise FileNotFoundError(f"the kernel has no module {name}")
            in_order(direct(name), done)
            done.append(name)
        return done

    relative = lambda of: os.path.relpath(paths[of], root)
    table = []
    for name in in_order([plain(module) for module in MODULES], []):
        archive.file(f"lib/modules/{release}/{relative(name)}", read(paths[name]))
        # modprobe loads the last of them first.
        others = reversed(in_order(direct(name), []))
        table.append(f"{relative(name)}: {' '.join(relative(other) for other in others)}")
    archive.file(f"lib/modules/{release}/modules.dep", "\n".join(table).encode() + b"\n")
    return release


def build(guest, script, files, path, programs=()):
    """Writes the archive: `script` is the guest's first process, `files` are its data by name, `programs` more programs of
    this machine. Gives the kernel's release."""
    archive = Archive()
    for folder in ["dev", "proc", "sys", "tmp", "etc"]:
        archive.folder(folder)
    busybox = next(at for at in [os.path.join(guest, "bin/busybox"), os.path.join(guest, "usr/bin/busybox")] if os.path.exists(at))
    archive.file("bin/busybox", read(busybox), 0o100755)
    for applet in APPLETS:
        archive.link(f"bin/{applet}", "busybox")
    archive.file(LOADER, read(os.path.realpath(find_library(guest, "ld-linux-x86-64.so.2"))), 0o100755)
    add_program(archive, guest, os.path.join(guest, "usr/sbin/nvme"), "bin/nvme")
    for program in programs:
        add_program(archive, guest, program, "bin/" + os.path.basename(program))
    release = add_modules(archive, guest)
    archive.file("init", script, 0o100755)
    for name, data in files.items():
        archive.file(name, data)
    archive.write(path)
    return release
