"""Tests of what `make dist` writes and of its own checks: each check finds what it is for."""

import gzip
import io
import os
import pathlib
import subprocess
import tarfile
import tempfile
import unittest
import unittest.mock
import zipfile

import archive
import check
import deb
import dist
import inventory

KEY = "-----BEGIN PRIVATE KEY-----\n" + "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIB" + "\n"


def package(folder, name, files):
    """A Debian package of some files."""
    tree = folder / "tree"
    for path, text in files.items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text(text)
    about = deb.control(name, "1", "a test", "libc6")
    deb.build(tree, about, {"postinst": "#!/bin/sh\n"}, folder / f"{name}_1_amd64.deb", 1_700_000_000)


class Secrets(unittest.TestCase):
    def found(self, files, name="alpheus-server"):
        with tempfile.TemporaryDirectory() as folder:
            package(pathlib.Path(folder), name, files)
            dist = pathlib.Path(folder, "dist")
            dist.mkdir()
            pathlib.Path(folder, f"{name}_1_amd64.deb").rename(dist / f"{name}_1_amd64.deb")
            return check.faults(dist)

    def test_each_kind_of_secret_is_found(self):
        for files in (
            {"etc/alpheus/notes.txt": "0" * 64 + "\n"},
            {"etc/alpheus/service.seed": "x"},
            {"usr/share/doc/a.txt": "text before\n" + KEY},
            {"etc/alpheus/server.toml": 'server = "https://ada:correct-horse@service.example"\n'},
            {"usr/share/doc/a.txt": str(pathlib.Path(check.__file__).parents[2])},
        ):
            self.assertEqual(len(self.found(files)), 1, files)

    def test_what_is_no_secret_passes(self):
        sample = "reads -----BEGIN PRIVATE KEY----- and https://user:PASSWORD@host\n"
        self.assertEqual(self.found({"usr/bin/alpheus": sample.replace("PASSWORD", "{}"), "etc/alpheus/server.toml": ""}), [])

    def test_a_role_in_the_package_of_another_is_found(self):
        other = {"usr/lib/systemd/system/alpheus-controller.service": "[Service]\n"}
        self.assertEqual(len(self.found(other)), 1)
        self.assertEqual(len(self.found(other, "alpheus")), 1)
        self.assertEqual(self.found(other, "alpheus-controller"), [])

    def test_wheels_are_read_too(self):
        with tempfile.TemporaryDirectory() as folder:
            with zipfile.ZipFile(pathlib.Path(folder, "a.whl"), "w", zipfile.ZIP_DEFLATED) as wheel:
                wheel.writestr("alpheus/key.py", KEY)
                wheel.writestr("alpheus/other.py", "x")
            self.assertEqual(check.faults(pathlib.Path(folder)), ["a.whl: alpheus/key.py: a private key"])

    def test_layers_and_tarballs_are_read_too(self):
        with tempfile.TemporaryDirectory() as folder:
            tree = pathlib.Path(folder, "tree")
            tree.mkdir()
            (tree / "a.1.gz").write_bytes(gzip.compress(KEY.encode()))
            dist = pathlib.Path(folder, "dist")
            archive.Layout(dist, 0).layer(archive.pack(tree, 0))
            self.assertEqual(len(check.faults(dist)), 1)


class Archives(unittest.TestCase):
    def test_the_same_files_give_the_same_bytes(self):
        def packed():
            with tempfile.TemporaryDirectory() as folder:
                for name in ("b", "a", "c/d"):
                    path = pathlib.Path(folder, name)
                    path.parent.mkdir(exist_ok=True)
                    path.write_text(name)
                return archive.zipped(archive.pack(pathlib.Path(folder), 5, "top/"))

        self.assertEqual(packed(), packed())
        with tarfile.open(fileobj=io.BytesIO(packed()), mode="r:gz") as tar:
            self.assertEqual([entry.name for entry in tar], ["top/a", "top/b", "top/c", "top/c/d"])

    def test_the_same_package_has_the_same_bytes(self):
        def built():
            with tempfile.TemporaryDirectory() as folder:
                package(pathlib.Path(folder), "alpheus", {"usr/bin/alpheus": "x", "etc/alpheus/a.toml": "y"})
                return pathlib.Path(folder, "alpheus_1_amd64.deb").read_bytes()

        self.assertEqual(built(), built())


class Examples(unittest.TestCase):
    def test_the_package_has_every_file_of_the_example(self):
        with tempfile.TemporaryDirectory() as folder:
            tree = pathlib.Path(folder)
            dist.household(tree)
            staged = {str(file.relative_to(tree / "usr/share/alpheus")) for file in tree.rglob("*") if file.is_file()}
        kept = subprocess.run(["git", "ls-files", "examples/household"], cwd=dist.ROOT, check=True, capture_output=True, text=True)
        self.assertEqual(staged, set(kept.stdout.split()))
        self.assertIn("examples/household/with-noise/schema.yaml", staged)


class Checksums(unittest.TestCase):
    """The commands are those of docs/operating.md."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dist = pathlib.Path(folder.name, "dist")
        (self.dist / "image.oci").mkdir(parents=True)
        (self.dist / "a.deb").write_text("a")
        (self.dist / "image.oci/layer").write_text("b")
        self.key = pathlib.Path(folder.name, "release")

    def runs(self, *command):
        with open(self.dist / "SHA256SUMS", "rb") as sums:
            return subprocess.run(command, cwd=self.dist, stdin=sums, capture_output=True).returncode == 0

    def test_a_changed_file_is_found(self):
        dist.sums(self.dist)
        self.assertEqual(list(self.dist.glob("*.sig")), [])
        self.assertTrue(self.runs("sha256sum", "--check", "SHA256SUMS"))
        (self.dist / "image.oci/layer").write_text("c")
        self.assertFalse(self.runs("sha256sum", "--check", "SHA256SUMS"))

    def test_a_signature_holds_for_these_sums_and_this_key_alone(self):
        for name in ("release", "other"):
            key = self.key.with_name(name)
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", key], check=True)
            kind, public = key.with_name(f"{name}.pub").read_text().split()[:2]
            key.with_name(f"{name}.allowed").write_text(f"alpheus {kind} {public}\n")
        with unittest.mock.patch.dict(os.environ, DIST_SIGNING_KEY=str(self.key)):
            dist.sums(self.dist)

        def verify(allowed):
            return self.runs("ssh-keygen", "-Y", "verify", "-f", self.key.with_name(allowed), "-I", "alpheus", "-n",
                             "alpheus", "-s", "SHA256SUMS.sig")

        self.assertTrue(verify("release.allowed"))
        self.assertFalse(verify("other.allowed"))
        with open(self.dist / "SHA256SUMS", "a") as sums:
            sums.write("0" * 64 + "  b.deb\n")
        self.assertFalse(verify("release.allowed"))


class Bill(unittest.TestCase):
    def test_licences_list_each_text_once_and_crates_without_one(self):
        with tempfile.TemporaryDirectory() as folder:
            packages = []
            for name, text in (("a", "same"), ("b", "same"), ("c", None)):
                crate = pathlib.Path(folder, name)
                crate.mkdir()
                if text:
                    (crate / "LICENSE-MIT").write_text(text)
                packages.append({"name": name, "version": "1", "license": "MIT", "source": "registry",
                                 "manifest_path": str(crate / "Cargo.toml")})
            said = inventory.licences(packages)
            self.assertEqual(said.count("\nsame\n"), 1)
            self.assertIn("Of: a 1, b 1", said)
            self.assertIn("c 1: MIT\n\n=", said)


if __name__ == "__main__":
    unittest.main()
