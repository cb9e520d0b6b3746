"""Takes a guard out of a protocol's code, and asks the test that is named for it to notice.

    python3 .ci/guards.py [CRATE ...]         # every guard of these crates; of all that have a list
    python3 .ci/guards.py [CRATE ...] --find  # names tests for guards that have none yet
    python3 .ci/guards.py --table             # writes the table again

The lists are bench/guards/CRATE.toml. A guard is a check in the code: `file`, and the exact text of the `check`, which
occurs once there, or once in the text `within`. `instead` is what stands there when it is gone: false unless said, so the
refusal never comes. `test` must go red then, and `refuses` says what for. A list with text that is no longer in the code
fails `make test` (test_guards.py).

All guards of a crate are built at once, into target/guards/tree, a copy of the working tree: a variable of the environment
says which one is gone. So a guard takes the time of its test, and a crate one build. Figures are kept in
bench/results/guards.json, and as a table in guards.md.
"""

import argparse
import collections
import datetime
import json
import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import mutants

ROOT = mutants.ROOT
LISTS = ROOT / "bench" / "guards"
FIGURES = ROOT / "bench" / "results" / "guards.json"
TABLE = FIGURES.with_suffix(".md")
TREE = ROOT / "target" / "guards" / "tree"
PATIENCE = 900
# Tests that are tried together for a guard that has none yet.
FEW = 6
# What the copy of a crate gets: whether a guard is gone, and in which tests one has spoken.
SWITCH = """
#[doc(hidden)]
pub mod guard_switch {
    use std::sync::{LazyLock, Mutex};
    static GONE: LazyLock<Option<u32>> = LazyLock::new(|| std::env::var("GUARD_GONE").ok()?.parse().ok());
    static NOTES: LazyLock<Option<String>> = LazyLock::new(|| std::env::var("GUARD_NOTES").ok());
    static NOTED: Mutex<std::collections::BTreeSet<String>> = Mutex::new(std::collections::BTreeSet::new());

    fn note(number: u32) {
        let Some(path) = &*NOTES else { return };
        let line = format!("{number} {}\\n", std::thread::current().name().unwrap_or("?"));
        let mut noted = NOTED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if noted.insert(line.clone()) {
            let mut options = std::fs::OpenOptions::new();
            let file = options.append(true).create(true).open(path);
            let _ = file.and_then(|mut file| std::io::Write::write_all(&mut file, line.as_bytes()));
        }
    }

    pub fn gone(number: u32) -> bool {
        note(number);
        *GONE == Some(number)
    }

    pub fn check(number: u32, instead: bool, found: bool) -> bool {
        if found != instead {
            note(number);
        }
        if *GONE == Some(number) { instead } else { found }
    }
}
"""


class ListError(Exception):
    """A list does not fit the code."""


def lists():
    """Crates and their guards, in the order of their lists."""
    found = {}
    for path in sorted(LISTS.glob("*.toml")):
        read = tomllib.loads(path.read_text())
        found[read["crate"]] = (ROOT / read["folder"], [{"instead": "false"} | guard for guard in read["guard"]])
    return found


def place(text, guard):
    """Where the check begins."""
    within = guard.get("within", guard["check"])
    if text.count(within) != 1 or within.count(guard["check"]) != 1:
        raise ListError(f"{guard['file']}: `{guard['check']}` is there {text.count(within)} times, not once")
    return text.index(within) + within.index(guard["check"])


def switched(text, guards):
    """The text of a file with a switch for each guard, given with its number."""
    places = sorted(((place(text, guard), number, guard) for number, guard in guards), key=lambda at: at[:2], reverse=True)
    for (at, _, guard), (after, *_) in zip(places[1:], places):
        if at + len(guard["check"]) > after:
            raise ListError(f"{guard['file']}: `{guard['check']}` holds another guard")
    for at, number, guard in places:
        check, instead = guard["check"], guard["instead"]
        if instead in ("true", "false"):
            new = f"crate::guard_switch::check({number}, {instead}, {check})"
        else:
            new = f"if crate::guard_switch::gone({number}) {{ {instead} }} else {{ {check} }}"
        text = text[:at] + new + text[at + len(check):]
    return text


def prepare(known):
    """The copy of the working tree, with switches."""
    files = {}
    for folder, guards in known.values():
        files[folder / "src" / "lib.rs"] = []
        for number, guard in enumerate(guards):
            files.setdefault(folder / guard["file"], []).append((number, guard))

    def change(name, content):
        guards = files.get(ROOT / name)
        if guards is None:
            return content
        text = switched(content.decode(), guards)
        return (text + SWITCH if name.endswith("/src/lib.rs") else text).encode()

    mutants.copy(TREE, change)


def build(crate):
    """The test programs of the crate, and the tests in each."""
    command = ["cargo", "test", "--package", crate, "--lib", "--tests", "--locked", "--no-run", "--quiet",
               "--message-format", "json-render-diagnostics"]
    built = subprocess.run(command, cwd=TREE, env=mutants.surroundings(), check=False, text=True, stdout=subprocess.PIPE)
    if built.returncode:
        sys.exit(f"error: the tests of {crate} do not build with switches; is a guard in a `const fn`?")
    lines = [json.loads(line) for line in built.stdout.splitlines() if line.startswith("{")]
    programs = [line["executable"] for line in lines if line.get("executable") and line["profile"]["test"]]
    listed = {}
    for program in programs:
        said = subprocess.run([program, "--list"], check=True, text=True, stdout=subprocess.PIPE).stdout
        listed[program] = {line.removesuffix(": test") for line in said.splitlines() if line.endswith(": test")}
    return listed


