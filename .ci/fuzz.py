"""Fuzzes every decoder with libFuzzer, and adds up what was found.

    python3 .ci/fuzz.py [TARGET ...] [--seconds N]  # fuzzes each target for N seconds, those with the least time first
    python3 .ci/fuzz.py --table                     # writes the table from the figures again

Needs neither nightly Rust nor cargo-fuzz: libfuzzer-sys builds libFuzzer, and the compiler's flags for
coverage are stable. Each target starts with the inputs of its plain test and with what earlier runs have kept in
fuzz/corpus. What it finds is in fuzz/artifacts; copy it to fuzz/seeds/TARGET, and the plain test fails until it is
fixed. Figures are kept in bench/results/fuzz.json, and as a table in fuzz.md.

--ours gives the flags only to our own crates, not to libraries. With CARGO_TARGET_DIR=target, and the same
variables, everything else is then taken from the build of `make test`.
"""

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FIGURES = ROOT / "bench" / "results" / "fuzz.json"
TABLE = FIGURES.with_suffix(".md")
FUZZ = ROOT / "fuzz"
# As cargo-fuzz passes them. Sanitizers need nightly, and our crates have no unsafe code.
FLAGS = ["-Cpasses=sancov-module", "-Clink-dead-code", "--cfg", "fuzzing"] + [
    f"-Cllvm-args=-sanitizer-coverage-{what}"
    for what in ("level=4", "inline-8bit-counters", "pc-table", "trace-compares")
]
FEATURES = "alpheus/kafka,alpheus/object-store,alpheus-bench/pairing,alpheus-fuzz/libfuzzer"
# How libFuzzer says by its exit status that it has found something.
FOUND = {77: "crash", 70: "timeout", 71: "memory"}


def targets():
    listed = (FUZZ / "src" / "targets.rs").read_text()
    return re.findall(r'^    \("(\w+)", crate::\1\),$', listed, re.MULTILINE)


def build(ours):
    """Builds the program of all targets and the plain test. Returns executables by name."""
    environment = dict(os.environ)
    command = ["cargo", "build", "--locked", "--message-format", "json-render-diagnostics"]
    if ours:
        environment |= {"RUSTC_WORKSPACE_WRAPPER": str(ROOT / ".ci" / "fuzz-rustc"), "FUZZ_FLAGS": " ".join(FLAGS)}
        command += ["--profile", "test", "--workspace", "--features", FEATURES]
    else:
        environment.pop("RUSTC_WORKSPACE_WRAPPER", None)
        environment |= {"RUSTFLAGS": " ".join(FLAGS)}
        # With a target, what the build itself runs has none of the flags.
        command += ["--profile", "fuzz", "--target", host(), "--package", "alpheus-fuzz", "--features", "libfuzzer"]
    environment.setdefault("CARGO_TARGET_DIR", str(ROOT / "target" / "fuzz"))
    command += ["--test", "plain", "--bin", "fuzz"]
    built = subprocess.run(command, cwd=ROOT, env=environment, check=False, text=True, stdout=subprocess.PIPE)
    if built.returncode != 0:
        sys.exit("error: the fuzz targets cannot be built")
    return executables(built.stdout.splitlines())


def host():
    version = subprocess.run(["rustc", "-vV"], check=True, text=True, stdout=subprocess.PIPE).stdout
    return re.search(r"^host: (.*)$", version, re.MULTILINE)[1]


def executables(lines):
    """The executables by name, from cargo's messages."""
    found = {}
    for line in lines:
        message = json.loads(line) if line.startswith("{") else {}
        if message.get("executable"):
            found[message["target"]["name"]] = message["executable"]
    return found


def seeds(plain):
    """The inputs of the plain tests, a folder each."""
    folder = ROOT / "target" / "fuzz-seeds"
    environment = os.environ | {"ALPHEUS_FUZZ_SEEDS": str(folder), "CARGO_MANIFEST_DIR": str(FUZZ)}
    subprocess.run([plain, "--quiet", "--test-threads", "1"], cwd=FUZZ, env=environment, check=True,
                   stdout=subprocess.DEVNULL)
    return folder


