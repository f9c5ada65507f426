#!/usr/bin/env python3
"""Runs the commands of README.md, docs/*.md and docs/runbooks/*.md as a reader would, and compares what they print.

Every fence marked `sh` is run, in the order of its page, in a folder that is fresh for the page and has
`examples/` and `deploy/` in it. A fence marked `text` or `json` that follows it directly is what it
prints. What else is to be known stands in HTML comments before a fence, where readers do not see it:

  <!-- docs-check: skip: REASON -->             the fence is not run
  <!-- docs-check: skip "PREFIX": REASON -->    its commands that begin so are not run
  <!-- docs-check: skip page: REASON -->        no fence of the page is run
  <!-- docs-check: needs PROGRAM ... -->        it is run where these programs are; elsewhere it is named
  <!-- docs-check: fails STATUS -->             it ends with this exit status
  <!-- docs-check: before
  COMMANDS -->                                  run before it, in its shell; $REPOSITORY is the checkout,
                                                `end_background` ends what runs beside the page
  <!-- docs-check: after
  COMMANDS -->                                  run after it, in its shell: they fail if it did not do its work
  <!-- docs-check: background "PREFIX" until "TEXT" -->
                                                its commands that begin so run beside the rest of the page,
                                                which goes on once they have printed TEXT
  <!-- docs-check: file NAME -->                its text is written to NAME
  <!-- docs-check: output numbers vary -->      it is printed, with other numbers and spaces
  <!-- docs-check: output -->                   it is printed by the commands of the fence before it, or
                                                by those of its own `before`
  <!-- docs-check: not output: REASON -->       it follows commands, and is not what they print

In stated output `...` or an ellipsis stands for any text, and on a line of its own for any lines. The
lines before and after it are not looked at. Commands have no network but loopback, where the system
allows that to be arranged. A fence should take a minute at most; its commands are ended after five, since a loaded
machine may stall.
"""

import argparse
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from containers import raise_loopback

REPOSITORY = Path(__file__).resolve().parent.parent
# Time after which the commands of one fence are ended, in seconds. What takes over a minute is marked in its page; the
# rest is for machines that stall.
LIMIT = 300
# How long a background command may take to print what is waited for, in seconds.
READY = 120
# Set where this program has made itself a network of its own.
ISOLATED = "PROOFMILL_DOCS_CHECK_ISOLATED"
# Languages of fences with commands, and of fences that may be output.
COMMANDS = {"sh", "bash", "shell"}
OUTPUTS = {"text", "json"}
# Programs of the checkout that `make test` and `make operations-tools` install.
TOOLS = ["crates/nats-server/bin", "crates/cli/tests/circom/node_modules/.bin", "deploy/bin"]

DIRECTIVE = re.compile(r"<!--\s*docs-check:\s*(.*?)\s*-->", re.DOTALL)


class Fault(Exception):
    """Something that is wrong with a page: where, and what."""

    def __init__(self, page, line, what):
        super().__init__(f"{page}:{line}: {what}")


@dataclass
class Fence:
    """A fenced block, and what the comments before it say."""

    line: int
    language: str
    lines: list
    follows: bool
    """Nothing but blank lines and comments stands between this fence and the one before."""
    skip: str = None
    skipped: list = field(default_factory=list)
    needs: list = field(default_factory=list)
    status: int = 0
    before: str = ""
    after: str = ""
    background: list = field(default_factory=list)
    file: str = None
    output: str = None
    """`exact`, `numbers vary`, or `not`."""


# --- Reading a page


def read_page(name, text):
    """The fences of a page, and the reason for which none of them is run."""
    fences, page_skip, pending = [], None, []
    lines = text.split("\n")
    index, follows = 0, False
    while index < len(lines):
        line = lines[index]
        opened = re.match(r"\s*(```+|~~~+)\s*(\S*)", line)
        if opened:
            end = index + 1
            while end < len(lines) and lines[end].strip() != opened[1]:
                end += 1
            if end == len(lines):
                raise Fault(name, index + 1, "the fence is not closed")
            indent = len(line) - len(line.lstrip())
            body = [inner[indent:] for inner in lines[index + 1 : end]]
            fence = Fence(index + 1, opened[2], body, follows)
            for at, directive in pending:
                apply(name, at, directive, fence)
            fences.append(fence)
            pending, index, follows = [], end + 1, True
            continue
        if "<!--" in line:
            end = index
            while end < len(lines) and "-->" not in lines[end]:
                end += 1
            if end == len(lines):
                raise Fault(name, index + 1, "the comment is not closed")
            comment = "\n".join(lines[index : end + 1])
            for directive in DIRECTIVE.findall(comment):
                if directive.startswith("skip page:"):
                    page_skip = directive.removeprefix("skip page:").strip()
                else:
                    pending.append((index + 1, directive))
            index = end + 1
            continue
        if line.strip():
            follows = False
            if pending:
                at, directive = pending[0]
                raise Fault(name, at, f"no fence follows `docs-check: {first_line(directive)}`")
        index += 1
    if pending:
        raise Fault(name, pending[0][0], "no fence follows")
    return fences, page_skip


