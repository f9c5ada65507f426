"""What run_tests.py makes of failures: `python3 .ci/test_run_tests.py`."""

import contextlib
import io
import os
import tempfile
import unittest
from pathlib import Path

from run_tests import Lanes, failed_tests

# A test program of two tests that reports as Rust's runner does. `later` fails unless it is run by its name.
PROGRAM = """#!/bin/sh
if [ "$1" = --exact ]; then
  case "$2" in
    later) echo "test result: ok. 1 passed; 0 failed; 0 ignored" ; exit 0 ;;
    *) echo "test result: FAILED. 0 passed; 1 failed; 0 ignored" ; exit 101 ;;
  esac
fi
printf '\\nfailures:\\n\\n---- later stdout ----\\n\\nfailures:\\n\\n\\nfailures:\\n'
for test in $FAILING; do echo "    $test"; done
printf '\\ntest result: FAILED. 1 passed; 1 failed; 0 ignored\\n'
exit 101
"""


class Failures(unittest.TestCase):
    """Runs of the program above."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.program = Path(folder.name) / "tests"
        self.program.write_text(PROGRAM)
        self.program.chmod(0o755)

    def after(self, failing, rerun=True, program=None):
        lanes = Lanes()
        with contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO())):
            lanes.run_one(
                "tests", [program or str(self.program)], 0, rerun=rerun, env={**os.environ, "FAILING": failing}
            )
            lanes.run_failed_again()
        return lanes.unsteady, [name for name, *_ in lanes.failed]

    def test_names_are_those_of_the_last_list(self):
        text = b"\nfailures:\n\n---- a stdout ----\nx\n\nfailures:\n    a::b\n    c\n\ntest result: FAILED.\n"
        self.assertEqual(failed_tests(text), ["a::b", "c"])
        self.assertEqual(failed_tests(b"killed"), [])

    def test_who_passes_alone_is_unsteady(self):
        self.assertEqual(self.after("later"), (["later (tests)"], []))

    def test_who_fails_again_has_failed(self):
        self.assertEqual(self.after("never"), ([], ["tests"]))
        self.assertEqual(self.after("later never"), ([], ["tests"]))

    def test_many_are_no_chance(self):
        self.assertEqual(self.after("later later later"), ([], ["tests"]))

    def test_who_only_computes_is_not_run_again(self):
        self.assertEqual(self.after("later", rerun=False), ([], ["tests"]))

    def test_a_program_that_did_not_come_to_its_end_has_failed(self):
        self.assertEqual(self.after("", program="/bin/false"), ([], ["tests"]))


if __name__ == "__main__":
    unittest.main()
