"""Tests of fuzz.py: python3 -m unittest discover .ci"""

import json
import unittest

import fuzz

QUIET = """INFO: Seed: 1
#2\tINITED cov: 10 ft: 11 corp: 1/1b exec/s: 0 rss: 30Mb
#4096\tpulse  cov: 12 ft: 15 corp: 3/9b lim: 6 exec/s: 2048 rss: 31Mb
#5000\tDONE   cov: 13 ft: 17 corp: 4/12b lim: 8 exec/s: 2500 rss: 31Mb
Done 5000 runs in 2 second(s)
stat::number_of_executed_units: 5000
stat::average_exec_per_sec:     2500
"""
CRASH = """#2\tINITED cov: 10 ft: 11 corp: 1/1b exec/s: 0 rss: 30Mb
#700\tNEW    cov: 12 ft: 15 corp: 3/9b lim: 6 exec/s: 0 rss: 31Mb L: 3/4 MS: 1 ChangeBit-
==7== ERROR: libFuzzer: deadly signal
artifact_prefix='/a/b/'; Test unit written to /a/b/crash-0123abcd
"""


class Figures(unittest.TestCase):
    def run_of(self, text, status, seconds=2):
        return fuzz.read(text, status) | {"seconds": seconds, "processor_seconds": 1, "corpus": 4}

    def test_a_quiet_run_is_read(self):
        run = fuzz.read(QUIET, 0)
        self.assertEqual(run, {"executions": 5000, "coverage": 13, "features": 17, "findings": []})

    def test_a_finding_is_named_by_its_input(self):
        run = fuzz.read(CRASH, 77)
        self.assertEqual(run["findings"], ["crash: crash-0123abcd"])
        self.assertEqual((run["executions"], run["coverage"]), (700, 12))
        self.assertEqual(fuzz.read("", 1)["findings"], ["status 1: no input was kept"])

    def test_runs_add_up_and_findings_stay(self):
        known = {}
        fuzz.add(known, "frame", self.run_of(CRASH, 77), "ours")
        fuzz.add(known, "frame", self.run_of(CRASH, 77), "ours")
        fuzz.add(known, "frame", self.run_of(QUIET, 0), "all")
        found = known["frame"]
        self.assertEqual((found["runs"], found["seconds"], found["executions"]), (3, 6, 6400))
        self.assertEqual((found["coverage"], found["corpus"], found["flags"]), (13, 4, "all"))
        self.assertEqual(found["findings"], ["crash: crash-0123abcd"])
        text = fuzz.table(known)
        self.assertIn("| frame | 3 | 6 | 3 | 6400 | 13 | 17 | 4 | all | 1 |", text)
        self.assertIn("- frame: crash: crash-0123abcd", text)

    def test_what_had_the_least_time_comes_first(self):
        known = {"a": {"seconds": 60}, "b": {"seconds": 10}}
        self.assertEqual(fuzz.waiting(known, ["a", "b", "d", "c"]), ["c", "d", "b", "a"])

    def test_executables_are_found_by_name(self):
        built = [json.dumps({"executable": "/x/frame-1", "target": {"name": "frame"}}),
                 json.dumps({"executable": None, "target": {"name": "lib"}}), "text"]
        self.assertEqual(fuzz.executables(built), {"frame": "/x/frame-1"})

    def test_targets_are_read_from_the_program(self):
        self.assertIn("frame", fuzz.targets())
        listed = (fuzz.FUZZ / "src" / "targets.rs").read_text()
        self.assertEqual(len(fuzz.targets()), listed.count("crate::"))


if __name__ == "__main__":
    unittest.main()
