#!/usr/bin/env python3
"""Builds what is released, in target/dist: `make dist`.

Debian packages, an image, a tarball, a Python wheel, an npm package, a bill of materials, licences and checksums. Two runs over one commit, with one
toolchain and one state of Debian, give the same bytes; SOURCE_DATE_EPOCH is the commit's time unless it is set.
DIST_SIGNING_KEY, if it is set, names a key of ssh-keygen that signs the checksums.
"""

import datetime
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tomllib

import archive
import check
import deb
import inventory

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
DIST = ROOT / "target/dist"
BUILD = ROOT / "target/dist-build"
FEATURES = "kafka"
TARGET = "x86_64-unknown-linux-gnu"
COMPLETIONS = {
    "bash": "usr/share/bash-completion/completions/alpheus",
    "zsh": "usr/share/zsh/vendor-completions/_alpheus",
    "fish": "usr/share/fish/vendor_completions.d/alpheus.fish",
}


def said(*command, **options):
    """What a command prints."""
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT, **options).stdout


def epoch():
    """The time that all files get."""
    return int(os.environ.get("SOURCE_DATE_EPOCH") or said("git", "log", "-1", "--format=%ct"))


def release(*what, profile="release"):
    """Builds for release, with paths of this machine left out; gives cargo's folder."""
    home = os.environ.get("CARGO_HOME") or str(pathlib.Path.home() / ".cargo")
    maps = [(home, "/cargo"), (str(ROOT), "/alpheus")]
    c_flags = " ".join(f"-ffile-prefix-map={here}={there}" for here, there in maps)
    flags = {
        "CARGO_TARGET_DIR": str(BUILD), "CARGO_INCREMENTAL": "0", "CARGO_PROFILE_RELEASE_STRIP": "symbols",
        "RUSTFLAGS": " ".join(f"--remap-path-prefix={here}={there}" for here, there in maps),
        "CFLAGS": c_flags, "CXXFLAGS": c_flags,
    }
    command = ["cargo", "build", "--profile", profile, "--locked", *what]
    subprocess.run(command, cwd=ROOT, check=True, env={**os.environ, **flags})
    return BUILD / profile


def wheel(now):
    """The Python wheel. Its program is without Kafka, whose library would need the system's OpenSSL."""
    what = ("--package", "alpheus", "--bin", "alpheus", "--package", "alpheus-python", "--example", "native")
    built = release(*what, profile="wheel")
    python = os.environ.get("WHEEL_PYTHON", sys.executable)
    folder = BUILD / "python"
    subprocess.run([python, ROOT / "bindings/python/wheel.py", built, folder, "--strip"], check=True,
                   env={**os.environ, "SOURCE_DATE_EPOCH": str(now)})
    (made,) = folder.glob("*.whl")
    shutil.copy(made, DIST / made.name)


def library(tree):
    """The library for C, with its header and alpheus.pc. The tarball alone has it."""
    built = release("--package", "alpheus-c", "--example", "alpheus")
    subprocess.run([sys.executable, ROOT / "bindings/c/install.py", built, tree / "usr", "--strip"], check=True)


def compile_program():
    """The program of the packages."""
    return release("--package", "alpheus", "--features", FEATURES) / "alpheus"


