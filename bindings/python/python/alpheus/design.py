"""Before anything runs: what a file holds, what a query would reveal, and what would allow it.

All of it happens on this machine, with sample owners. Nothing is sent anywhere.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from . import _frames
from ._errors import InputError, UndecidedError, UsageError
from ._program import PathLike, read, run
from ._times import moment
from .rows import FIXED, Row, Rows, _decimal


@dataclass(frozen=True)
class Listing:
    """A table of texts."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> Listing:
        """A table as commands print it."""
        rows = tuple(tuple(row) for row in said["rows"])
        return cls(said["title"], tuple(said["columns"]), rows)

    def records(self) -> list[dict[str, str]]:
        """The rows as mappings."""
        return [dict(zip(self.columns, row)) for row in self.rows]


@dataclass(frozen=True)
class Explanation:
    """What a query reveals, and to whom."""

    name: str
    schema: str
    #: What each window reveals. Nothing else leaves the streams.
    revealed: tuple[str, ...]
    #: Who learns it.
    learns: tuple[str, ...]
    window: timedelta
    #: Streams that take part, of those that match.
    streams: int
    fitting: int
    #: The error of each column, if the query says how exact results have to be.
    accuracy: tuple[str, ...]
    #: What the results do not hide.
    warnings: tuple[str, ...]
    #: Why the query could not be started now, if running queries block it.
    not_now: str | None
    #: Everything that the program says.
    raw: Mapping[str, Any]

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> Explanation:
        """An explanation as the program prints it."""
        return cls(
            name=said["name"],
            schema=said["schema"],
            revealed=tuple(said["revealed"]),
            learns=tuple(said["learns"]),
            window=timedelta(microseconds=said["window"]),
            streams=sum(group["streams"] for group in said["groups"]),
            fitting=said["fitting"],
            accuracy=tuple(said.get("accuracy", ())),
            warnings=tuple(said["warnings"]),
            not_now=said.get("not_now"),
            raw=said,
        )


@dataclass(frozen=True)
class Change:
    """The smallest change that makes a query allowed."""

    #: Each part of the change, in words.
    sentences: tuple[str, ...]
    #: The changed query.
    query: str
    #: The changed policies file, if owners have to choose more.
    policies: str | None
    #: Streams for which it is answered then.
    streams: int


@dataclass(frozen=True)
class Suggestion:
    """What would have to change for a query to be answered."""

    #: Whether it is answered as it is.
    answered: bool
    #: The rules that it breaks.
    because: tuple[str, ...] = ()
    change: Change | None = None
    #: A change that asks owners for nothing more, if there is one.
    without_grants: Change | None = None


@dataclass(frozen=True)
class Finding:
    """What was found in one file."""

    file: str
    kind: str
    #: What is wrong, with its place; ``None`` if the file is valid.
    problem: str | None


@dataclass(frozen=True)
class Understood:
    """What a file of readings holds, as it was understood."""

    owner: str | None
    time: tuple[str, ...]
    rows: int
    refused: int
    owners: int
    #: What is unsure.
    unsure: tuple[str, ...]
    #: Whether something that matters would have to be guessed.
    undecided: bool
    #: Attributes of the schema, and the columns that they come from.
    attributes: Mapping[str, str]
    raw: Mapping[str, Any]


class Project:
    """A folder with schema, source, policies and query: what :func:`init` writes."""

    def __init__(self, folder: PathLike) -> None:
        #: The folder.
        self.folder = Path(folder)

    @property
    def schema(self) -> Path:
        """The schema's file."""
        return self.folder / "schema.yaml"

    @property
    def policies(self) -> Path:
        """The file of the owners' choices."""
        return self.folder / "policies.yaml"

    @property
    def source(self) -> Path:
        """The file that says how rows become events."""
        return self.folder / "source.yaml"

    @property
    def query(self) -> str:
        """The first query."""
        return (self.folder / "query.sql").read_text(encoding="utf-8")

    @property
    def understood(self) -> Understood:
        """What the file holds."""
        said = json.loads((self.folder / "understood.json").read_text(encoding="utf-8"))
        return Understood(
            owner=said["owner"],
            time=tuple(said["time"]),
            rows=said["rows"],
            refused=said["refused"],
            owners=said["owners"],
            unsure=tuple(said["unsure"]),
            undecided=said["undecided"],
            attributes={each["name"]: each["column"] for each in said["attributes"]},
            raw=said,
        )

    @property
    def answer(self) -> Rows:
        """The first query's answer: the exact totals that the owners' policies allow."""
        return _answer(self.folder / "answer.csv")

    def replay(
        self, data: PathLike | Any, query: str | None = None, *, controllers: int = 1
    ) -> Rows:
        """Runs a query over a file or a frame, through every role, in one process on this machine."""
        with _written(query or self.query, ".sql") as sql, _csv(data) as file:
            with tempfile.TemporaryDirectory(prefix="alpheus-") as folder:
                output = Path(folder) / "answer.csv"
                line: list[PathLike] = ["replay", "--schema", self.schema, "--source", self.source]
                line += ["--policies", self.policies, "--input", file, "--query", sql]
                run([*line, "--controllers", str(controllers), "--output", output])
                return _answer(output)

    def __repr__(self) -> str:
        return f"<alpheus.Project in {self.folder}>"


