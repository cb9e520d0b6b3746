"""A whole deployment on this machine, for trials: service, controllers, owners and their devices.

Every role is a process of its own and talks over mutual TLS. You run all of them, so it hides nothing
from you. It shows what each of them learns, and gives the answers that the policies allow.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time as clock
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Literal

from ._errors import ServiceError, UsageError
from ._process import SERVING, Process, Running, free_port, private_folder
from ._program import PathLike, run
from ._times import MICROSECOND, micros
from .consumer import Consumer, Query
from .design import Project, init
from .owner import Owner, StreamOwner
from .passes import write_key
from .producer import Schema, Stream, events_of

#: How long a process may take to start, in seconds.
START = 60
#: With a recording: how long windows wait, in seconds of the recording. Devices say when they end.
RECORDED_WAIT = 30 * 86_400
#: Owners of a recording that take part, unless more are asked for.
OWNERS = 24


class LocalOwner:
    """An owner of a deployment on this machine, with one stream and its device."""

    def __init__(self, deployment: Local, name: str, stream: StreamOwner) -> None:
        self._deployment = deployment
        #: The owner's name, as on their certificate.
        self.name = name
        #: The stream: its log, its choice, and its end.
        self.stream = stream

    def open(self, *, times: Literal["clock", "given"] = "clock") -> Stream:
        """Opens the device of the owner's stream."""
        at = self._deployment.folder
        return Stream.open(
            schema=self._deployment.schema,
            device=at / f"{self.name}.device",
            identity=at / "pki" / f"{self.name}-device",
            state=at / "run" / self.name,
            server=self._deployment.server,
            times=times,
        )

    def __repr__(self) -> str:
        return f"<alpheus.LocalOwner {self.name}>"