def write(path, data):
    """A file with its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())


def household(tree):
    """The example, with its folders."""
    for example in sorted(file for file in (ROOT / "examples/household").rglob("*") if file.is_file()):
        write(tree / "usr/share/alpheus" / example.relative_to(ROOT), example.read_bytes())


def stage(tree, program, texts):
    """The files of the package `alpheus`."""
    (tree / "usr/bin").mkdir(parents=True)
    shutil.copy(program, tree / "usr/bin/alpheus")
    pages = tree / "usr/share/man/man1"
    pages.mkdir(parents=True)
    said(program, "manual", pages)
    for page in sorted(pages.iterdir()):
        write(page.with_name(page.name + ".gz"), archive.zipped(page.read_bytes()))
        page.unlink()
    for shell, path in COMPLETIONS.items():
        write(tree / path, said(program, "completions", shell))
    sandbox = "alpheus-.service.d/10-sandbox.conf"
    write(tree / "usr/lib/systemd/system" / sandbox, (ROOT / "deploy/systemd" / sandbox).read_bytes())
    household(tree)
    alerts = ROOT / "deploy/prometheus/alerts.yaml"
    write(tree / "usr/share/alpheus/prometheus/alerts.yaml", alerts.read_bytes())
    dashboard = ROOT / "deploy/grafana/alpheus.json"
    write(tree / "usr/share/alpheus/grafana/alpheus.json", dashboard.read_bytes())
    for name, text in texts.items():
        write(tree / "usr/share/doc/alpheus" / name, text)


def tarball(tree, roles, version, now):
    """The same files and the library for C, for other systems, below one folder: copy bin, include, lib and share into /usr or /usr/local."""
    library(tree)
    for name, given in roles.items():
        write(tree / f"usr/lib/systemd/system/alpheus-{name}.service", deb.unit(name, given))
        write(tree / f"usr/share/alpheus/settings/{name}.toml", given["settings"])
    deb.plain(tree)
    tar = archive.pack(tree / "usr", now, f"alpheus-{version}/")
    write(DIST / f"alpheus-{version}-{TARGET}.tar.gz", archive.zipped(tar))


def image(tree, debs, version, now):
    """The image: one layer of libraries, one with the program."""
    folder = DIST / f"alpheus-{version}-amd64.oci"
    layout = archive.Layout(folder, now)
    base = BUILD / "image"
    shutil.rmtree(base, ignore_errors=True)
    base.mkdir()
    archive.runtime(base, debs)
    layout.layer(archive.pack(base, now))
    top = BUILD / "image-top"
    shutil.rmtree(top, ignore_errors=True)
    shutil.copytree(tree, top)
    (top / "var/lib/alpheus").mkdir(parents=True)
    (top / "var/lib/alpheus").chmod(0o700)
    layout.layer(archive.pack(top, now, owner=lambda path: archive.USER if path == "var/lib/alpheus" else 0))
    layout.finish(version, datetime.datetime.fromtimestamp(now, datetime.timezone.utc).isoformat())


def npm(version):
    """The package for browsers and Node, as npm packs it."""
    folder = ROOT / "bindings/js"
    if json.loads((folder / "package.json").read_text())["version"] != version:
        raise SystemExit(f"error: bindings/js/package.json is not of version {version}")
    subprocess.run(["npm", "run", "--silent", "build"], cwd=folder, check=True)
    subprocess.run(["npm", "pack", "--silent", "--pack-destination", DIST], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    (DIST / f"alpheus-{version}.tgz").rename(DIST / f"alpheus-{version}-npm.tgz")


def sums(folder):
    """SHA256SUMS of all files, and its signature if there is a key."""
    files = sorted(file for file in folder.rglob("*") if file.is_file() and not file.name.startswith("SHA256SUMS"))
    lines = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.relative_to(folder)}\n" for file in files]
    (folder / "SHA256SUMS").write_text("".join(lines))
    if key := os.environ.get("DIST_SIGNING_KEY"):
        subprocess.run(["ssh-keygen", "-q", "-Y", "sign", "-f", key, "-n", "alpheus", folder / "SHA256SUMS"], check=True)


def main():
    """Builds everything, then checks it."""
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir(parents=True)
    now = epoch()
    # First: both programs have one path.
    wheel(now)
    program = compile_program()
    version = said(program, "--version").split()[1]
    roles = tomllib.loads((HERE / "roles.toml").read_text())
    needed = re.findall(r"[a-z0-9.+-]+(?= \(|,|$)", deb.libraries(program))
    debs = BUILD / "debs"
    shutil.rmtree(debs, ignore_errors=True)
    found, versions = archive.fetch(["base-files", "ca-certificates", "gcc-12-base", "tzdata", *needed], debs)
    packages = inventory.shipped(ROOT, FEATURES, TARGET)
    rust = said("rustc", "--version").split()[1]
    texts = {
        "sbom.cdx.json": inventory.bill(ROOT, version, packages, versions, rust),
        "copyright": (ROOT / "LICENSE").read_text(),
        "third-party-licences.txt": inventory.licences(packages),
    }
    tree = BUILD / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    stage(tree, program, texts)
    deb.plain(tree)
    deb.program(tree, version, DIST, now)
    for name, given in roles.items():
        deb.role(name, given, version, DIST, now)
    image(tree, found, version, now)
    write(DIST / f"alpheus-{version}.cdx.json", texts["sbom.cdx.json"])
    write(DIST / f"alpheus-{version}-third-party-licences.txt", texts["third-party-licences.txt"])
    tarball(tree, roles, version, now)
    npm(version)
    sums(DIST)
    # What drills/packages.sh looks at. It is no part of the release.
    write(BUILD / "commit", said("git", "describe", "--always", "--dirty"))
    print(f"target/dist: glibc {deb.glibc(program)} or newer; needs {deb.libraries(program)}")
    return check.report(DIST)


if __name__ == "__main__":
    sys.exit(main())