def init(
    data: PathLike | Any,
    folder: PathLike,
    *,
    owner: str | None = None,
    time: str | Iterable[str] | None = None,
    zone: str | None = None,
    guess: bool = False,
    name: str | None = None,
) -> Project:
    """From a file or a frame of readings to files and a first answer.

    ``owner`` is the column that says whose a reading is, ``time`` the column of its time. Anything
    that is not given is inferred. If the data do not show something that matters, this raises
    :class:`UndecidedError`; with ``guess`` it writes the files with the best guess instead, and
    returns a project without an answer.
    """
    with _csv(data, name or "readings") as file:
        line: list[PathLike] = ["init", file, "--yes", "--output", folder]
        times = [time] if isinstance(time, str) else list(time or ())
        flags = [("--owner", owner), *(("--time", each) for each in times), ("--zone", zone)]
        line += [part for flag, value in flags if value is not None for part in (f"{flag}={value}",)]
        try:
            run(line)
        except UndecidedError:
            if not guess:
                raise
    return Project(folder)


def explain(
    sql: str,
    *,
    schema: PathLike,
    policies: PathLike | None = None,
    owners: int = 100,
    controllers: int | str = 1,
) -> Explanation:
    """What a query would reveal, over the given number of sample owners. Raises :class:`RefusedError` with each
    rule that it breaks.
    """
    said = read(["query", *_sample(sql, schema, policies, owners, controllers)])
    if isinstance(said, list):
        raise UsageError("this statement asks nothing of owners", help="give a CREATE STREAM statement")
    return Explanation.of(said)


def suggest(
    sql: str,
    *,
    schema: PathLike,
    policies: PathLike | None = None,
    owners: int = 100,
    controllers: int | str = 1,
) -> Suggestion:
    """The smallest change that makes a refused query allowed."""
    said = read(["suggest", *_sample(sql, schema, policies, owners, controllers)])
    if said["answer"] == "nothing":
        return Suggestion(answered=True)
    other = said.get("without_grants")
    return Suggestion(
        answered=False,
        because=tuple(said["because"]),
        change=_change(said["change"]),
        without_grants=None if other is None else _change(other),
    )


def check(*files: PathLike) -> list[Finding]:
    """Whether schemas, policies, sources, settings and queries are valid. Name the schema's file too."""
    try:
        said = read(["check", *files])
    except InputError as error:
        # The findings are printed, and the command fails.
        said = _findings(files, error)
    return [Finding(each["file"], each["kind"], each["problem"]) for each in said]


def _findings(files: tuple[PathLike, ...], error: InputError) -> Any:
    import subprocess

    from ._program import environment, program

    line = [str(program()), "check", *(str(file) for file in files), "--format", "json"]
    said = subprocess.run(line, capture_output=True, text=True, env=environment()).stdout
    if not said:
        raise error
    return json.loads(said)


def _sample(
    sql: str,
    schema: PathLike,
    policies: PathLike | None,
    owners: int,
    controllers: int | str,
) -> list[PathLike]:
    line: list[PathLike] = ["--schema", schema, f"--query={sql}"]
    line += [] if policies is None else ["--policies", policies]
    return [*line, "--owners", str(owners), "--controllers", str(controllers)]


def _change(said: Mapping[str, Any]) -> Change:
    return Change(
        sentences=tuple(said["sentences"]),
        query=said["query"],
        policies=said["policies"],
        streams=said["streams"],
    )


def _answer(path: Path) -> Rows:
    """The rows of a replay's table."""
    import csv

    def row(cells: dict[str, str]) -> Row:
        population, silent, excluded = (int(cells[n]) for n in ("population", "silent", "excluded"))
        values = {
            name: _cell(value) for name, value in cells.items() if name not in FIXED
        }
        start, end = (moment(1000 * int(cells[name])) for name in ("window_start", "window_end"))
        return Row(start, end, values, population, silent, excluded, cells["status"])

    with path.open(encoding="utf-8", newline="") as lines:
        return Rows(row(cells) for cells in csv.DictReader(lines))


def _cell(text: str) -> Decimal | str | None:
    return _decimal(text) if text else None


@contextmanager
def _written(text: str, ending: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="alpheus-") as folder:
        path = Path(folder) / f"query{ending}"
        path.write_text(text, encoding="utf-8")
        yield path


@contextmanager
def _csv(data: PathLike | Any, name: str = "readings") -> Iterator[PathLike]:
    """A file of the data: the file itself, or a frame as CSV that is removed again."""
    if isinstance(data, (str, Path)) or hasattr(data, "__fspath__"):
        yield data
        return
    with tempfile.TemporaryDirectory(prefix="alpheus-") as folder:
        path = Path(folder) / f"{name}.csv"
        write_csv(data, path)
        yield path


def write_csv(frame: Any, path: Path) -> None:
    """Writes a frame as CSV, with times in ISO 8601."""
    import csv

    names = _frames.names(frame)
    columns = [_frames.values(_frames.column(frame, name)) for name in names]
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(names)
        for row in zip(*columns):
            lines.writerow([_text(value) for value in row])


def _text(value: Any) -> Any:
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if value is None or value != value:
        return ""
    return value
