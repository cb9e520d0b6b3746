"""Tests of mutants.py: python3 -m unittest discover .ci"""

import unittest

import mutants


def outcome(name, summary):
    return {"scenario": {"Mutant": {"name": name}}, "summary": summary}


class Figures(unittest.TestCase):
    def setUp(self):
        self.names = [f"a.rs:{line}: replace f with ()" for line in range(1000)]

    def test_shards_add_up_until_the_sample_is_tested(self):
        known = {}
        for run in range(10):
            found = mutants.record(known, "crate", self.names)
            at = mutants.waiting(found, "crate")[0]
            done = [outcome(f"{run}", "MissedMutant")] + [outcome("x", "CaughtMutant")] * 18
            done += [outcome("y", "Unviable"), {"scenario": "Baseline", "summary": "Success"}]
            found["tested"][str(at)] = mutants.read({"outcomes": done})
            known["crate"] = found
        found = mutants.record(known, "crate", self.names)
        self.assertEqual(mutants.count(found), {"caught": 180, "missed": 10, "timeout": 0, "unviable": 10})
        self.assertEqual(mutants.waiting(found, "crate"), [])
        self.assertEqual(len(found["tested"]), 10)
        self.assertIn("| crate | 1000 | 200 | 180 | 10 | 95%, 91% to 97% |", mutants.table(known))
        self.assertIn("missed: 3", mutants.table(known))

    def test_other_mutants_start_again(self):
        known = {"crate": mutants.record({}, "crate", self.names) | {"tested": {"1": {}}}}
        self.assertEqual(mutants.record(known, "crate", self.names)["tested"], {"1": {}})
        self.assertEqual(mutants.record(known, "crate", self.names[1:])["tested"], {})

    def test_the_order_is_the_seeds(self):
        self.assertEqual(mutants.order("a", 50), mutants.order("a", 50))
        self.assertNotEqual(mutants.order("a", 50), mutants.order("b", 50))
        self.assertEqual(sorted(mutants.order("a", 50)), list(range(50)))

    def test_the_interval_is_wilsons(self):
        low, high = mutants.interval(190, 200)
        self.assertAlmostEqual(low, 0.9105, places=3)
        self.assertAlmostEqual(high, 0.9726, places=3)
        self.assertEqual(mutants.interval(0, 0), (0.0, 1.0))


if __name__ == "__main__":
    unittest.main()
