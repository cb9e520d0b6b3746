"""Runs drills one after the other: run.py [--long] [NAME...]

A drill is red if its command fails, or if it says `skipped`: then it has shown nothing. All drills run, also after
a red one. Each has a log in target/drills. Lines `figure: NAME = VALUE` of a log, and seconds of each drill, stand in
bench/results/DATE-drills.md and .json, with the commit and the machine.
"""

import argparse
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
CARGO = os.environ.get("CARGO", "cargo")
TESTS = [CARGO, "test", "--workspace", "--features",
         "alpheus/kafka,alpheus/object-store,alpheus-bench/pairing", "--locked"]

# Name, command, its environment, and what it shows.
DRILLS = {
    # But for those that measure time by the machine's clock.
    "ignored": ([*TESTS, "--", "--ignored", "--skip", "drills::"], {"ALPHEUS_FORGERIES": "20000", "ALPHEUS_BOUNDED_WINDOWS": "500"},
                "the tests that take minutes: real files in all their forms, liars, storms"),
    "totals": (["make", "totals"], {}, "noise and totals follow their laws, more closely than in each test"),
    "kills": (["make", "kills"], {}, "replays that are killed at two hundred random points"),
    "outages": (["sh", "drills/outages.sh"], {}, "the service is away for up to an hour, and put back from a copy"),
    "keys": (["sh", "drills/keys.sh"], {}, "a day with certificates of an hour: renewals, a move, another authority, a revocation"),
    "strangers": (["sh", "drills/strangers.sh"], {}, "ten thousand strangers connect and say nothing"),
    "alerts": (["sh", "drills/alerts.sh"], {}, "each fault of a live deployment raises its alert within a minute"),
    "memory": (["sh", "drills/memory.sh"], {},
               "ten thousand strangers and a hostile device at a service of 512 MB: windows whole, health at once"),
    "registry": (["sh", "drills/registry.sh"], {}, "the JVM's client against a real schema registry"),
    "packages": (["make", "packages"], {}, "`make dist`, and its packages and image on bare systems: install, run, first window, first answer of `init`"),
}
# Hours of a processor each.
LONG = {
    "forgeries": ([*TESTS, "--test", "all", "--", "--ignored", "--nocapture", "none_of_a_million"],
                  {"ALPHEUS_FORGERIES": "1000000"}, "a million random forgeries of bounded windows"),
    "liars": ([*TESTS, "--test", "all", "--", "--ignored", "--nocapture", "ten_thousand_windows"],
              {"ALPHEUS_BOUNDED_WINDOWS": "10000"}, "ten thousand windows with liars of every kind"),
}


def run(name, drill, logs):
    """Seconds, whether it passed, and why not, and the figures that it printed."""
    command, environment, _ = drill
    log, skips = logs / f"{name}.log", logs / f"{name}.skips"
    skips.unlink(missing_ok=True)
    begin = time.monotonic()
    with log.open("w") as out:
        code = subprocess.run(command, cwd=ROOT, env=os.environ | {"CI": "true", "TEST_SKIPS": str(skips.resolve())} | environment, check=False,
                              stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT).returncode
    text = log.read_text(errors="replace")
    figures = dict(re.findall(r"^figure: (.+?) = (.+)$", text, re.M))
    # Tests that pass print nothing: their skips are in the file.
    noted = skips.read_text() if skips.exists() else ""
    skipped = re.search(r"^(?:note: )?skipped: (.*)$", text + noted, re.M) or re.search(r"^(.+)$", noted, re.M)
    why = f"exit code {code}" if code else f"skipped: {skipped[1]}" if skipped else ""
    return {"seconds": round(time.monotonic() - begin), "passed": not why, "why": why, "figures": figures}


def machine():
    """The processor and how many there are of it."""
    info = pathlib.Path("/proc/cpuinfo").read_text() if pathlib.Path("/proc/cpuinfo").exists() else ""
    model = re.search(r"^model name\s*: (.*)$", info, re.M)
    return f"{model[1] if model else 'unknown'}, {os.cpu_count()} processors"


def table(report, drills):
    """The report as Markdown."""
    lines = [f"# Drills of {report['date']}", "", f"Commit {report['commit']}, {report['machine']}, load "
             f"{report['load']} at the end. `make drills` runs them and writes this page.", "",
             "| drill | shows | result | seconds |", "| --- | --- | --- | --: |"]
    for name, result in report["drills"].items():
        said = "passed" if result["passed"] else result["why"]
        lines.append(f"| {name} | {drills[name][2]} | {said} | {result['seconds']} |")
    figures = [f"| {name} | {what} | {value} |" for name, result in report["drills"].items()
               for what, value in result["figures"].items()]
    if figures:
        lines += ["", "| drill | figure | value |", "| --- | --- | --- |", *figures]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join([*DRILLS, *LONG])}")
    parser.add_argument("--long", action="store_true", help="also those of hours")
    parser.add_argument("--results", type=pathlib.Path, default=ROOT / "bench/results", help="where to write the table")
    parser.add_argument("--logs", type=pathlib.Path, default=ROOT / "target/drills", help="where to write logs")
    args = parser.parse_args()
    known = DRILLS | LONG
    unknown = [name for name in args.names if name not in known]
    if unknown:
        parser.error(f"no drill is named {unknown[0]}; there are {', '.join(known)}")
    names = args.names or [*DRILLS, *(LONG if args.long else ())]
    args.logs.mkdir(parents=True, exist_ok=True)
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, text=True, check=False,
                            capture_output=True).stdout.strip()
    report = {"date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(), "commit": commit or "unknown",
              "machine": machine(), "drills": {}}
    args.results.mkdir(parents=True, exist_ok=True)
    page = args.results / f"{report['date']}-drills"
    if (earlier := page.with_suffix(".json")).exists():
        # Of the same day and commit: this adds to it.
        before = json.loads(earlier.read_text())
        report["drills"] = before["drills"] if before["commit"] == report["commit"] else {}
    for name in names:
        print(f"start   {name}: {known[name][2]}", flush=True)
        result = report["drills"][name] = run(name, known[name], args.logs)
        said = "passed" if result["passed"] else "FAILED"
        print(f"{said}  {name}, {result['seconds']} s {result['why']}".rstrip(), flush=True)
        report["load"] = " ".join(f"{load:.1f}" for load in os.getloadavg())
        # After each, so that what was seen is kept if a later one is interrupted.
        page.with_suffix(".json").write_text(json.dumps(report, indent=1) + "\n")
        page.with_suffix(".md").write_text(table(report, known))
    red = [name for name in names if not report["drills"][name]["passed"]]
    if red:
        sys.exit(f"error: {', '.join(red)} failed; the logs are in {args.logs}")


if __name__ == "__main__":
    main()
