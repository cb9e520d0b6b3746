"""Prints how many tests passed, failed and were skipped: count.py STEPS JVM.

STEPS is the folder of the logs that `make test` writes, JVM the folder of the Maven project.
A skipped test is one that this machine could not run. An ignored test takes long: `make drills`
runs those.
"""

import pathlib
import re
import sys
import xml.etree.ElementTree as xml


def rust(log: str) -> list[int]:
    """Tests that passed, failed and were ignored, over all test programs in a log of cargo."""
    result = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored", re.M)
    return [sum(map(int, column)) for column in zip((0, 0, 0), *result.findall(log))]


def java(folder: pathlib.Path) -> list[int]:
    """Tests that passed, failed and were skipped, over all reports of Maven's test plug-ins."""
    passed = failed = skipped = 0
    for report in folder.glob("*/target/*-reports/TEST-*.xml"):
        suite = xml.parse(report).getroot().attrib
        bad = int(suite["failures"]) + int(suite["errors"])
        failed += bad
        skipped += int(suite["skipped"])
        passed += int(suite["tests"]) - bad - int(suite["skipped"])
    return [passed, failed, skipped]


def python(log: str) -> int:
    return sum(map(int, re.findall(r"^Ran (\d+) tests?", log, re.M)))


def javascript(log: str) -> list[int]:
    """Tests that passed, failed and were skipped, of Node's test runner."""
    return [sum(map(int, re.findall(rf"^# {word} (\d+)$", log, re.M))) for word in ("pass", "fail", "skipped")]


def pytest(log: str) -> list[int]:
    """Tests that passed, failed and were skipped, as pytest's last line says."""
    last = [line for line in log.splitlines() if re.search(r"\d+ (passed|failed).* in ", line)][-1:]
    return [sum(map(int, re.findall(rf"(\d+) {word}", "".join(last)))) for word in ("passed", "failed", "skipped")]


def main() -> None:
    steps, jvm = map(pathlib.Path, sys.argv[1:])
    passed, failed, ignored = rust((steps / "processes.log").read_text() + (steps / "others.log").read_text())
    in_java = java(jvm)
    in_node = javascript((steps / "js.log").read_text())
    in_python = python((steps / "jvm.log").read_text() + (steps / "c.log").read_text())
    packaged = pytest((steps / "python.log").read_text())
    skips = steps / "skips"
    lines = skips.read_text().splitlines() if skips.exists() else []
    print(*lines, sep="\n", end="\n" if lines else "")
    # A test that skips itself returns like one that passed.
    passed -= len({line.rsplit(":", 1)[0] for line in lines})
    print(
        f"{passed + in_java[0] + in_python + packaged[0] + in_node[0]} passed, "
        f"{failed + in_java[1] + packaged[1] + in_node[1]} failed, "
        f"{len(lines) + in_java[2] + packaged[2] + in_node[2]} skipped, {ignored} long ones left to `make drills`"
    )


main()
