"""Checks drills/run.py with drills of its own."""

import importlib.util
import json
import pathlib
import sys
import tempfile
import unittest
import unittest.mock
from contextlib import redirect_stdout
from io import StringIO

PATH = pathlib.Path(__file__).resolve().parent.parent / "drills/run.py"
SPEC = importlib.util.spec_from_file_location("drills", PATH)
drills = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(drills)


def says(text, code=0):
    return [sys.executable, "-c", f"print({text!r}); raise SystemExit({code})"], {}, "what it shows"


class Drills(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_all(self, **known):
        self.enterContext(unittest.mock.patch.object(drills, "DRILLS", known))
        arguments = ["run.py", "--results", str(self.folder), "--logs", str(self.folder / "logs")]
        self.enterContext(unittest.mock.patch.object(sys, "argv", arguments))
        error = None
        with redirect_stdout(StringIO()):
            try:
                drills.main()
            except SystemExit as ended:
                error = str(ended)
        page, = self.folder.glob("*-drills.md")
        return error, page.read_text(), json.loads(page.with_suffix(".json").read_text())

    def test_figures_and_seconds_are_in_the_table(self):
        error, page, report = self.run_all(first=says("figure: first window = 31 s"))
        self.assertIsNone(error)
        self.assertIn("| first | first window | 31 s |", page)
        self.assertIn("| first | what it shows | passed |", page)
        self.assertEqual(report["drills"]["first"]["figures"], {"first window": "31 s"})

    def test_a_red_drill_is_named_and_the_next_one_runs(self):
        error, page, _ = self.run_all(bad=says("no", 3), good=says("yes"))
        self.assertIn("bad failed", error)
        self.assertIn("| bad | what it shows | exit code 3 |", page)
        self.assertIn("| good | what it shows | passed |", page)

    def test_a_test_that_skips_itself_is_red_though_it_prints_nothing(self):
        quiet = "import os; open(os.environ['TEST_SKIPS'], 'a').write('stats a_test: there is no data\\n')"
        error, page, _ = self.run_all(quiet=([sys.executable, "-c", quiet], {}, "what it shows"))
        self.assertIn("quiet failed", error)
        self.assertIn("stats a_test: there is no data", page)

    def test_drills_of_one_day_and_commit_stand_in_one_table(self):
        self.run_all(first=says("yes"))
        _, page, _ = self.run_all(second=says("yes"), first=says("yes"))
        self.assertIn("| second |", page)

    def test_a_drill_that_skips_itself_is_red(self):
        error, page, _ = self.run_all(lazy=says("skipped: this machine lacks umoci"))
        self.assertIn("lazy failed", error)
        self.assertIn("skipped: this machine lacks umoci", page)


if __name__ == "__main__":
    unittest.main()
