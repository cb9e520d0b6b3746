"""Checks programs.py with two programs of its own."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).with_name("programs.py")


class Programs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def message(self, name, script, test=True):
        """Cargo's message of a program that is this script."""
        program = self.folder / name
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        manifest = self.folder / "Cargo.toml"
        return json.dumps({"executable": str(program), "profile": {"test": test},
                           "target": {"name": name}, "manifest_path": str(manifest)})

    def start(self, messages, *arguments):
        return subprocess.run([sys.executable, SCRIPT, *arguments], input="\n".join(messages),
                              check=False, text=True, capture_output=True)

    def test_programs_run_in_their_package_and_one_that_fails_is_named(self):
        good, bad = self.message("good", 'echo "in $(pwd) with $1"'), self.message("bad", "exit 101")
        other = self.message("other", "exit 1", test=False)
        done = self.start([good, other, '{"reason": "build-finished"}'], "run", "2", "--nocapture")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"in {self.folder.resolve()} with --nocapture", done.stdout)
        done = self.start([bad, good], "run", "2")
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"error: tests failed in {self.folder.name}/bad", done.stderr)
        self.assertIn("in ", done.stdout, "the others run all the same")

    def test_a_link_leads_to_the_program_of_a_name(self):
        link = self.folder / "link"
        for script in ("echo first", "echo second"):
            done = self.start([self.message("good", script)], "link", "good", str(link))
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(subprocess.check_output([link], text=True), "second\n")
        done = self.start([], "link", "good", str(link))
        self.assertIn("no test program named good", done.stderr)


if __name__ == "__main__":
    unittest.main()
