"""Tests mutants of a crate, a shard a run, and adds up what was found.

    python3 .ci/mutants.py CRATE [--shards N]   # tests the next N shards of the crate
    python3 .ci/mutants.py CRATE --again        # tests those again that were missed, after new tests
    python3 .ci/mutants.py --table              # writes the table again, and prints it

Of each crate a sample is tested: shards of about ten mutants from all over the crate, in an order that the seed draws,
until there are two hundred mutants. A mutant that the tests miss is a guard that nobody would miss. Figures are kept
in bench/results/mutants.json, and as a table in mutants.md. They start again for a crate whose mutants have
changed; a mutant is known by its file, its function and its change, not by its line. Why a mutant that
was missed changes nothing stands in mutants-reasons.json.

Mutants are built in target/mutants/tree, a copy of the working tree, and only with the tests of their own crate. What
they are built of stays in target/mutants/build, or in CARGO_TARGET_DIR. A test ends when it has used ten times the
processor time that it takes, so that a mutant with an endless loop counts as caught on a busy machine too.

Needs cargo-mutants: cargo install --locked cargo-mutants@VERSION
"""

import argparse
import collections
import contextlib
import datetime
import fcntl
import hashlib
import json
import math
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FIGURES = ROOT / "bench" / "results" / "mutants.json"
TABLE = FIGURES.with_suffix(".md")
REASONS = FIGURES.with_name("mutants-reasons.json")
TREE = ROOT / "target" / "mutants" / "tree"
SEED, SAMPLE, SHARD = 1, 200, 10
# How cargo-mutants names what became of a mutant.
KINDS = {"CaughtMutant": "caught", "MissedMutant": "missed", "Timeout": "timeout", "Unviable": "unviable"}
# Documentation's examples take long to build, and guard little.
TESTS = ["--lib", "--bins", "--tests", "--locked"]


def order(crate, shards):
    """All shards, in the order in which they are tested."""
    drawn = list(range(shards))
    random.Random(f"{SEED} {crate}").shuffle(drawn)
    return drawn


def identities(names):
    """What a mutant is known by, for each name that cargo-mutants has for it. Lines and columns change too often."""
    seen, known = collections.Counter(), {}
    for name in names:
        bare = re.sub(r"^([^:]+):\d+:\d+: ", r"\1: ", name)
        seen[bare] += 1
        known[name] = bare if seen[bare] == 1 else f"{bare} #{seen[bare]}"
    return known


def record(known, crate, names):
    """The crate's figures so far; empty if its mutants are others now."""
    digest = hashlib.sha256("\n".join(sorted(identities(names).values())).encode()).hexdigest()[:16]
    found = known.get(crate)
    if found is None or found["mutants_digest"] != digest:
        shards = max(1, math.ceil(len(names) / SHARD))
        found = {"mutants": len(names), "mutants_digest": digest, "shards": shards, "tested": {}}
    return found


def waiting(found, crate):
    """The shards that are still to be tested for the sample, next first."""
    done = sum(count(found).values())
    rest = [at for at in order(crate, found["shards"]) if str(at) not in found["tested"]]
    return rest[: max(0, math.ceil((SAMPLE - done) / SHARD))]


def count(found):
    """How many mutants were caught, missed and so on."""
    total = dict.fromkeys(KINDS.values(), 0)
    for shard in found["tested"].values():
        for kind in total:
            total[kind] += len(shard[kind]) if kind == "missed" else shard.get(kind, 0)
    return total


def missed(found):
    """The mutants that were missed."""
    return sorted(name for shard in found["tested"].values() for name in shard["missed"])


def read(outcomes, known):
    """One shard, from what cargo-mutants has written."""
    shard = {kind: 0 for kind in KINDS.values()} | {"missed": []}
    for outcome in outcomes["outcomes"]:
        kind = KINDS.get(outcome["summary"])
        if kind is None or "Mutant" not in outcome["scenario"]:
            continue
        if kind == "missed":
            name = outcome["scenario"]["Mutant"]["name"]
            shard["missed"].append(known.get(name, name))
        else:
            shard[kind] += 1
    return shard


