"""What must hold for everything that is released: no secret, no path of the machine that built it, no role in another's package.

`check.py FOLDER` reads the artefacts as anyone who downloads them does: it unpacks packages, layers and the tarball.
"""

import gzip
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import zipfile

# Names of files that hold secrets: see docs/operating.md.
SECRET_NAMES = re.compile(r"(^|/)(tls\.key|ca\.key|key-file|fence|slots|[^/]*\.(seed|device|pass|pem|fence))$")
# A key in PEM form: the header alone is in every program that can read one.
SECRET_TEXTS = [
    ("a private key", re.compile(rb"-----BEGIN [A-Z ]*PRIVATE KEY-----\s+[A-Za-z0-9+/=]{32}")),
    ("a password in an address", re.compile(rb"[a-z]+://[A-Za-z0-9._-]+:[^\s:/@{}<>$\"'\\`|]{6,}@[A-Za-z0-9]")),
    ("a token", re.compile(rb"\b(ghp_[A-Za-z0-9]{36}|AKIA[0-9A-Z]{16}|xox[bap]-[0-9A-Za-z-]{20,})\b")),
]
# A seed is 64 hexadecimal digits, alone in its file.
SEED = re.compile(rb"\s*[0-9a-f]{64}\s*")
# Debian's own files: public certificates of authorities.
PUBLIC = re.compile(r"^usr/share/ca-certificates/")


def members(tar):
    """Names and contents of the files in a tar archive."""
    for entry in tar:
        if entry.isreg():
            yield entry.name.removeprefix("./"), tar.extractfile(entry).read()


def deb(path):
    """Names and contents of the files in a Debian package, and of its scripts."""
    for option, prefix in (("--fsys-tarfile", ""), ("--ctrl-tarfile", "DEBIAN/")):
        data = subprocess.run(["dpkg-deb", option, path], check=True, capture_output=True).stdout
        with tarfile.open(fileobj=io.BytesIO(data)) as tar:
            yield from ((prefix + name, content) for name, content in members(tar))


def packed(path):
    """Names and contents of the files in a compressed tar archive: the tarball, a layer."""
    with tarfile.open(path, "r:gz") as tar:
        yield from members(tar)


def wheel(path):
    """Names and contents of the files in a Python wheel."""
    with zipfile.ZipFile(path) as read:
        yield from ((name, read.read(name)) for name in read.namelist() if not name.endswith("/"))


def contents(dist):
    """Every file of every artefact: the artefact, the name, the content."""
    for path in sorted(file for file in dist.rglob("*") if file.is_file()):
        artefact = str(path.relative_to(dist))
        read = path.read_bytes()
        inner = [(path.name, read)]
        if path.suffix == ".deb":
            inner = deb(path)
        elif path.suffix == ".whl":
            inner = wheel(path)
        elif read[:2] == b"\x1f\x8b":
            inner = packed(path)
        for name, content in inner:
            unzipped = gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
            yield artefact, name, unzipped


def secrets(name, content):
    """What in a file is secret, or looks so."""
    if SECRET_NAMES.search(name) and not PUBLIC.search(name):
        yield "a file with the name of a secret"
    if SEED.fullmatch(content[:200]):
        yield "a seed"
    for what, pattern in SECRET_TEXTS:
        if pattern.search(content):
            yield what


def places():
    """Folders of this machine that nobody else need know."""
    home, here = str(pathlib.Path.home()), str(pathlib.Path(__file__).resolve().parents[2])
    cargo = os.environ.get("CARGO_HOME", home + "/.cargo")
    return sorted({here.encode(), cargo.encode()})


def faults(dist):
    """Everything that is wrong, one line each."""
    found = []
    for artefact, name, content in contents(dist):
        found += [f"{artefact}: {name}: {what}" for what in secrets(name, content)]
        found += [f"{artefact}: {name}: it names {place.decode()}" for place in places() if place in content]
        role = re.match(r"alpheus(?:-([a-z]+))?_", artefact)
        if role and (other := foreign(role[1], name)):
            found.append(f"{artefact}: {name}: it belongs to the role {other}")
    return found


def foreign(role, name):
    """The role whose unit, settings or folder a file is, if it is not this package's."""
    named = re.search(r"(?:systemd/system/alpheus-([a-z]+)\.service|etc/alpheus/([a-z]+)\.toml|var/lib/alpheus-([a-z]+))", name)
    other = next((one for one in named.groups() if one), None) if named else None
    return other if other != role else None


def bill(dist):
    """What is wrong with the bill of materials, beyond what is secret."""
    read = json.loads(next(dist.glob("*.cdx.json")).read_text())
    names = {one["name"] for one in read["components"]}
    wrong = [f"the bill of materials lacks {name}" for name in ("rustls", "rdkafka", "libc6", "curve25519-dalek")
             if name not in names]
    wrong += [f"{one['name']} is in it, and only tests use it" for one in read["components"]
              if one["name"] in ("proptest", "criterion", "fantoccini")]
    refused = ("AGPL", "BSD-3-Clause-Clear")
    for one in read["components"]:
        terms = " ".join(licence["expression"] for licence in one.get("licenses", []))
        alternatives = terms.split(" OR ")
        if all(any(bad in alternative for bad in refused) for alternative in alternatives):
            wrong.append(f"{one['name']} is under {terms}")
    return wrong


def report(dist):
    """Prints what is wrong, or the sizes; the exit status."""
    wrong = faults(dist) + bill(dist)
    for line in wrong:
        print("FAULT", line, file=sys.stderr)
    for file in sorted(dist.iterdir()):
        size = sum(one.stat().st_size for one in ([file] if file.is_file() else file.rglob("*")) if one.is_file())
        print(f"figure: {file.name} = {size / 1e3:,.1f} kB")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(report(pathlib.Path(sys.argv[1])))
