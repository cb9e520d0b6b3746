"""Tests of what the demo computes itself. `make test` runs them."""

import subprocess
import sys
import tempfile
import unittest
from fractions import Fraction
from pathlib import Path

from applications import CARS
from page import Page
from processes import Failed, Processes, wait_for
from truth import differences, windows

TAKEN = "20000,heart_rate,60\n29999,heart_rate,80.5\n30000,heart_rate,-3\n"


class Truth(unittest.TestCase):
    def rows(self) -> dict:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "rows.csv")
            file.write_text(TAKEN)
            return windows(file, 10_000)

    def test_values_fall_into_half_open_windows(self):
        found = self.rows()
        self.assertEqual(sorted(found), [20_000, 30_000])
        self.assertEqual(found[20_000]["heart_rate"], [60, Fraction("80.5")])
        self.assertEqual(found[30_000]["heart_rate"], [-3])

    def test_a_wrong_column_is_named(self):
        window = self.rows()[20_000]
        good = {"count_heart_rate": 2, "avg_heart_rate": 70.25, "stddev_heart_rate": 10.25, "var_heart_rate": 105.0625}
        self.assertEqual(differences(good, window), [])
        for column in good:
            self.assertEqual(differences({**good, column: 7}, window), [column])
            self.assertEqual(differences({**good, column: None}, window), [column])


class Words(unittest.TestCase):
    PAGE = Path(__file__).resolve().parents[2] / "docs/scale.md"
    BLOCKS = {"pki", "schema", "server", "controller", "owners", "job", "ask", "results", "policies.yaml", "job.properties",
              "fleet.properties"}

    def test_the_page_has_every_block_that_the_demo_runs_and_no_other(self):
        self.assertEqual(Page(self.PAGE, []).names(), self.BLOCKS)

    def test_nothing_of_one_application_is_left_in_anothers(self):
        page = Page(self.PAGE, list(CARS.changes))
        for name in self.BLOCKS:
            for word in ("fitness", "Fitness", "heart", "HeartRate", "Zurich"):
                self.assertNotIn(word, page.block(name), name)


class Ends(unittest.TestCase):
    def test_no_process_outlives_the_demo(self):
        with tempfile.TemporaryDirectory() as folder:
            with Processes(Path(folder)) as processes:
                sleeper = processes.start("sleeper", ["sleep", "600"])
                stubborn = processes.start("stubborn", ["sh", "-c", "sleep 600 & wait"])
                self.assertIsNone(sleeper.poll())
            self.assertIsNotNone(sleeper.poll())
            self.assertIsNotNone(stubborn.poll())

    @unittest.skipUnless(sys.platform == "linux", "elsewhere a demo that is killed may leave processes")
    def test_nor_one_that_is_killed(self):
        code = ("import sys; from pathlib import Path; from processes import Processes\n"
                "p = Processes(Path(sys.argv[1])).start('sleeper', ['sleep', '600'])\n"
                "print(p.pid, flush=True); import time; time.sleep(600)")
        with tempfile.TemporaryDirectory() as folder:
            demo = subprocess.Popen([sys.executable, "-c", code, folder], cwd=Path(__file__).parent,
                                    stdout=subprocess.PIPE, text=True)
            child = demo.stdout.readline().strip()
            demo.kill()
            demo.wait()
            demo.stdout.close()
            wait_for("its end", lambda: not running(child), 20)

    def test_what_does_not_happen_is_said(self):
        with self.assertRaisesRegex(Failed, "a miracle"):
            wait_for("a miracle", lambda: False, 0.1)


def running(pid: str) -> bool:
    status = Path(f"/proc/{pid}/stat")
    return status.exists() and status.read_text().rsplit(")", 1)[1].split()[0] != "Z"


if __name__ == "__main__":
    unittest.main()
