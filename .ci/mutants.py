"""Tests mutants of a crate, a shard a run, and adds up what was found.

    python3 .ci/mutants.py CRATE [--shards N]   # tests the next N shards of the crate
    python3 .ci/mutants.py --table              # prints the figures

Of each crate a sample is tested: shards of about twenty mutants, in an order that the seed draws, until
there are two hundred mutants. A mutant that the tests miss is a guard that nobody would miss. Figures are kept
in bench/results/mutants.json, and start again for a crate whose mutants have changed.

Needs cargo-mutants: cargo install --locked cargo-mutants
"""

import argparse
import hashlib
import json
import math
import random
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FIGURES = ROOT / "bench" / "results" / "mutants.json"
SEED, SAMPLE, SHARD = 1, 200, 20
# How cargo-mutants names what became of a mutant.
KINDS = {"CaughtMutant": "caught", "MissedMutant": "missed", "Timeout": "timeout", "Unviable": "unviable"}


def order(crate, shards):
    """All shards, in the order in which they are tested."""
    drawn = list(range(shards))
    random.Random(f"{SEED} {crate}").shuffle(drawn)
    return drawn


def record(known, crate, names):
    """The crate's figures so far; empty if its mutants are others now."""
    digest = hashlib.sha256("\n".join(names).encode()).hexdigest()[:16]
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
        for kind, names in shard.items():
            total[kind] += names if kind != "missed" else len(names)
    return total


def read(outcomes):
    """One shard, from what cargo-mutants has written."""
    shard = {kind: 0 for kind in KINDS.values()} | {"missed": []}
    for outcome in outcomes["outcomes"]:
        kind = KINDS.get(outcome["summary"])
        if kind is None or "Mutant" not in outcome["scenario"]:
            continue
        if kind == "missed":
            shard["missed"].append(outcome["scenario"]["Mutant"]["name"])
        else:
            shard[kind] += 1
    return shard


def interval(caught, tested):
    """Wilson's interval of 95 % for the share that is caught."""
    if not tested:
        return 0.0, 1.0
    z, share = 1.96, caught / tested
    middle = share + z * z / (2 * tested)
    width = z * math.sqrt(share * (1 - share) / tested + z * z / (4 * tested * tested))
    scale = 1 + z * z / tested
    return (middle - width) / scale, (middle + width) / scale


def table(known):
    """The figures as Markdown."""
    lines = ["| crate | mutants | tested | caught | missed | share caught, 95 % interval |", "| --- " * 6 + "|"]
    for crate, found in sorted(known.items()):
        total = count(found)
        caught, missed = total["caught"] + total["timeout"], total["missed"]
        low, high = interval(caught, caught + missed)
        share = f"{caught / (caught + missed):.0%}" if caught + missed else "-"
        lines.append(f"| {crate} | {found['mutants']} | {sum(total.values())} | {caught} | {missed} "
                     f"| {share}, {low:.0%} to {high:.0%} |")
        for shard in found["tested"].values():
            lines += [f"  - missed: {name}" for name in shard["missed"]]
    return "\n".join(lines)


def mutants(crate, *more):
    command = ["cargo", "mutants", "--package", crate, *more]
    return subprocess.run(command, cwd=ROOT, check=False, text=True, stdout=subprocess.PIPE)


def test_shard(crate, at, shards):
    """Tests one shard. Its mutants are built in a copy of the tree."""
    with tempfile.TemporaryDirectory() as out:
        mutants(crate, "--shard", f"{at}/{shards}", "--output", out, "--no-shuffle", "--jobs", "1")
        return read(json.loads((Path(out) / "mutants.out" / "outcomes.json").read_text()))


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("crate", nargs="?")
    arguments.add_argument("--shards", type=int, default=1)
    arguments.add_argument("--table", action="store_true")
    given = arguments.parse_args()
    known = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    if given.table or not given.crate:
        print(table(known))
        return
    listed = mutants(given.crate, "--list")
    if listed.returncode != 0:
        sys.exit("error: no list of mutants\nhelp: cargo install --locked cargo-mutants")
    found = record(known, given.crate, sorted(listed.stdout.splitlines()))
    for at in waiting(found, given.crate)[: given.shards]:
        found["tested"][str(at)] = test_shard(given.crate, at, found["shards"])
        known[given.crate] = found
        FIGURES.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
    print(table({given.crate: found}))


if __name__ == "__main__":
    main()