def fuzz(executable, target, inputs, seconds):
    """Runs one target. Returns what the run adds."""
    corpus, artifacts = FUZZ / "corpus" / target, FUZZ / "artifacts" / target
    folders = [inputs / target, FUZZ / "seeds" / target]
    for folder in (corpus, artifacts):
        folder.mkdir(parents=True, exist_ok=True)
    command = [executable, str(corpus), *(str(folder) for folder in folders if folder.is_dir()),
               f"-max_total_time={seconds}", f"-artifact_prefix={artifacts}/", "-print_final_stats=1", "-timeout=60"]
    before, start = processor(), time.monotonic()
    environment = os.environ | {"ALPHEUS_FUZZ_TARGET": target}
    ran = subprocess.run(command, cwd=FUZZ, env=environment, check=False, text=True, errors="replace",
                         stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    run = read(ran.stderr, ran.returncode)
    run |= {"seconds": round(time.monotonic() - start), "processor_seconds": round(processor() - before)}
    if ran.returncode:
        print(ran.stderr[-3000:], file=sys.stderr)
    return run | {"corpus": sum(1 for _ in corpus.iterdir())}


def processor():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def read(text, status):
    """What libFuzzer has said of a run."""
    run = {"executions": 0, "coverage": 0, "features": 0, "findings": []}
    if reported := re.findall(r"^stat::number_of_executed_units:\s*(\d+)", text, re.MULTILINE):
        run["executions"] = int(reported[-1])
    elif reported := re.findall(r"^#(\d+)\s", text, re.MULTILINE):
        run["executions"] = int(reported[-1])
    if reported := re.findall(r" cov: (\d+) ft: (\d+)", text):
        run["coverage"], run["features"] = int(reported[-1][0]), int(reported[-1][1])
    if status:
        named = re.findall(r"Test unit written to \S*?([^/\s]+)$", text, re.MULTILINE)
        kind = FOUND.get(status, f"status {status}")
        run["findings"] = [f"{kind}: {named[-1] if named else 'no input was kept'}"]
    return run


def add(known, target, run, build_kind):
    """The target's figures with those of one more run."""
    found = known.get(target, {"runs": 0, "seconds": 0, "processor_seconds": 0, "executions": 0, "findings": []})
    for what in ("seconds", "processor_seconds", "executions"):
        found[what] += run[what]
    found["runs"] += 1
    found["findings"] = found["findings"] + [one for one in run["findings"] if one not in found["findings"]]
    # Of the last run that came to its end, and of its build.
    if run["coverage"]:
        found |= {what: run[what] for what in ("coverage", "features", "corpus")} | {"flags": build_kind}
    known[target] = found


def waiting(known, names):
    """Targets in the order in which they are fuzzed: those with the least time first."""
    return sorted(names, key=lambda name: (known.get(name, {}).get("seconds", 0), name))


def table(known):
    """The figures as Markdown."""
    total = {what: sum(found[what] for found in known.values())
             for what in ("seconds", "processor_seconds", "executions")}
    lines = [
        "# Decoders under libFuzzer",
        "",
        "By `make fuzz`; figures add up over runs. *Time* is by the clock, *processor* what the target had of it.",
        "*Coverage* counts edges of the program that some input of the corpus reaches, of the last run: of our own crates, or of",
        "libraries too (*flags*). It can be compared only between runs of one build. A finding that is fixed stays in the list.",
        "",
        "| target | runs | time, s | processor, s | executions | coverage | features | corpus | flags | findings |",
        "| --- " * 10 + "|",
    ]
    for target, found in sorted(known.items()):
        lines.append(f"| {target} | {found['runs']} | {found['seconds']} | {found['processor_seconds']} "
                     f"| {found['executions']} | {found.get('coverage', '-')} | {found.get('features', '-')} "
                     f"| {found.get('corpus', '-')} | {found.get('flags', '-')} | {len(found['findings'])} |")
    lines += [f"| **{len(known)} targets** | | {total['seconds']} | {total['processor_seconds']} "
              f"| {total['executions']} | | | | | {sum(len(found['findings']) for found in known.values())} |"]
    found = [f"- {target}: {one}" for target, found in sorted(known.items()) for one in found["findings"]]
    return "\n".join(lines + ([""] + found if found else [])) + "\n"


def keep(known):
    FIGURES.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
    TABLE.write_text(table(known))


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("targets", nargs="*")
    arguments.add_argument("--seconds", type=int, default=60)
    arguments.add_argument("--ours", action="store_true")
    arguments.add_argument("--table", action="store_true")
    given = arguments.parse_args()
    known = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    if given.table:
        keep(known)
        return
    if unknown := set(given.targets) - set(targets()):
        sys.exit(f"error: no fuzz target {', '.join(sorted(unknown))}; there are {', '.join(targets())}")
    built = build(given.ours)
    inputs = seeds(built["plain"])
    failed = False
    for target in waiting(known, given.targets or targets()):
        run = fuzz(built["fuzz"], target, inputs, given.seconds)
        add(known, target, run, "ours" if given.ours else "all")
        keep(known)
        failed |= bool(run["findings"])
        print(f"{target}: {run['executions']} executions in {run['seconds']} s ({run['processor_seconds']} s of a processor), "
              f"coverage {run['coverage']}, corpus {run['corpus']}, findings: {', '.join(run['findings']) or 'none'}", flush=True)
    if failed:
        sys.exit("error: findings; their inputs are in fuzz/artifacts\nhelp: copy each to fuzz/seeds/TARGET, and fix what fails")


if __name__ == "__main__":
    main()