def apply(name, at, directive, fence):
    """Notes in `fence` what a comment before it says."""
    word, _, rest = directive.partition(" ")
    quoted = re.fullmatch(r'skip "([^"]+)":\s*(\S.*)', directive)
    beside = re.fullmatch(r'background "([^"]+)" until "([^"]+)"', directive)
    if quoted:
        fence.skipped.append((quoted[1], quoted[2]))
    elif beside:
        fence.background.append((beside[1], beside[2]))
    elif directive.startswith("skip:") and directive.removeprefix("skip:").strip():
        fence.skip = directive.removeprefix("skip:").strip()
    elif word == "needs" and rest:
        fence.needs += rest.split()
    elif word == "fails" and rest.isdigit():
        fence.status = int(rest)
    elif word == "file" and rest and not rest.startswith("/") and ".." not in rest:
        fence.file = rest
    elif directive in ("output", "output numbers vary"):
        fence.output = "exact" if directive == "output" else "numbers vary"
    elif directive.startswith("not output:") and directive.removeprefix("not output:").strip():
        fence.output = "not"
    elif directive.startswith("before\n"):
        fence.before += directive.removeprefix("before\n") + "\n"
    elif directive.startswith("after\n"):
        fence.after += directive.removeprefix("after\n") + "\n"
    else:
        raise Fault(name, at, f"`docs-check: {first_line(directive)}` is not known, or has no reason")


def first_line(text):
    return text.split("\n", 1)[0]


# --- Comparing output


def matches(expected, printed, numbers_vary=False):
    """Whether the lines of `expected` stand in `printed`, one after the other."""

    def normal(line):
        # Colours are for a terminal, trailing spaces for nobody.
        line = re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip()
        if numbers_vary:
            line = re.sub(r"\d+(?:[.,]\d+)*", "0", line)
            line = re.sub(r"\s+", " ", line)
        return line

    def pattern(line):
        parts = re.split(r"\.\.\.|…", normal(line))
        return re.compile(".*".join(re.escape(part) for part in parts))

    wanted = [None if line.strip() in ("...", "…") else pattern(line) for line in expected]
    while wanted and wanted[-1] is None:
        wanted.pop()
    found = [normal(line) for line in printed]

    def at(want, have):
        """Whether `wanted[want:]` stands at `found[have:]`."""
        while want < len(wanted):
            if wanted[want] is None:
                return any(at(want + 1, later) for later in range(have, len(found) + 1))
            if have == len(found) or not wanted[want].fullmatch(found[have]):
                return False
            want, have = want + 1, have + 1
        return True

    return any(at(0, start) for start in range(len(found) + 1))


# --- Running a fence


def commands(lines):
    """The commands of a fence, each with the indices of its lines."""
    found, start = [], 0
    for index, line in enumerate(lines):
        if line.endswith("\\") and index + 1 < len(lines):
            continue
        found.append((range(start, index + 1), " ".join(lines[start : index + 1]).strip()))
        start = index + 1
    return found


