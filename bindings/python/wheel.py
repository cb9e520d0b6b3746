#!/usr/bin/env python3
"""Builds the wheel of a module and a program that cargo has built, and checks what is in it.

    cargo build --release --package alpheus --bin alpheus
    cargo build --release --package alpheus-python --example native
    python3 bindings/python/wheel.py target/release target/wheel

The first argument is cargo's folder, the second the one for the wheel. It needs hatchling.
"""

import argparse
import os
import pathlib
import shutil
import stat
import subprocess
import sys
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
#: Megabytes that a wheel for release may have.
MAX_RELEASE = 20


def build(cargo, output, strip):
    """The wheel's path."""
    with tempfile.TemporaryDirectory(prefix="alpheus-") as folder:
        module = pathlib.Path(folder) / "module.so"
        program = pathlib.Path(folder) / "alpheus"
        shutil.copy(cargo / "examples/libnative.so", module)
        shutil.copy(cargo / "alpheus", program)
        if strip:
            subprocess.run(["strip", module, program], check=True)
        program.chmod(0o755)
        named = {"WHEEL_MODULE": str(module), "WHEEL_PROGRAM": str(program)}
        line = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(output)]
        subprocess.run(line, cwd=HERE, check=True, env={**os.environ, **named}, stdout=subprocess.DEVNULL)
    (wheel,) = output.glob("alpheus-*.whl")
    return wheel


def check(wheel):
    """What is in it, and that the program can be run once it is installed."""
    with zipfile.ZipFile(wheel) as files:
        names = set(files.namelist())
        program = files.getinfo("alpheus/bin/alpheus")
    wanted = {"alpheus/__init__.py", "alpheus/_native.abi3.so", "alpheus/_native.pyi", "alpheus/py.typed"}
    assert wanted <= names, wanted - names
    assert not any("__pycache__" in name or name.endswith("known_answers.so") for name in names)
    assert program.external_attr >> 16 & stat.S_IXUSR, "the program cannot be run"


def main():
    """Builds one wheel."""
    said = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    said.add_argument("cargo", type=pathlib.Path)
    said.add_argument("output", type=pathlib.Path)
    said.add_argument("--strip", action="store_true", help="drop symbols, as for a release")
    given = said.parse_args()
    shutil.rmtree(given.output, ignore_errors=True)
    given.output.mkdir(parents=True)
    wheel = build(given.cargo.resolve(), given.output.resolve(), given.strip)
    check(wheel)
    megabytes = wheel.stat().st_size / 1e6
    if given.strip and megabytes > MAX_RELEASE:
        sys.exit(f"error: {wheel.name} has {megabytes:.1f} MB, more than {MAX_RELEASE}")
    print(f"{wheel}: {megabytes:.1f} MB")


if __name__ == "__main__":
    main()
