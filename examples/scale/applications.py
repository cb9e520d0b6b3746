"""The two applications and their environment: PKI, service, controller, owners, devices."""

from __future__ import annotations

import json
import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from page import Page
from processes import Failed, Processes, free_ports, wait_for
from truth import differences, windows

_WINDOW = 10_000
_PATIENCE = 240


@dataclass(frozen=True)
class Application:
    """The files of the examples that it uses. The page is written for riders; `changes` has the differences."""

    name: str
    example: str
    attributes: tuple[str, ...]
    changes: tuple[tuple[str, str], ...] = ()
    owners: int = 16


FITNESS = Application("fitness", "fitness", ("heart_rate",))
CARS = Application("cars", "car-maintenance", ("oil", "engine", "tyre_pressure"), (
    ("queries/heart-rate.sql", "queries/fleet.sql"), ("HeartRate", "Fleet"), ("FitnessTracker", "CarSensors"),
    ("option: aggr", "option: fleet"), ("region=Zurich", "model=Omega --metadata engineType=petrol"),
    ("examples/fitness", "examples/car-maintenance"), ("fitness", "cars")))


@dataclass(frozen=True)
class Row:
    """A window's result and the expected one."""

    clock: str
    owners: int
    shown: str
    difference: str

    @property
    def equal(self) -> bool:
        """Whether every statistic is as expected."""
        return not self.difference


class Deployment:
    """One application's processes, in the folder for the page's commands."""

    def __init__(self, application: Application, processes: Processes, repository: Path, folder: Path,
                 tools: Path, addresses: list[tuple[str, str]]) -> None:
        self.application = application
        self._processes = processes
        self._example = repository / "examples" / application.example
        self._folder = folder
        self._path = {"PATH": f"{tools}:{os.environ['PATH']}"}
        self._start = self._minutes = 0
        self._serving: dict[str, subprocess.Popen[str]] = {}
        ports = free_ports(2)
        changes = [*application.changes, *addresses, *((f"740{n}", str(port)) for n, port in enumerate(ports))]
        self._page = Page(repository / "docs/scale.md", changes)
        folder.mkdir(parents=True)
        (folder / "examples").symlink_to(repository / "examples")

    def _run(self, block: str) -> str:
        return self._processes.run(f"{self.application.name}-{block}", self._shell(block), self._path, self._folder)

    def _shell(self, block: str) -> list[str]:
        return ["bash", "-e", "-c", self._page.block(block)]

    def start(self) -> None:
        """Issues certificates, starts service and controller, creates a stream for each owner."""
        self._run("pki")
        self._run("schema")
        self._serve("server")
        self._serve("controller")
        self._file("policies.yaml")
        self._run("owners")

    def _serve(self, block: str) -> None:
        name = f"{self.application.name}-{block}"
        log = self._processes.log(name)
        before = log.read_text().count("serving at ") if log.exists() else 0
        process = self._processes.start(name, self._shell(block), self._path, folder=self._folder)
        self._serving[block] = process

        def ready() -> bool:
            if process.poll() is not None:
                raise Failed(f"{name} ended with {process.returncode}:\n{log.read_text()[-3000:]}")
            return log.read_text().count("serving at ") > before

        wait_for(name, ready, _PATIENCE, log)

    def heal(self) -> list[str]:
        """Restarts processes that have ended, as a service manager does. Returns their names."""
        ended = [block for block, process in self._serving.items() if process.poll() is not None]
        for block in ended:
            self._serve(block)
        return ended

    def _file(self, name: str) -> Path:
        file = self._folder / name
        file.write_text(self._page.block(name))
        return file

    def _rows(self, minutes: int) -> Path:
        rows = self._folder / f"rows-{minutes}.csv"
        if not rows.exists():
            self._processes.run(f"{self.application.name}-rows", [
                "alpheus", "generate", "--schema", str(self._example / "schema.yaml"), "--profile",
                str(self._example / "profile.yaml"), "--streams", str(self.application.owners), "--minutes",
                str(minutes), "--output", str(rows)], self._path)
        return rows

    def submit(self) -> None:
        """Runs the job."""
        self._file("job.properties")
        self._run("job")

    def ask(self) -> str:
        """Starts the query. Returns a description of what it will reveal."""
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                return self._run("ask")
            except Failed as early:
                soon = any(words in str(early) for words in ("owners with data are required", "no stream of"))
                if not soon or time.monotonic() > deadline:
                    raise
                time.sleep(1)

    def send(self, jvm: Path, start: int, minutes: int) -> subprocess.Popen[str]:
        """Starts the application that sends the rows."""
        self._start, self._minutes = start, minutes
        settings = self._file("fleet.properties")
        classpath = f"{jvm / 'demo/target/classes'}:{(jvm / 'demo/target/classpath').read_text().strip()}"
        return self._processes.start(f"{self.application.name}-fleet", [
            "java", "-Xmx400m", "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", classpath,
            "alpheus.demo.Fleet", str(settings), str(self._rows(minutes)), str(self._folder / "devices"),
            f"{self.application.name}.events", str(start), str(self._folder / "taken.csv")], folder=self._folder)

    def results(self) -> list[Row]:
        """Every window from the first with a result to the last whole one, with the expected result."""
        truth = windows(self._folder / "taken.csv", _WINDOW)
        # Time passes a window's end with a later event. After the last tick there is none.
        last = self._start + 60_000 * self._minutes - 2 * _WINDOW
        deadline = time.monotonic() + _PATIENCE
        rows: list[dict[str, object]] = []
        while not any(self._window(row) >= last for row in rows) and time.monotonic() < deadline:
            time.sleep(3)
            rows = self._table()
        found = {self._window(row): row for row in rows}
        opened = [window for window, row in found.items() if row["status"] == "ok"]
        compared = [self._row(window, found.get(window), truth) for window in sorted(truth)
                    if opened and min(opened) <= window <= last]
        if len(found) != len(rows):
            raise Failed(f"{self.application.name}: a window came twice")
        return compared

    def _table(self) -> list[dict[str, object]]:
        lines = self._run("results").strip()
        return list(json.loads(lines)) if lines.startswith("[") else [json.loads(line) for line in lines.splitlines()]

    @staticmethod
    def _window(row: dict[str, object]) -> int:
        return int(str(row["window_start"]))

    def _row(self, window: int, row: dict[str, object] | None, truth: dict[int, dict]) -> Row:
        clock = time.strftime("%H:%M:%S", time.localtime(window / 1000))
        if row is None:
            return Row(clock, 0, "", "no row")
        statistics = {column: value for column, value in row.items()
                      if column.partition("_")[2] in self.application.attributes}
        wrong = differences(statistics, truth[window])
        shown = ", ".join(f"{column} {value:.6g}" for column, value in list(statistics.items())[:2]
                          if isinstance(value, (int, float)))
        status = "" if row["status"] == "ok" else str(row["status"])
        return Row(clock, int(str(row.get("population") or 0)), shown, status or ", ".join(wrong))
