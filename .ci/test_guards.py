"""Tests of guards.py: python3 -m unittest discover .ci"""

import unittest

import guards


def guard(check, **more):
    return {"file": "a.rs", "check": check, "instead": "false"} | more


class Switches(unittest.TestCase):
    def test_a_check_gets_a_switch(self):
        text = "if a || b { return Err(No); }\ncame += 1;\nok\n"
        found = guards.switched(text, [(7, guard("b", within="a || b {")), (8, guard("came += 1;", instead=""))])
        self.assertEqual(found, "if a || crate::guard_switch::check(7, false, b) { return Err(No); }\n"
                                "if crate::guard_switch::gone(8) {  } else { came += 1; }\nok\n")

    def test_a_check_that_is_not_there_once_is_refused(self):
        for text in ["", "a == b, a == b"]:
            with self.assertRaises(guards.ListError):
                guards.switched(text, [(0, guard("a == b"))])
        with self.assertRaises(guards.ListError):
            guards.switched("f(a == b)", [(0, guard("a == b")), (1, guard("f(a == b)"))])

    def test_outcomes(self):
        said = "test a::b ... ok\ntest a::c ... FAILED\ntest a::d - should panic ... FAILED\n"
        self.assertEqual(guards.read(said), ["a::c", "a::d"])
        self.assertEqual(guards.verdict(["a::c"], 2), "killed")
        self.assertEqual(guards.verdict([], 2), "missed")
        self.assertEqual(guards.verdict([], 0), "not applicable")

    def test_the_table_counts(self):
        of = [guard("a | b", test="t", refuses="No"), guard("c")]
        known = {"crate": (None, of)}
        text = guards.table(known, {"crate": {guards.key(of[0]): {"outcome": "killed"}}})
        self.assertIn("| crate | 2 | 1 | 0 | 0 | 1 |", text)
        self.assertIn("| a.rs | `a \\| b` | No | t | killed |", text)


class Lists(unittest.TestCase):
    """A guard that changes has to change in the list too."""

    def test_each_guard_is_in_the_code_once(self):
        for crate, (folder, of) in guards.lists().items():
            self.assertEqual(len({guards.key(guard) for guard in of}), len(of), crate)
            files = {}
            for number, guard in enumerate(of):
                files.setdefault(guard["file"], []).append((number, guard))
            for name, there in files.items():
                guards.switched((folder / name).read_text(), there)

    def test_each_test_is_there(self):
        for crate, (folder, of) in guards.lists().items():
            text = "".join(path.read_text() for path in folder.rglob("*.rs"))
            for guard in of:
                if "test" in guard:
                    self.assertIn(f"fn {guard['test'].rsplit('::', 1)[-1]}(", text, f"{crate}: {guard['check']}")


if __name__ == "__main__":
    unittest.main()