def run(folder, programs, tests, **variables):
    """Runs these tests, all if there are none; those that failed, and how many there were."""
    failed, count = [], 0
    environment = os.environ | variables | {"CARGO_MANIFEST_DIR": str(TREE / folder.relative_to(ROOT))}
    for program, known in programs.items():
        wanted = [test for test in tests if test in known]
        if tests and not wanted:
            continue
        count += len(wanted) or len(known)
        try:
            ran = subprocess.run([program, "--exact", "--test-threads", "2", *wanted], cwd=environment["CARGO_MANIFEST_DIR"], check=False, text=True,
                                 errors="replace", env=environment, timeout=PATIENCE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            failed += ["no end"]
            continue
        names = read(ran.stdout)
        failed += names or ([f"status {ran.returncode}"] if ran.returncode else [])
    return failed, count


def read(said):
    """The tests that failed, from what their program said."""
    ends = [line.removeprefix("test ").rsplit(" ... ", 1) for line in said.splitlines() if line.startswith("test ")]
    return [end[0].removesuffix(" - should panic") for end in ends if len(end) == 2 and end[1] == "FAILED"]


def key(guard):
    return f"{guard['file']}: {' '.join(guard['check'].split())} @ {' '.join(guard.get('within', '').split())}"


def find(crate, folder, guards, programs):
    """Writes down a test for each guard that has none: the first that goes red, of those in which it speaks."""
    with tempfile.TemporaryDirectory() as notes:
        path = Path(notes) / "notes"
        failed, _ = run(folder, programs, [], GUARD_NOTES=str(path))
        # Such as those that count instructions.
        print(f"{crate}: left out, because they fail with all guards in place: {failed}", flush=True)
        spoke = collections.defaultdict(list)
        for line in path.read_text().splitlines():
            number, name = line.split(" ", 1)
            spoke[int(number)].append(name)
    known = set().union(*programs.values()) - set(failed)
    for number, guard in enumerate(guards):
        if "test" in guard:
            continue
        # Long tests last, and no more than it takes.
        tests, red = sorted(known.intersection(spoke[number]), key=lambda name: ("simulation" in name, name)), []
        for at in range(0, len(tests), FEW):
            red = [name for name in run(folder, programs, tests[at:at + FEW], GUARD_GONE=str(number))[0] if name in known]
            if red:
                note(crate, guard, red[0])
                break
        print(f"{key(guard)}\n    speaks in {len(spoke[number])} tests, red: {red}", flush=True)


def note(crate, guard, test):
    """Adds the test to the guard in its list."""
    path = next(path for path in LISTS.glob("*.toml") if tomllib.loads(path.read_text())["crate"] == crate)
    parts = path.read_text().split("[[guard]]\n")
    for at, part in enumerate(parts[1:], 1):
        [read] = tomllib.loads("[[guard]]\n" + part)["guard"]
        if key(read) == key(guard):
            parts[at] = part.rstrip("\n") + f"\ntest = \"{test}\"\n" + ("\n" if at + 1 < len(parts) else "")
    path.write_text("[[guard]]\n".join(parts))


def verdict(failed, count):
    if not count:
        return "not applicable"
    return "killed" if failed else "missed"


def table(known, figures):
    """The figures as Markdown."""
    lines = ["# Guards", "", "By `make guards`: a check is taken out of the code; does the test that is named for it go red? The lists are",
             "`bench/guards/`. *Not applicable*: no test has been named, or it is gone.", "",
             "| crate | guards | killed | missed | not applicable | not run |", "| --- " * 6 + "|"]
    rows = []
    for crate, (_, guards) in sorted(known.items()):
        of = figures.get(crate, {})
        total = collections.Counter(of.get(key(guard), {}).get("outcome", "not run") for guard in guards)
        lines.append(f"| {crate} | {len(guards)} | {total['killed']} | {total['missed']} | {total['not applicable']} | {total['not run']} |")
        rows += ["", f"## {crate}", "", "| file | check | refuses | test | outcome |", "| --- " * 5 + "|"]
        for guard in guards:
            cell = [guard["file"], f"`{' '.join(guard['check'].split())}`", guard.get("refuses", ""), guard.get("test", ""),
                    of.get(key(guard), {}).get("outcome", "not run")]
            rows.append("| " + " | ".join(part.replace("|", "\\|") for part in cell) + " |")
    return "\n".join(lines + rows) + "\n"


def keep(known, figures):
    for crate, (_, guards) in known.items():
        there = {key(guard) for guard in guards}
        figures[crate] = {name: found for name, found in figures.get(crate, {}).items() if name in there}
    FIGURES.write_text(json.dumps(figures, indent=1, sort_keys=True) + "\n")
    TABLE.write_text(table(known, figures))


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("crates", nargs="*")
    arguments.add_argument("--find", action="store_true")
    arguments.add_argument("--table", action="store_true")
    given = arguments.parse_args()
    known, figures = lists(), json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    if given.table:
        return keep(known, figures)
    with mutants.alone(TREE):
        prepare(known)
        for crate in given.crates or known:
            folder, guards = known[crate]
            programs = build(crate)
            if given.find:
                find(crate, folder, guards, programs)
                continue
            failed, _ = run(folder, programs, sorted({guard["test"] for guard in guards if "test" in guard}))
            if failed:
                sys.exit(f"error: {crate}: with all guards in place these fail: {failed}")
            for number, guard in enumerate(guards):
                tests = [guard["test"]] if "test" in guard else ["nothing"]
                outcome = verdict(*run(folder, programs, tests, GUARD_GONE=str(number)))
                day = datetime.date.today().isoformat()
                figures.setdefault(crate, {})[key(guard)] = {"outcome": outcome, "day": day}
                if outcome != "killed":
                    print(f"{crate}: {key(guard)}: {outcome}", flush=True)
            keep(known, figures)
    keep(lists(), figures)


if __name__ == "__main__":
    main()