def script(fence, number):
    """The fence as a script whose line numbers are those of the fence, after `HEADER` lines."""
    lines = list(fence.lines)
    skipped, used = [], set()
    for indices, command in commands(fence.lines):
        plain = re.sub(r"^(\w+=\S*\s+)+", "", command)
        starts = lambda prefix: command.startswith(prefix) or plain.startswith(prefix)
        reason = next(((p, why) for p, why in fence.skipped if starts(p)), None)
        beside = next(((p, text) for p, text in fence.background if starts(p)), None)
        if reason:
            used.add(reason[0])
            skipped.append((fence.line + 1 + indices[0], reason[1]))
            for index in indices:
                lines[index] = ":"
        elif beside:
            used.add(beside[0])
            log = f".docs-check-{number}-{indices[0]}.log"
            joined = re.sub(r"\s*&\s*$", "", "\n".join(lines[index] for index in indices))
            lines[indices[0]] = f"background {shlex.quote(joined)} {shlex.quote(beside[1])} {log}"
            for index in indices[1:]:
                lines[index] = ":"
    for prefix, _ in fence.skipped + fence.background:
        if prefix not in used:
            raise ValueError(f'no command begins with "{prefix}"')
    return lines, skipped


HEADER = f"""\
set -e
trap 'echo "$LINENO" >"$FAILED_AT"' ERR
background() {{ eval "exec env $1" >"$3" 2>&1 & local pid=$! i
  echo $pid >>"$BACKGROUND"
  for ((i = 0; i < {READY} * 10; i++)); do
    grep -qF -- "$2" "$3" && return 0
    kill -0 $pid 2>/dev/null || {{ echo "it ended: $1"; cat "$3"; return 1; }}
    sleep 0.1
  done; echo "it did not print \\"$2\\" in {READY} s: $1"; cat "$3"; return 1; }}
end_background() {{ local pid
  for pid in $(cat "$BACKGROUND" 2>/dev/null); do
    kill $pid 2>/dev/null || continue
    # Nobody may have reaped it.
    while kill -0 $pid 2>/dev/null && ! grep -q '^State:.Z' /proc/$pid/status 2>/dev/null; do sleep 0.1; done
  done; rm -f "$BACKGROUND"; }}
"""


class Page:
    """One page's folder, environment and processes."""

    def __init__(self, name, program, limit):
        self.name, self.limit = name, limit
        self.folder = Path(tempfile.mkdtemp(prefix="docs-check-"))
        self.work = self.folder / "work"
        self.work.mkdir(mode=0o700)
        for tree in ("examples", "deploy"):
            shutil.copytree(REPOSITORY / tree, self.work / tree, ignore=shutil.ignore_patterns(".proofmill"))
        binaries = self.folder / "bin"
        binaries.mkdir()
        (binaries / "proofmill").symlink_to(program)
        # The package is called so that it does not stand in for the compiler written in Rust.
        circom = REPOSITORY / TOOLS[1] / "circom2"
        if circom.exists():
            (binaries / "circom").symlink_to(circom)
        tools = [str(REPOSITORY / tool) for tool in TOOLS]
        self.environment = {
            "PATH": os.pathsep.join([str(binaries), *tools, os.environ.get("PATH", os.defpath)]),
            "HOME": str(self.folder),
            "TMPDIR": str(self.folder),
            "REPOSITORY": str(REPOSITORY),
            "BACKGROUND": str(self.folder / "background"),
            "LC_ALL": "C.UTF-8",
            "TERM": "dumb",
        }
        self.groups = []

    def has(self, program):
        return shutil.which(program, path=self.environment["PATH"]) is not None

    def run(self, fence, number):
        """Runs a fence: what it printed, and which of its commands were not run, and why."""
        try:
            lines, skipped = script(fence, number)
        except ValueError as error:
            raise Fault(self.name, fence.line, error) from None
        header = HEADER + fence.before
        printed, failed_at, source = (self.folder / f"{number}.{kind}" for kind in ("out", "line", "sh"))
        source.write_text(header + "\n".join(lines) + "\n" + fence.after)
        with open(printed, "wb") as out:
            process = subprocess.Popen(
                ["bash", str(source)], cwd=self.work, stdin=subprocess.DEVNULL, stdout=out,
                stderr=subprocess.STDOUT, start_new_session=True,
                env=self.environment | {"FAILED_AT": str(failed_at)},
            )
            self.groups.append(process.pid)
            try:
                status = process.wait(self.limit)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                raise Fault(self.name, fence.line, f"not done after {self.limit} s:\n{tail(printed)}") from None
        if status != fence.status:
            known = failed_at.read_text() if failed_at.exists() else ""
            line = int(known) - header.count("\n") if known else 0
            where = fence.line + min(max(line, 0), len(fence.lines))
            raise Fault(self.name, where, f"exit status {status} instead of {fence.status}:\n{tail(printed)}")
        return printed.read_text(errors="replace").split("\n"), skipped

    def close(self):
        """Ends whatever the page has started, and removes its folder."""
        for sent in (signal.SIGTERM, signal.SIGKILL):
            for group in self.groups:
                try:
                    os.killpg(group, sent)
                except ProcessLookupError:
                    continue
        shutil.rmtree(self.folder, ignore_errors=True)


