#!/usr/bin/env python3
"""Puts the header, the libraries and alpheus.pc where compilers find them: install.py CARGO PREFIX [--strip].

CARGO is cargo's folder, such as target/release. The libraries are those of

    cargo build --release --package alpheus-c --example alpheus
"""

import argparse
import pathlib
import shutil
import subprocess
import tomllib

HERE = pathlib.Path(__file__).resolve().parent


def install(cargo, prefix, strip):
    """The folder may be moved: alpheus.pc names what lies beside it."""
    (prefix / "include").mkdir(parents=True, exist_ok=True)
    folder = prefix / "lib"
    (folder / "pkgconfig").mkdir(parents=True, exist_ok=True)
    shutil.copy(HERE / "include/alpheus.h", prefix / "include")
    for name, symbols in (("libalpheus.so", "--strip-unneeded"), ("libalpheus.a", "--strip-debug")):
        shutil.copy(cargo / "examples" / name, folder)
        (folder / name).chmod(0o644)
        if strip:
            subprocess.run(["strip", symbols, folder / name], check=True)
    version = tomllib.loads((HERE.parents[1] / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    text = (HERE / "alpheus.pc.in").read_text().replace("@version@", version)
    (folder / "pkgconfig/alpheus.pc").write_text(text)


def main():
    said = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    said.add_argument("cargo", type=pathlib.Path)
    said.add_argument("prefix", type=pathlib.Path)
    said.add_argument("--strip", action="store_true", help="drop what only debuggers need, as for a release")
    given = said.parse_args()
    install(given.cargo, given.prefix.resolve(), given.strip)


if __name__ == "__main__":
    main()
