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
        for run in range(20):
            found = mutants.record(known, "crate", self.names)
            at = mutants.waiting(found, "crate")[0]
            done = [outcome(f"{run}", "MissedMutant")] + [outcome("x", "CaughtMutant")] * 8
            done += [outcome("y", "Unviable"), {"scenario": "Baseline", "summary": "Success"}]
            found["tested"][str(at)] = mutants.read({"outcomes": done}, {})
            known["crate"] = found
        found = mutants.record(known, "crate", self.names)
        self.assertEqual(mutants.count(found), {"caught": 160, "missed": 20, "timeout": 0, "unviable": 20})
        self.assertEqual(mutants.waiting(found, "crate"), [])
        self.assertEqual(len(found["tested"]), 20)
        text = mutants.table(known, {})
        self.assertIn("| crate | 1000 | 200 | 20 | 160 | 20 | 0 | 89%, 83% to 93% | 0 |", text)
        self.assertIn("- crate: `3`: a test is missing", text)

    def test_a_mutant_that_changes_nothing_is_left_out_of_the_share(self):
        found = mutants.record({}, "crate", self.names)
        shard = {"caught": 8, "missed": ["a", "b"], "timeout": 1, "unviable": 0, "seconds": 120}
        found["tested"]["0"] = shard
        text = mutants.table({"crate": found}, {"crate": {"a": "the order does not matter"}})
        self.assertIn("| crate | 1000 | 11 | 0 | 9 | 1 | 1 | 90%, 60% to 98% | 2 |", text)
        self.assertIn("- crate: `a`: the order does not matter", text)

    def test_what_new_tests_catch_is_no_longer_missed(self):
        found = {"tested": {"0": {"caught": 1, "missed": ["a", "b"], "timeout": 0, "unviable": 0}}}
        mutants.caught_since(found, {"caught": {"b", "z"}})
        self.assertEqual((mutants.missed(found), mutants.count(found)["caught"]), (["a"], 2))

    def test_a_mutant_is_the_same_on_another_line(self):
        before = ["a.rs:1:2: replace + with - in f", "a.rs:9:2: replace + with - in f"]
        after = ["a.rs:4:2: replace + with - in f", "a.rs:11:7: replace + with - in f"]
        self.assertEqual(list(mutants.identities(before).values()), list(mutants.identities(after).values()))
        self.assertEqual(mutants.identities(after)[after[1]], "a.rs: replace + with - in f #2")
        known = {"crate": mutants.record({}, "crate", before) | {"tested": {"0": {}}}}
        self.assertEqual(mutants.record(known, "crate", after)["tested"], {"0": {}})
        read = mutants.read({"outcomes": [outcome(after[1], "MissedMutant")]}, mutants.identities(after))
        self.assertEqual(read["missed"], ["a.rs: replace + with - in f #2"])

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
