"""Prints how many tests passed, failed and were skipped: count.py STEPS JVM.

STEPS is the folder of the logs that `make test` writes, JVM the folder of the Maven project.
A skipped test is one that this machine could not run. Where `CI` is `true` that fails, but for tests
over recorded data. An ignored test takes long: `make drills` runs those.
"""

import os
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


def python(log: str) -> list[int]:
    """Tests that passed, failed and were skipped, as unittest says after each run."""
    ran = sum(map(int, re.findall(r"^Ran (\d+) tests?", log, re.M)))
    last = " ".join(re.findall(r"^(?:OK|FAILED) \((.*)\)$", log, re.M))
    failed, skipped = (sum(map(int, re.findall(rf"\b(?:{words})=(\d+)", last))) for words in ("failures|errors", "skipped"))
    return [ran - failed - skipped, failed, skipped]


def javascript(log: str) -> list[int]:
    """Tests that passed, failed and were skipped, of Node's test runner."""
    return [sum(map(int, re.findall(rf"^# {word} (\d+)$", log, re.M))) for word in ("pass", "fail", "skipped")]


def pytest(log: str) -> list[int]:
    """Tests that passed, failed and were skipped, as pytest's last line says."""
    last = [line for line in log.splitlines() if re.search(r"\d+ (passed|failed).* in ", line)][-1:]
    return [sum(map(int, re.findall(rf"(\d+) {word}", "".join(last)))) for word in ("passed", "failed", "skipped")]


def main() -> None:
    steps, jvm = map(pathlib.Path, sys.argv[1:])

    def log(*names: str) -> str:
        return "".join((steps / f"{name}.log").read_text() for name in names)

    passed, failed, ignored = rust(log("processes", "others"))
    skips = steps / "skips"
    lines = skips.read_text().splitlines() if skips.exists() else []
    print(*lines, sep="\n", end="\n" if lines else "")
    # A test that skips itself returns like one that passed.
    passed -= len({line.rsplit(":", 1)[0] for line in lines})
    counts = [[passed, failed, len(lines)], java(jvm), python(log("rules", "jvm", "vectors", "c")), pytest(log("python")),
              javascript(log("js"))]
    passed, failed, skipped = (sum(column) for column in zip(*counts))
    print(f"{passed} passed, {failed} failed, {skipped} skipped, {ignored} long ones left to `make drills`")
    if skipped > sum("ALPHEUS_REAL_DATA" in line for line in lines) and os.environ.get("CI") == "true":
        sys.exit("error: in CI every test must run; the lines above or the logs in target/steps name what was skipped")


if __name__ == "__main__":
    main()