def caught_since(found, again):
    """Moves the mutants that were caught when they were tested again."""
    for shard in found["tested"].values():
        now = [name for name in shard["missed"] if name in again["caught"]]
        shard["missed"] = [name for name in shard["missed"] if name not in now]
        shard["caught"] += len(now)


def interval(caught, tested):
    """Wilson's interval of 95 % for the share that is caught."""
    if not tested:
        return 0.0, 1.0
    z, share = 1.96, caught / tested
    middle = share + z * z / (2 * tested)
    width = z * math.sqrt(share * (1 - share) / tested + z * z / (4 * tested * tested))
    scale = 1 + z * z / tested
    return (middle - width) / scale, (middle + width) / scale


def table(known, reasons):
    """The figures as Markdown. Mutants with a reason change nothing, so no test can catch them."""
    lines = [
        "# Mutants",
        "",
        "By `make mutants`: cargo-mutants changes the code of a crate at random places; do the crate's own tests notice?",
        "Of each crate at most some two hundred mutants are tested, drawn by a seed. *Unviable* ones do not compile. One with an",
        "endless loop counts as caught. One that *changes nothing* is left out of the share.",
        "",
        "| crate | mutants | tested | unviable | caught | missed | changes nothing | share caught, 95 % interval | minutes |",
        "| --- " * 9 + "|",
    ]
    survivors = []
    for crate, found in sorted(known.items()):
        total, why = count(found), reasons.get(crate, {})
        equivalent = sum(name in why for name in missed(found))
        caught, left = total["caught"] + total["timeout"], total["missed"] - equivalent
        low, high = interval(caught, caught + left)
        share = f"{caught / (caught + left):.0%}, {low:.0%} to {high:.0%}" if caught + left else "-"
        minutes = round(sum(shard.get("seconds", 0) for shard in found["tested"].values()) / 60)
        lines.append(f"| {crate} | {found['mutants']} | {sum(total.values())} | {total['unviable']} | {caught} "
                     f"| {left} | {equivalent} | {share} | {minutes} |")
        survivors += [f"- {crate}: `{name}`: {why.get(name, 'a test is missing')}" for name in missed(found)]
    return "\n".join(lines + (["", "## Mutants that were missed", ""] + survivors if survivors else [])) + "\n"


