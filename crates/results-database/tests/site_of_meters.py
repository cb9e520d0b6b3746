"""A deployment whose rows the tests read, and the programs that they run."""

import os
import re
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
# Verified windows begin at an hour.
BASE = 1_700_000_000 - 1_700_000_000 % 3600
WINDOWS = 40

FILES = {
    "schema.yaml": """name: Meters
tick: 10s
capacity: { population: 100, eventsPerSecond: 0.1, window: 1min }
streamAttributes:
  - { name: reading, type: integer, min: 0, max: 100, aggregations: [mean] }
  - { name: load, type: decimal, scale: 2, unit: kW, min: 0, max: 100, aggregations: [mean] }
  - { name: gas, type: integer, min: 0, max: 100, aggregations: [mean] }
  - { name: health, type: integer, min: 0, max: 100, aggregations: [mean] }
streamPolicyOptions:
  - name: noisy
    option: dp-aggregate
    clients: [3]
    window: 10s
    alpha: 0
    budget: { perWindow: 5, total: 1000, unit: person-per-window }
  - { name: hidden, option: private }
  - { name: crowd, option: aggregate, clients: [3], window: 10s, alpha: 0 }
""",
    "source.yaml": """schema: Meters
time: { column: time }
stream: meter
attributes: { reading: reading, load: load, gas: gas, health: health }
""",
    "policies.yaml": """schema: Meters
service: analyst
default: { reading: noisy, load: crowd, gas: crowd, health: hidden }
""",
    "query.sql": """CREATE STREAM Load AS SELECT SUM(load), COUNT(load)
WINDOW TUMBLING (SIZE 10 SECONDS) FROM Meters WITH (integrity = 'verified')
""",
}
NOISY = (
    "CREATE STREAM Noisy AS SELECT MEAN(reading) WINDOW TUMBLING (SIZE 10 SECONDS) "
    "FROM Meters WITHIN 30 OF 95 %"
)
# Only the consumer can open its rows.
SEALED = "CREATE STREAM Gas AS SELECT SUM(gas) WINDOW TUMBLING (SIZE 10 SECONDS) FROM Meters RELEASE TO analyst"


def program(name):
    """The path of a program, which a variable gives."""
    return os.environ[name]


def until(what, found, seconds=300):
    """Waits until something is there."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if (value := found()) is not None:
            return value
        time.sleep(0.2)
    raise AssertionError(f"{what} did not come")


class Background:
    """A process whose output is in a file, and which ends with the test."""

    def __init__(self, command, log, **more):
        self.log = log
        with open(log, "w") as out:
            self.process = subprocess.Popen(command, stdout=out, stderr=out, **more)

    def says(self, pattern):
        """Waits for a line, and returns what matches."""

        def found():
            text = self.log.read_text()
            if self.process.poll() is not None:
                raise AssertionError(f"it has ended: {text}")
            return re.search(pattern, text)

        return until(pattern, found)

    def end(self):
        self.process.terminate()
        self.process.wait()


class Site:
    """A service with five meters, a verified query, and one with noise. Its recording is over."""

    def __init__(self, folder):
        self.folder = folder
        for name, text in FILES.items():
            (folder / name).write_text(text)
        rows = [
            f"{BASE + 10 * window + meter},m{meter},{40 + 5 * meter},{60 - meter}.25,{3 * meter},{meter}\n"
            for window in range(WINDOWS)
            for meter in range(5)
        ]
        (folder / "data.csv").write_text("time,meter,reading,load,gas,health\n" + "".join(rows))
        up = ["up", str(folder), "--input", str(folder / "data.csv"), "--speed", "10"]
        up += ["--controllers", "1", "--state", str(folder / "run"), "--stay"]
        self.up = Background([program("ALPHEUS"), *up], folder / "up.log")
        self.server = self.up.says(r"service: +(https://[^,]+),")[1]
        self.identity = str(folder / "run/pki/analyst")
        # With its recording, so that it has windows too.
        self.up.says("sum_load")
        self.query("--query", NOISY)
        self.query("--query", SEALED)
        owner = self.up.says(r"alpheus owner log (--identity \S+ --controller \S+ --stream \S+)")
        self.owner = owner[1].split()
        self.up.says("the recording has ended")

    def query(self, *more):
        """Runs `alpheus query` as the consumer."""
        command = [program("ALPHEUS"), "query", "--server", self.server]
        command += ["--identity", self.identity, *more]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def budgets(self):
        """What an owner's account says."""
        command = [program("ALPHEUS"), "owner", "budgets", *self.owner]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout


class Database:
    """`alpheus-database` with two roles, at free ports."""

    def __init__(self, folder, *more):
        self.folder = folder
        folder.mkdir()
        self.roles = folder / "roles"
        self.passwords = {name: self.add(name) for name in ["ann", "bob"]}
        serve = [program("DATABASE"), "serve", "--roles", str(self.roles)]
        serve += ["--listen", "127.0.0.1:0", "--flight", "127.0.0.1:0"]
        self.process = Background([*serve, *more], folder / "log")
        self.port = self.process.says(r"postgres \S+:(\d+)\n")[1]
        self.flight = self.process.says(r"flight (\S+)\n")[1]

    def add(self, role):
        command = [program("DATABASE"), "add-role", role, "--roles", str(self.roles)]
        said = subprocess.run(command, check=True, capture_output=True, text=True)
        return said.stdout.strip()

    def psql(self, *statements, role="ann", options=("-At",)):
        """Runs statements with psql: exit code, output and errors."""
        command = ["psql", "-h", "127.0.0.1", "-p", self.port, "-U", role, "-X", *options]
        command += ["-v", "VERBOSITY=verbose", "-v", "ON_ERROR_STOP=1", "alpheus"]
        for statement in statements:
            command += ["-c", statement]
        environment = {**os.environ, "PGPASSWORD": self.passwords[role]}
        ran = subprocess.run(command, capture_output=True, text=True, env=environment)
        return ran.returncode, ran.stdout.strip(), ran.stderr.strip()

    def rows(self, statement, role="ann"):
        """The rows of a statement that must run."""
        code, said, errors = self.psql(statement, role=role)
        assert code == 0, errors
        return [line.split("|") for line in said.splitlines()]

    def refusal(self, statement, role="ann"):
        """What is said of a statement that must not run."""
        code, said, errors = self.psql(statement, role=role)
        assert code != 0, said
        return errors
