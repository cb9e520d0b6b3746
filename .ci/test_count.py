"""Checks count.py with logs of its own."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).with_name("count.py")
RUST = "test result: {}. {} passed; {} failed; {} ignored; 0 measured; 0 filtered out; finished in 1s\n"
LOGS = {
    "processes": RUST.format("ok", 3, 0, 2),
    "others": RUST.format("ok", 5, 0, 0) + RUST.format("FAILED", 1, 1, 0),
    "rules": "Ran 2 tests in 0.1s\n\nOK\n",
    "jvm": "Ran 4 tests in 0.1s\n\nOK (skipped=1)\n",
    "vectors": "",
    "c": "Ran 3 tests in 0.1s\n\nFAILED (failures=1, errors=1)\n",
    "python": "==== 7 passed, 1 skipped in 2.00s ====\n",
    "js": "# pass 6\n# fail 0\n# skipped 0\n",
}


class Count(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def count(self, ci="true", **logs):
        for name, text in (LOGS | logs).items():
            (self.folder / f"{name}.log").write_text(text)
        return subprocess.run([sys.executable, SCRIPT, self.folder, self.folder / "jvm"], check=False, text=True,
                              capture_output=True, env=os.environ | {"CI": ci})

    def test_all_kinds_of_tests_are_counted(self):
        done = self.count(ci="")
        self.assertEqual(done.stdout, "28 passed, 3 failed, 2 skipped, 2 long ones left to `make drills`\n")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_skipped_test_fails_in_ci(self):
        self.assertEqual(self.count().returncode, 1)
        whole = self.count(jvm="", python="==== 7 passed in 2.00s ====\n")
        self.assertEqual(whole.returncode, 0, whole.stderr)
        (self.folder / "skips").write_text("suite::one: no docker\n")
        skipped = self.count(jvm="", python="==== 7 passed in 2.00s ====\n")
        self.assertEqual(skipped.returncode, 1)
        self.assertIn("suite::one: no docker", skipped.stdout)
        self.assertIn("every test must run", skipped.stderr)
        (self.folder / "skips").write_text("suite::one: ALPHEUS_REAL_DATA does not name the folder\n")
        unrecorded = self.count(jvm="", python="==== 7 passed in 2.00s ====\n")
        self.assertEqual(unrecorded.returncode, 0, unrecorded.stderr)


if __name__ == "__main__":
    unittest.main()
