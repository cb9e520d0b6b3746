"""Test programs that cargo built, from its messages as JSON on standard input.

    programs.py link NAME LINK       makes LINK a link to the program of the test target NAME
    programs.py run AT_ONCE [ARG...] runs all programs, so many at once, each with the arguments

Cargo alone knows the paths. `cargo test` would wait for any build that is running, and it runs one
program after the other: most end with one long test, for which a processor waits.
"""

import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys


# Test targets that mostly wait, for brokers and for processes that are killed.
WAIT = {"suite"}
# Packages whose tests compute for minutes.
LONG = {"encrypted-stream"}


def programs(lines):
    """Of each test program: the target's name, the file, and the folder of its package."""
    for line in lines:
        message = json.loads(line)
        if message.get("executable") and message["profile"]["test"]:
            package = pathlib.Path(message["manifest_path"]).parent
            yield message["target"]["name"], pathlib.Path(message["executable"]), package


def link(name, to):
    found = [program for target, program, _ in programs(sys.stdin) if target == name]
    if not found:
        sys.exit(f"error: cargo built no test program named {name}")
    to.unlink(missing_ok=True)
    to.symlink_to(found[-1])


def order(program):
    name, path, package = program
    return name not in WAIT, package.name not in LONG, -path.stat().st_size


def run_one(program, package, arguments):
    """What the program printed, and whether its tests passed. Like cargo, it runs in its package."""
    environment = dict(os.environ, CARGO_MANIFEST_DIR=str(package))
    done = subprocess.run([program, *arguments], cwd=package, env=environment, check=False,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.stdout.decode(errors="replace"), done.returncode == 0


def run(at_once, arguments):
    # What would run alone at the end comes first: what waits, what is long, then the largest.
    found = sorted(programs(sys.stdin), key=order)
    failed = []
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        running = {pool.submit(run_one, program, package, arguments): (package.name, target)
                   for target, program, package in found}
        for done in concurrent.futures.as_completed(running):
            (output, passed), name = done.result(), "/".join(running[done])
            print(f"== {name}\n{output}", flush=True)
            if not passed:
                failed.append(name)
    if failed:
        sys.exit(f"error: tests failed in {', '.join(sorted(failed))}")


command, *rest = sys.argv[1:]
if command == "link":
    link(rest[0], pathlib.Path(rest[1]))
else:
    run(int(rest[0]), rest[1:])
