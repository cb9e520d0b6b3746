"""Checks pictures.py with pages of its own."""

import pathlib
import tempfile
import unittest

import pictures


class Pictures(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for path in (f"{pictures.PAGES}/a.js", pictures.SCENE, f"{pictures.PICTURES}/a.png"):
            self.write(path, "first")
        pictures.main(["--made"], self.root)

    def write(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def check(self):
        return pictures.main(["--check"], self.root)

    def test_pictures_of_these_pages_are_accepted(self):
        self.assertIsNone(self.check())

    def test_whatever_has_changed_is_named_with_the_remedy(self):
        for path in (f"{pictures.PAGES}/a.js", f"{pictures.PAGES}/new.css", pictures.SCENE,
                     f"{pictures.PICTURES}/a.png", f"{pictures.PICTURES}/new.png"):
            self.write(path, "second")
            said = self.check()
            self.assertIn(path, said)
            self.assertIn("make pictures", said)
            pictures.main(["--made"], self.root)
            self.assertIsNone(self.check())

    def test_what_is_gone_is_named(self):
        (self.root / pictures.PICTURES / "a.png").unlink()
        self.assertIn("docs/pages/a.png", self.check())
        pictures.main(["--made"], self.root)
        (self.root / pictures.PICTURES / pictures.NOTE).unlink()
        self.assertIn("a.js", self.check())


if __name__ == "__main__":
    unittest.main()