def copy(to_tree=TREE, change=lambda name, content: content):
    """Brings the copy to the state of the working tree. What has not changed keeps its time, and is not built again."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, check=True,
                            text=True, stdout=subprocess.PIPE).stdout.split("\0")
    wanted = {name for name in listed if name and (ROOT / name).is_file()}
    for path in [path for path in to_tree.rglob("*") if path.is_file()]:
        if str(path.relative_to(to_tree)) not in wanted:
            path.unlink()
    for name in wanted:
        content, to = change(name, (ROOT / name).read_bytes()), to_tree / name
        if not to.is_file() or to.read_bytes() != content:
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_bytes(content)
            to.chmod((ROOT / name).stat().st_mode)


def surroundings(seconds=None):
    """The environment of a build: only our crates are built by the wrapper, and tests end after these seconds."""
    environment = dict(os.environ) | {"RUSTC_WORKSPACE_WRAPPER": str(ROOT / ".ci" / "mutants-rustc"), "CARGO_INCREMENTAL": "1"}
    environment.setdefault("CARGO_TARGET_DIR", str(ROOT / "target" / "mutants" / "build"))
    if seconds:
        environment[f"CARGO_TARGET_{host().upper().replace('-', '_')}_RUNNER"] = f"prlimit --cpu={seconds} --"
    return environment


def host():
    version = subprocess.run(["rustc", "-vV"], check=True, text=True, stdout=subprocess.PIPE).stdout
    return re.search(r"^host: (.*)$", version, re.MULTILINE)[1]


def baseline(crate):
    """Builds and tests the crate as it is. Returns seconds by the clock, and of a processor."""
    command = ["cargo", "test", "--package", crate, "--quiet", *TESTS]
    if subprocess.run([*command, "--no-run"], cwd=TREE, env=surroundings(), check=False).returncode:
        sys.exit(f"error: the tests of {crate} do not build")
    start, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    ran = subprocess.run(command, cwd=TREE, env=surroundings(), check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if ran.returncode:
        sys.exit(f"error: the tests of {crate} fail without any change\n{ran.stdout.decode(errors='replace')[-2000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.monotonic() - start, used


def mutants(crate, *more, environment=None):
    command = ["cargo", "mutants", "--dir", str(TREE), "--package", crate, *more]
    return subprocess.run(command, cwd=TREE, env=environment, check=False, text=True, stdout=subprocess.PIPE)


def test(crate, known, clock, used, *which):
    """Tests these mutants. What became of them, and for how long it took."""
    wall, processor = max(120, round(10 * clock)), max(5, round(10 * used))
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as out:
        ran = mutants(crate, *which, "--in-place", "--output", out, "--no-shuffle", "--sharding", "round-robin", "--baseline", "skip", "--timeout", str(wall),
                "--build-timeout", "1800", "--colors", "never", "--", *TESTS, environment=surroundings(processor))
        # All were caught, some were missed, some took too long.
        if ran.returncode not in (0, 2, 3):
            sys.exit(f"error: cargo-mutants ended with {ran.returncode} before the shard was tested\n{ran.stdout[-2000:]}")
        outcomes = json.loads((Path(out) / "mutants.out" / "outcomes.json").read_text())
    tested = read(outcomes, known) | {"seconds": round(time.monotonic() - start), "day": datetime.date.today().isoformat()}
    done = {known.get(outcome["scenario"]["Mutant"]["name"]) for outcome in outcomes["outcomes"]
            if "Mutant" in outcome["scenario"] and outcome["summary"] in ("CaughtMutant", "Timeout")}
    return tested, done


def keep(known):
    reasons = json.loads(REASONS.read_text()) if REASONS.exists() else {}
    FIGURES.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
    TABLE.write_text(table(known, reasons))


@contextlib.contextmanager
def alone(tree=TREE):
    """One run at a time changes the copy."""
    tree.mkdir(parents=True, exist_ok=True)
    with tree.with_name("lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit("error: another run changes the same copy; wait for its end")
        yield


def run(given, known):
    copy()
    listed = mutants(given.crate, "--list", "--colors", "never")
    if listed.returncode != 0:
        sys.exit("error: no list of mutants\nhelp: cargo install --locked cargo-mutants@VERSION")
    names = listed.stdout.splitlines()
    identity, found = identities(names), record(known, given.crate, names)
    clock, used = baseline(given.crate)
    print(f"{given.crate}: {len(names)} mutants; its tests take {clock:.0f} s, {used:.0f} s of a processor", flush=True)
    if given.again:
        wanted = missed(found)
        which = [word for name in names if identity[name] in wanted for word in ("--re", f"^{re.escape(name)}$")]
        if which:
            _, caught = test(given.crate, identity, clock, used, *which)
            caught_since(found, {"caught": caught})
            known[given.crate] = found
            keep(known)
    else:
        for at in waiting(found, given.crate)[: given.shards]:
            shard, _ = test(given.crate, identity, clock, used, "--shard", f"{at}/{found['shards']}")
            found["tested"][str(at)] = shard
            known[given.crate] = found
            keep(known)
    print(f"{given.crate}: {count(found)}")
    print("\n".join(missed(found)))


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("crate", nargs="?")
    arguments.add_argument("--shards", type=int, default=1)
    arguments.add_argument("--again", action="store_true")
    arguments.add_argument("--table", action="store_true")
    given = arguments.parse_args()
    known = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    if given.table or not given.crate:
        keep(known)
        print(TABLE.read_text(), end="")
        return
    with alone():
        run(given, known)


if __name__ == "__main__":
    main()
