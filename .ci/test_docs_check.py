"""What docs_check.py takes, and what it refuses: `python3 .ci/test_docs_check.py`."""

import os
import tempfile
import unittest
from pathlib import Path

import docs_check
from docs_check import Fault, check, matches, read_page

PROGRAM = """#!/bin/sh
case "$1" in
  hello) echo "hello in 12 ms" ;;
  serve) echo "ready" ; sleep 60 ;;
  asked) test -f "$2" ;;
  *) echo "no such command: $1" ; exit 2 ;;
esac
"""


class Pages(unittest.TestCase):
    """Pages with a program that is a few lines of shell."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.program = Path(folder.name) / "proofmill"
        self.program.write_text(PROGRAM)
        self.program.chmod(0o755)

    def check(self, text, limit=120):
        return check("page.md", text, self.program, limit)

    def refused(self, text, part, limit=120):
        with self.assertRaises(Fault) as raised:
            self.check(text, limit)
        self.assertIn(part, str(raised.exception))

    def test_commands_are_run_in_order_and_see_what_those_before_left(self):
        ran, not_run = self.check("```sh\necho x > file\n```\n\ntext\n\n```sh\nproofmill asked file\n```\n")
        self.assertEqual((ran, not_run), (2, []))

    def test_a_command_that_fails_is_named_with_its_line(self):
        self.refused("# Title\n\n```sh\nproofmill hello\nproofmill helo\n```\n", "page.md:5: exit status 2")
        self.refused("```sh\nfalse | true\nproofmill asked nothing\n```\n", "page.md:3:")
        self.check("<!-- docs-check: fails 2 -->\n```sh\nproofmill helo\n```\n")
        self.refused("<!-- docs-check: fails 1 -->\n```sh\nproofmill helo\n```\n", "status 2 instead of 1")

    def test_what_is_not_run_has_a_reason(self):
        reason = "<!-- docs-check: skip: a peer is needed -->\n```sh\nnonsense\n```\n"
        self.assertEqual(self.check(reason), (0, [(2, "a peer is needed")]))
        one = '<!-- docs-check: skip "make": it builds -->\n```sh\nmake all \\\n  --fast\nproofmill hello\n```\n'
        self.assertEqual(self.check(one), (1, [(3, "it builds")]))
        self.refused("<!-- docs-check: skip: -->\n```sh\nnonsense\n```\n", "has no reason")
        self.refused('<!-- docs-check: skip "cargo": why -->\n```sh\ntrue\n```\n', 'begins with "cargo"')
        self.refused("<!-- docs-check: skip: why -->\n\nNo fence.\n", "no fence follows")
        needs = "<!-- docs-check: needs no-such-program -->\n```sh\nno-such-program\n```\n"
        self.assertEqual(self.check(needs), (0, [(2, "needs no-such-program")]))
        self.refused("```text\nproofmill hello\n```\n", "mark the fence `sh`")

    def test_stated_output_is_compared(self):
        page = "```sh\nproofmill hello\n```\n\n{}```text\n{}\n```\n"
        self.check(page.format("", "hello in 12 ms"))
        self.check(page.format("", "hello in … ms"))
        self.refused(page.format("", "hello in 13 ms"), "something else is printed")
        self.check(page.format("<!-- docs-check: output numbers vary -->\n", "hello in 1.3  ms"))
        self.refused(page.format("<!-- docs-check: output numbers vary -->\n", "hullo in 12 ms"), "else")
        self.check(page.format("<!-- docs-check: not output: a picture -->\n", "anything"))
        hidden = "<!-- docs-check: before\nproofmill helo\n-->\n<!-- docs-check: fails 2 -->\n"
        hidden += "<!-- docs-check: output -->\n```text\nno such {}\n```\n"
        self.check(hidden.format("command: helo"))
        self.refused(hidden.format("thing"), "something else is printed")

    def test_pages_prepare_check_and_run_beside(self):
        self.check(
            "<!-- docs-check: before\necho x > made\n-->\n<!-- docs-check: after\ntest -f more\n-->\n"
            "```sh\ncp made more\n```\n"
        )
        self.refused("<!-- docs-check: after\ntest -f more\n-->\n```sh\ntrue\n```\n", "exit status 1")
        beside = '<!-- docs-check: background "proofmill serve" until "ready" -->\n'
        self.check(beside + "```sh\nproofmill serve   # in another terminal\nproofmill hello\n```\n")
        again = "<!-- docs-check: before\nend_background\n-->\n" + beside + "```sh\nproofmill serve\n```\n"
        self.check(beside + "```sh\nproofmill serve\n```\n\n" + again)
        never = beside.replace("ready", "steady").replace("serve", "hello")
        self.refused(never + "```sh\nproofmill hello\n```\n", "it ended")
        self.check("<!-- docs-check: file a/b.toml -->\n```toml\nx = 1\n```\n\n```sh\ngrep 'x = 1' a/b.toml\n```\n")

    def test_what_takes_too_long_is_ended(self):
        self.refused("```sh\nproofmill serve\n```\n", "not done after 1 s", limit=1)


class Reading(unittest.TestCase):
    """Pages that are not written as they should be."""

    def test_what_is_not_closed_or_known_is_refused(self):
        for text in (
            "```sh\ntrue\n",
            "<!-- docs-check: skip: why\n",
            "<!-- docs-check: jump -->\n```sh\n```\n",
            "<!-- docs-check: file ../x -->\n```toml\n```\n",
        ):
            with self.assertRaises(Fault, msg=text):
                read_page("page.md", text)

    def test_every_page_of_the_repository_can_be_read(self):
        for path in [docs_check.REPOSITORY / "README.md", *(docs_check.REPOSITORY / "docs").glob("*.md")]:
            read_page(os.fspath(path), path.read_text())

    def test_lines_match_one_after_the_other(self):
        printed = ["a", "b 1", "c", "d"]
        self.assertTrue(matches(["b 1", "c"], printed))
        self.assertTrue(matches(["a", "...", "d"], printed))
        self.assertTrue(matches(["…", "d"], printed))
        self.assertFalse(matches(["a", "c"], printed))
        self.assertFalse(matches(["d", "…", "a"], printed))
        self.assertFalse(matches(["b 2"], printed))
        self.assertTrue(matches(["b 2"], printed, numbers_vary=True))


if __name__ == "__main__":
    unittest.main()
