"""The two applications, and what stands around each of them: PKI, service, controller, owners, devices."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from processes import Failed, Processes, free_ports, wait_for
from truth import differences, windows

_WINDOW = 10_000
_PATIENCE = 240


@dataclass(frozen=True)
class Application:
    """What of the examples it uses."""

    name: str
    example: str
    query: str
    result: str
    option: str
    attributes: tuple[str, ...]
    metadata: dict[str, str]
    owners: int = 16


FITNESS = Application("fitness", "fitness", "heart-rate.sql", "HeartRate", "aggr",
                      ("heart_rate",), {"region": "Zurich"})
CARS = Application("cars", "car-maintenance", "fleet.sql", "Fleet", "fleet",
                   ("oil", "engine", "tyre_pressure"), {"model": "a", "engineType": "electric"})


@dataclass(frozen=True)
class Row:
    """A window's result beside the truth."""

    clock: str
    owners: int
    shown: str
    difference: str

    @property
    def equal(self) -> bool:
        """Whether every statistic is the truth."""
        return not self.difference


class Deployment:
    """One application's processes and files."""

    def __init__(self, application: Application, processes: Processes, alpheus: Path, repository: Path,
                 folder: Path) -> None:
        self.application = application
        self._processes = processes
        self._alpheus = str(alpheus.resolve())
        self._example = repository / "examples" / application.example
        self._schema = str(self._example / "schema.yaml")
        self._folder = folder
        self._prefix = f"{application.name}."
        self._server, self._controller = (f"127.0.0.1:{port}" for port in free_ports(2))
        self._start = 0
        (folder / "devices").mkdir(parents=True)

    def _run(self, *words: str) -> str:
        return self._processes.run(f"{self.application.name}-commands", [self._alpheus, *words])

    def _url(self, address: str) -> str:
        return f"https://localhost:{address.rsplit(':', 1)[1]}"

    def start(self, broker: str) -> None:
        """Issues certificates, starts service and controller, makes a stream for each owner."""
        pki, name = self._folder / "pki", self.application.name
        self._run("ca", "init", str(pki))
        for role, party in [("server", "service"), ("consumer", "analyst"), ("controller", "guard"),
                            ("producer", "fleet")]:
            self._run("ca", "issue", str(pki), "--role", role, "--name", party)
        key = self._folder / "guard.key"
        key.touch(mode=0o600)
        key.write_bytes(base64.b64encode(os.urandom(32)))
        state = self._folder / "guard"
        self._run("controller", "init", "--identity", str(pki / "guard"), "--state", str(state), "--key-file", str(key),
                  "--ca", str(pki))
        self._serve(f"{name}-server", self._server, [
            "server", "--identity", str(pki / "service"), "--schema", self._schema,
            "--state", str(self._folder / "service"), "--api", self._server, "--engine", "job",
            "--kafka-brokers", broker, "--kafka-prefix", self._prefix, "--idle", "30"])
        self._serve(f"{name}-controller", self._controller, [
            "controller", "run", "--identity", str(pki / "guard"), "--state", str(state), "--key-file", str(key),
            "--schema", self._schema, "--server", self._url(self._server), "--api", self._controller])
        self._owners(pki)

    def _serve(self, name: str, address: str, words: list[str]) -> None:
        log = self._processes.log(name)
        process = self._processes.start(name, [self._alpheus, *words])

        def ready() -> bool:
            if process.poll() is not None:
                raise Failed(f"{name} ended with {process.returncode}:\n{log.read_text()}")
            return "serving at " in log.read_text()

        wait_for(f"{name} at {address}", ready, _PATIENCE, log)

    def _owners(self, pki: Path) -> None:
        policies = self._folder / "policies.yaml"
        policies.write_text(f"schema: {self._name_of_schema()}\nservice: {self.application.name}.example\ndefault:\n"
                            f"  \"*\": {{ option: {self.application.option}, clients: small, window: 10s }}\n")
        facts = [word for name, value in self.application.metadata.items() for word in ("--metadata", f"{name}={value}")]
        for number, stream in enumerate(self._streams()):
            owner = f"owner-{number}"
            self._run("ca", "issue", str(pki), "--role", "owner", "--name", owner)
            self._run("owner", "add", "--identity", str(pki / owner), "--controller", self._url(self._controller),
                      "--schema", self._schema, "--policies", str(policies), "--producer", "fleet", *facts,
                      "--device", str(self._folder / "devices" / f"{stream}.json"))

    def _name_of_schema(self) -> str:
        lines = Path(self._schema).read_text().splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("name:"))

    def _rows(self, minutes: int) -> Path:
        rows = self._folder / f"rows-{minutes}.csv"
        if not rows.exists():
            self._run("generate", "--schema", self._schema, "--profile", str(self._example / "profile.yaml"),
                      "--streams", str(self.application.owners), "--minutes", str(minutes), "--output", str(rows))
        return rows

    def _streams(self) -> list[str]:
        lines = self._rows(1).read_text().splitlines()
        place = lines[0].split(",").index("stream")
        return sorted({line.split(",")[place] for line in lines[1:]})

    def job_settings(self, broker: str, registry: str | None) -> Path:
        """The job's file of settings."""
        names = ["events", "instructions", "tokens", "sums", "summaries", "dead-letters"]
        settings = {f"alpheus.topic.{name}": self._prefix + name for name in names} | {
            "bootstrap.servers": broker, "alpheus.schema": self._schema,
            "alpheus.job": f"{self.application.name}-window-sums",
            "alpheus.checkpoint.ms": "2000", "alpheus.idle.ms": "20000", "alpheus.skew.ms": "20000",
            "max.request.size": "16000000"}
        return self._write("job.properties", settings | self._format(registry))

    def _format(self, registry: str | None) -> dict[str, str]:
        return {"alpheus.format": "registry", "schema.registry.url": registry} if registry else {}

    def _write(self, name: str, settings: dict[str, str]) -> Path:
        file = self._folder / name
        file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        return file

    def _query(self, *words: str) -> str:
        return self._run("query", "--server", self._url(self._server), "--identity",
                         str(self._folder / "pki/analyst"), *words)

    def ask(self) -> str:
        """Starts the query; what it will reveal, in words."""
        query = str(self._example / "queries" / self.application.query)
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                return self._query("--query", query)
            except Failed as early:
                if "owners with data are needed" not in str(early) or time.monotonic() > deadline:
                    raise
                time.sleep(1)

    def send(self, jvm: Path, broker: str, registry: str | None, start: int, minutes: int) -> subprocess.Popen[str]:
        """Starts the application that sends the rows."""
        self._start, self._minutes = start, minutes
        settings = self._write("fleet.properties", {
            "bootstrap.servers": broker, "alpheus.schema": self._schema, "alpheus.time": "record",
            "alpheus.lateness.ms": "3000", "alpheus.close.timeout.ms": "20000"} | self._format(registry))
        classpath = f"{jvm / 'demo/target/classes'}:{(jvm / 'demo/target/classpath').read_text().strip()}"
        return self._processes.start(f"{self.application.name}-fleet", [
            "java", "-Xmx400m", "-XX:+UseSerialGC", "-cp", classpath, "alpheus.demo.Fleet", str(settings),
            str(self._rows(minutes)), str(self._folder / "devices"), f"{self._prefix}events", str(start)])

    def results(self) -> list[Row]:
        """Every window from the first that has a result to the last whole one, beside the truth."""
        truth = windows(self._rows(self._minutes), self._start, _WINDOW)
        last = max(truth)
        deadline = time.monotonic() + _PATIENCE
        rows: list[dict[str, object]] = []
        while not any(self._window(row) >= last for row in rows) and time.monotonic() < deadline:
            time.sleep(3)
            rows = self._table()
        found = {self._window(row): row for row in rows}
        compared = [self._row(window, found.get(window), truth) for window in sorted(truth)
                    if found and window >= min(found)]
        if len(found) != len(rows):
            raise Failed(f"{self.application.name}: a window came twice")
        return compared

    def _table(self) -> list[dict[str, object]]:
        lines = self._query("--results", self.application.result, "--format", "json").strip()
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