def tail(path, most=40):
    lines = path.read_text(errors="replace").rstrip().split("\n")
    return "\n".join("    " + line for line in lines[-most:])


# --- Checking pages


def check(name, text, program, limit=LIMIT):
    """Checks a page: the number of fences that were run, and what was not run, and why."""
    fences, page_skip = read_page(name, text)
    if page_skip:
        return 0, [(1, page_skip)]
    page, ran, not_run, printed = Page(name, program, limit), 0, [], None
    try:
        for number, fence in enumerate(fences):
            if fence.file:
                path = page.work / fence.file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text("\n".join(fence.lines) + "\n")
            if fence.language in COMMANDS:
                missing = [program for program in fence.needs if not page.has(program)]
                if fence.skip or missing:
                    printed = None
                    not_run.append((fence.line, fence.skip or f"needs {', '.join(missing)}"))
                    continue
                printed, skipped = page.run(fence, number)
                not_run += skipped
                ran += 1
            elif fence.output in ("exact", "numbers vary") or (
                fence.output is None and fence.follows and fence.language in OUTPUTS and not fence.file
            ):
                if fence.before:
                    hidden = Fence(fence.line, "sh", [], False, status=fence.status, before=fence.before)
                    printed, _ = page.run(hidden, number)
                compare(name, fence, printed)
            elif fence.output is None and looks_like_commands(fence):
                raise Fault(name, fence.line, "it has commands: mark the fence `sh`, so that they are run")
    finally:
        page.close()
    return ran, not_run


def compare(name, fence, printed):
    """Compares stated output with what the commands before it printed, if they were run."""
    if printed is None or fence.skip:
        return
    if not matches(fence.lines, printed, fence.output == "numbers vary"):
        shown = "\n".join("    " + line for line in printed)
        raise Fault(name, fence.line, f"something else is printed:\n{shown}")


def looks_like_commands(fence):
    plain = fence.language in ("", "text", "console")
    return plain and any(re.match(r"(\$ )?(proofmill|cargo|make) \S", line) for line in fence.lines)


def isolate():
    """Goes on in a network with nothing in it but loopback, if the system allows that."""
    if os.environ.get(ISOLATED) or not shutil.which("unshare"):
        return bool(os.environ.get(ISOLATED))
    network = ["unshare", "--user", "--map-root-user", "--net"]
    # Where it may have processes of its own too, none is left when it ends.
    for own in ([*network, "--pid", "--fork", "--kill-child", "--mount-proc"], network):
        if subprocess.run([*own, "true"], stderr=subprocess.DEVNULL).returncode == 0:
            os.environ[ISOLATED] = "yes"
            os.execvp(own[0], [*own, sys.executable, *sys.argv])
    return False


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--program", type=Path, default=REPOSITORY / "target/debug/proofmill",
                         help="the proofmill that is run, of a debug or a release build")
    options.add_argument("pages", nargs="*", type=Path, help="only these pages")
    chosen = options.parse_args()
    program = chosen.program.resolve()
    if not os.access(program, os.X_OK):
        options.error(f"{program} is not there: build it, or name another with --program")
    if isolate():
        raise_loopback()
    else:
        print("note: the commands can reach the network: `unshare --net` is not allowed here")
    documents = REPOSITORY / "docs"
    pages = chosen.pages or [
        REPOSITORY / "README.md", *sorted(documents.glob("*.md")), *sorted(documents.glob("runbooks/*.md")),
    ]
    failed, total = 0, 0
    for path in pages:
        name = os.path.relpath(path, REPOSITORY)
        try:
            ran, not_run = check(name, path.read_text(), program)
        except Fault as fault:
            failed += 1
            print(f"FAILED {fault}")
            continue
        total += ran
        print(f"{name}: {ran} run")
        for line, why in not_run:
            print(f"  not run, line {line}: {why}")
    print(f"{total} fences with commands run, {failed} pages failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