class Local(Running):
    """A deployment on this machine: see :func:`local`."""

    _WHAT = "a deployment"

    def __init__(
        self,
        schema: PathLike,
        *,
        policies: PathLike,
        controllers: int = 1,
        state: PathLike | None = None,
        beginning: int | None = None,
    ) -> None:
        #: The folder with all keys, certificates, logs and state.
        self.folder = _folder(state)
        #: The schema's file.
        self.schema = Path(schema).resolve()
        #: The file of the owners' choices.
        self.policies = Path(policies).resolve()
        #: What was asked first, if there was a recording.
        self.answer: Query | None = None
        #: The owners, by name.
        self.owners: dict[str, LocalOwner] = {}
        self._clock = None if beginning is None else _Clock(self.folder / "clock", beginning)
        self._hosts: list[str] = []
        super().__init__(self.folder if state is None else None)
        try:
            self._start(controllers)
        except BaseException:
            self.close()
            raise

    def _start(self, controllers: int) -> None:
        self._run("ca", "init", "pki")
        self._issue("server", "service")
        self._issue("consumer", "analyst")
        api = f"127.0.0.1:{free_port()}"
        #: The service's address.
        self.server = f"https://{api}"
        recorded = self._clock is not None
        waits = [f"--{name}-timeout={RECORDED_WAIT}" for name in ("idle", "controller")]
        server = ["server", "--identity", "pki/service", "--state", "run/service", "--api", api]
        self._serve([*server, "--schema", self.schema, *(waits if recorded else [])])
        for number in range(1, controllers + 1):
            self._controller(f"guard-{number}")

    def _controller(self, name: str) -> None:
        self._issue("controller", name)
        write_key(self.folder / f"{name}.key")
        who = ["--identity", f"pki/{name}", "--state", f"run/{name}", "--key-file", f"{name}.key"]
        self._run("controller", "init", *who, "--ca", "pki")
        api = f"127.0.0.1:{free_port()}"
        what: list[PathLike] = ["--schema", self.schema, "--server", self.server, "--api", api]
        self._serve(["controller", "run", *who, *what])
        self._hosts.append(f"https://{api}")

    def _serve(self, line: list[PathLike]) -> None:
        clock: list[PathLike] = [] if self._clock is None else ["--replay-clock", self._clock.path]
        process = Process([*line, *clock], cwd=self.folder)
        self._processes.append(process)
        process.wait_for(SERVING, START)

    def _issue(self, role: str, name: str) -> None:
        self._run("ca", "issue", "pki", "--role", role, "--name", name)

    def _run(self, *line: PathLike) -> str:
        return run(line, cwd=self.folder)

    @property
    def consumer(self) -> Consumer:
        """A consumer of the service."""
        return Consumer(self.server, identity=self.folder / "pki" / "analyst")

    def query(self, sql: str) -> Query:
        """Starts a query, as the consumer, once the service knows all streams that were added.

        Streams that are added later do not take part, unless the query says so.
        """
        _wait_for_streams(self, len(self.owners))
        return self.consumer.query(sql)

    def add_owner(
        self,
        name: str,
        *,
        policies: PathLike | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> LocalOwner:
        """Adds an owner with a stream, at one controller after the other. The policies are those of the
        deployment unless others are given.
        """
        if not all(letter.isascii() and (letter.isalnum() or letter == "-") for letter in name):
            raise UsageError("an owner's name consists of letters, digits and -")
        if name in self.owners:
            raise UsageError(f"there is an owner {name} already")
        return self._add(name, len(self.owners), Path(policies or self.policies), metadata)

    def _add(
        self, name: str, number: int, policies: Path, metadata: Mapping[str, str] | None = None
    ) -> LocalOwner:
        self._issue("owner", name)
        self._issue("producer", f"{name}-device")
        host = self._hosts[number % len(self._hosts)]
        owner = Owner(host, identity=self.folder / "pki" / name)
        stream = owner.add(
            schema=self.schema,
            policies=policies.resolve(),
            producer=f"{name}-device",
            device=self.folder / f"{name}.device",
            metadata=metadata,
        )
        self.owners[name] = LocalOwner(self, name, stream)
        return self.owners[name]

    def add_owners(self, names: Iterable[str]) -> list[LocalOwner]:
        """Adds several owners, some at the same time."""
        numbered = list(enumerate(names, len(self.owners)))
        with ThreadPoolExecutor(4) as pool:
            return list(pool.map(lambda each: self._add(each[1], each[0], self.policies), numbered))

    @property
    def running(self) -> bool:
        """Whether every process runs."""
        return self._ending.alive and all(process.alive() for process in self._processes)

    def __repr__(self) -> str:
        return f"<alpheus.Local at {self.server}>" if self.running else "<alpheus.Local, ended>"


def _folder(state: PathLike | None) -> Path:
    if state is None:
        return Path(tempfile.mkdtemp(prefix="alpheus-")).resolve()
    return private_folder(Path(state).resolve())


class _Clock:
    """The clock of a recording, which all processes of a deployment read from a file."""

    def __init__(self, path: Path, now: int) -> None:
        self.path = path
        self._now = 0
        path.touch(mode=0o600)
        self.set(now)

    def set(self, now: int) -> None:
        """Moves the clock forward, never back."""
        if now <= self._now:
            return
        self._now = now
        handle = os.open(self.path, os.O_WRONLY)
        try:
            os.pwrite(handle, now.to_bytes(8, "big") + (now ^ (2**64 - 1)).to_bytes(8, "big"), 0)
        finally:
            os.close(handle)


def local(
    data: Any = None,
    *,
    schema: PathLike | None = None,
    policies: PathLike | None = None,
    query: str | None = None,
    owner: str | None = None,
    time: str | None = None,
    owners: int = OWNERS,
    controllers: int = 1,
    state: PathLike | None = None,
) -> Local:
    """Starts a deployment on this machine, from the program that is in the wheel.

    It ends with the context manager that it is, and also if the interpreter dies. Either give ``schema``
    and ``policies``, and add owners yourself::

        with alpheus.local(schema="schema.yaml", policies="policies.yaml") as here:
            ada = here.add_owner("ada")
            with ada.open() as meter:
                meter.add({"power": 417})

    Or give ``data``, a frame with a column of owners and one of times. Then its files are written as
    :func:`init` does, each owner of the data gets a stream, and the data are played through all roles.
    ``answer`` is the query with its results::

        with alpheus.local(frame, owner="meter", time="when") as here:
            rows = here.answer.rows()

    The ``owners`` with the most rows take part. All of it is a trial: you hold everybody's keys.
    """
    if data is None:
        if schema is None or policies is None:
            raise UsageError("give schema and policies, or data")
        return Local(schema, policies=policies, controllers=controllers, state=state)
    if schema is not None or policies is not None:
        raise UsageError("with data, schema and policies are found out", help="see alpheus.init")
    return _played(data, query, (owner, time), owners, controllers, state)


def _played(
    data: Any,
    query: str | None,
    named: tuple[str | None, str | None],
    owners: int,
    controllers: int,
    state: PathLike | None,
) -> Local:
    with tempfile.TemporaryDirectory(prefix="alpheus-") as folder:
        project = init(data, Path(folder) / "project", owner=named[0], time=named[1])
        _tick_by_window(project)
        recording = _Recording(project, data, owners)
        here = Local(
            project.schema,
            policies=project.policies,
            controllers=controllers,
            state=state,
            beginning=recording.beginning,
        )
        try:
            # The files stay with the deployment.
            here.schema = Path(shutil.copy(project.schema, here.folder / "schema.yaml"))
            here.policies = Path(shutil.copy(project.policies, here.folder / "policies.yaml"))
            recording.play(here, query or project.query)
        except BaseException:
            here.close()
            raise
    return here


def _tick_by_window(project: Project) -> None:
    """Makes ticks as long as the query's windows, up to a day, so that streams are online for whole windows."""
    size = re.search(r"SIZE (\d+) (SECOND|MINUTE|HOUR|DAY)", project.query)
    if size is None:
        return
    window = size[1] + {"SECOND": "s", "MINUTE": "min", "HOUR": "hr", "DAY": "d"}[size[2]]
    tick = "1d" if size[2] == "DAY" else window

    def multiples(found: re.Match[str]) -> str:
        names = (name.strip() for name in found[1].split(","))
        return f"window: [{', '.join(name for name in names if _seconds(name) % _seconds(tick) == 0)}]"

    schema = re.sub(r"(?m)^tick: .*$", f"tick: {tick}", project.schema.read_text(encoding="utf-8"))
    project.schema.write_text(re.sub(r"window: \[([^\]]*)\]", multiples, schema), encoding="utf-8")
    policies = project.policies.read_text(encoding="utf-8")
    project.policies.write_text(re.sub(r"window: \w+", f"window: {window}", policies), encoding="utf-8")


def _seconds(name: str) -> int:
    units = {"s": 1, "min": 60, "hr": 3600, "d": 86400}
    number = name.rstrip("adhimnrs")
    return int(number) * units[name[len(number) :]]


class _Recording:
    """The rows of a frame, in the order of their times."""

    def __init__(self, project: Project, data: Any, owners: int) -> None:
        found = project.understood
        if found.owner is None or len(found.time) != 1:
            raise UsageError(
                "a deployment is played from data with a column of owners and one of times",
                help="name them with owner and time, or use alpheus.init for other data",
            )
        self._schema = Schema.read(project.schema)
        self._tick = self._schema.tick // MICROSECOND
        attributes, (time,) = found.attributes, found.time
        rows: list[tuple[int, Any, dict[str, Any]]] = []
        counts: dict[Any, int] = {}
        for row in events_of(data):
            event = {name: _plain(row[column]) for name, column in attributes.items()}
            whose = row[found.owner]
            rows.append((micros(_moment(row[time])), whose, event))
            counts[whose] = counts.get(whose, 0) + 1
        most = sorted(counts, key=lambda whose: -counts[whose])[:owners]
        self._owners = {whose: f"owner-{number}" for number, whose in enumerate(most, 1)}
        self._rows = sorted((row for row in rows if row[1] in self._owners), key=lambda row: row[0])
        self.beginning = self._rows[0][0] // self._tick * self._tick

    def play(self, here: Local, query: str) -> None:
        """Adds all owners, asks the query, and sends every row through its owner's device.

        Every stream begins before any continues: a window waits for all streams that are online, and
        must not close before the service has heard of one.
        """
        added = {owner.name: owner for owner in here.add_owners(self._owners.values())}
        here.answer = here.query(query)
        of: dict[str, list[tuple[int, dict[str, Any]]]] = {name: [] for name in added}
        for at, whose, event in self._rows:
            of[self._owners[whose]].append((at, event))
        assert here._clock is not None
        here._clock.set(max(rows[0][0] for rows in of.values()))
        with ThreadPoolExecutor(8) as pool:
            opened = list(pool.map(lambda name: _begun(added[name], of[name][0]), of))
            # Of each stream an opening, and an event if events have frames of their own.
            each = 1 if self._schema.frames == "ticks" else 2
            _wait(here, lambda status: int(status["frames_read"]) >= each * len(opened), "events")
            here._clock.set(self._rows[-1][0] + 2 * self._tick)
            list(pool.map(_go_on, opened, (rows[1:] for rows in of.values())))


def _begun(owner: LocalOwner, first: tuple[int, dict[str, Any]]) -> Stream:
    stream = owner.open(times="given")
    stream.add(first[1], first[0] / 1000)
    return stream


def _go_on(stream: Stream, rows: list[tuple[int, dict[str, Any]]]) -> None:
    with stream:
        for at, event in rows:
            stream.add(event, at / 1000)


def _wait(here: Local, until: Callable[[dict[str, Any]], bool], what: str) -> None:
    consumer, end = here.consumer, clock.monotonic() + START
    while not until(consumer.status()):
        if clock.monotonic() > end:
            raise ServiceError(f"the service did not get all {what} within {START} s")
        clock.sleep(0.02)


def _wait_for_streams(here: Local, number: int) -> None:
    consumer, end = here.consumer, clock.monotonic() + START
    while True:
        tables = consumer.ask("SHOW STREAMS").tables
        if sum(int(row[1]) for table in tables for row in table.rows) >= number:
            return
        if clock.monotonic() > end:
            raise ServiceError(f"the service does not know all streams after {START} s")
        clock.sleep(0.05)


def _moment(value: Any) -> datetime:
    """A row's time. One without a zone is in UTC, as `init` takes it."""
    if isinstance(value, str):
        value = datetime.fromisoformat(value.replace("Z", "+00:00"))
    if hasattr(value, "to_pydatetime"):
        value = value.to_pydatetime(warn=False)
    if not isinstance(value, datetime):
        raise UsageError("the column of times holds something else", help="parse it to times first")
    return value if value.tzinfo else value.replace(tzinfo=timezone.utc)


def _plain(value: Any) -> Any:
    """A value of a frame, with empty texts as what they are: missing."""
    return None if value == "" or value != value else value

