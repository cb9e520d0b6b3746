"""Rows of results: values with their units and errors, and frames made of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any, overload

from ._times import moment

#: A value: a count, an exact decimal, a list or a mapping of such, or nothing.
Value = Any

#: What a row of the service has besides the query's own columns.
FIXED = frozenset(
    "window_start window_end population silent excluded status noise mostly_noise windows "
    "streams_without_report sealed integrity plan members_left_out members_refused".split()
)
#: What a frame has of a row where the row has it.
_ASKED = ("integrity", "members_left_out", "members_refused", "streams_without_report")
OK = "ok"
#: The status of a window that opened with more noise than the query asks for.
LESS_EXACT = "ok: less exact than asked"


@dataclass(frozen=True)
class Noise:
    """The noise in a value, in its unit."""

    #: Standard deviation of the noise.
    deviation: float | None
    #: The margin that 95 % of results stay within.
    margin: float | None


@dataclass(frozen=True)
class Column:
    """A column of results."""

    name: str
    #: What it is, in words.
    what: str = ""
    #: The unit of its values; empty for counts, and where the schema names none.
    unit: str = ""
    #: Of a histogram: the lower edge of each bin.
    edges: tuple[str, ...] = ()


@dataclass(frozen=True)
class Row:
    """One window of one group."""

    window_start: datetime
    #: The end, exclusive.
    window_end: datetime
    #: The group's columns and the query's own. ``None`` where the window did not open.
    values: Mapping[str, Value]
    #: Owners with data.
    population: int
    #: Streams without data.
    silent: int
    #: Streams that were online but incomplete, or excluded by their controller.
    excluded: int
    #: ``ok``, ``ok: less exact than asked``, or why the window did not open.
    status: str
    #: For a query with noise: the noise of each column.
    noise: Mapping[str, Noise] = field(default_factory=dict)
    #: Columns that say little more than that there is noise.
    mostly_noise: tuple[str, ...] = ()
    #: For running totals: the number of windows in them.
    windows: int | None = None
    #: For a query that asks for it: who has signed the row, or, unless it was asked with
    #: ``verified=True``, only what the service claims.
    integrity: str | None = None
    #: Of such a row: the plan whose members have signed it.
    plan: str | None = None
    #: How many streams the engine did not report; ``None`` if it reported all.
    streams_without_report: int | None = None
    #: Of a bounded row: how many of the window's controllers are not in it.
    members_left_out: int | None = None
    #: How many of these had no proof that holds, as the service says.
    members_refused: int | None = None
    #: Whether values were sealed for the query's consumer.
    sealed: bool = False

    @property
    def ok(self) -> bool:
        """Whether the window opened."""
        return self.status in (OK, LESS_EXACT)

    def __getitem__(self, column: str) -> Value:
        return self.values[column]

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> Row:
        """A row as the service sends it.

        >>> row = Row.of({"window_start": 0, "window_end": 10000, "status": "ok",
        ...               "population": 12, "silent": 0, "excluded": 0, "sum_power": "5175"})
        >>> row.ok, row["sum_power"], row.window_end.second
        (True, Decimal('5175'), 10)
        """
        values = {name: _value(value) for name, value in said.items() if name not in FIXED}
        noise = {name: _noise(of) for name, of in (said.get("noise") or {}).items()}
        return cls(
            window_start=moment(1000 * said["window_start"]),
            window_end=moment(1000 * said["window_end"]),
            values=values,
            population=said["population"],
            silent=said["silent"],
            excluded=said["excluded"],
            status=said["status"],
            noise=noise,
            mostly_noise=tuple(said.get("mostly_noise") or ()),
            windows=said.get("windows"),
            integrity=said.get("integrity"),
            plan=said.get("plan"),
            streams_without_report=said.get("streams_without_report"),
            members_left_out=said.get("members_left_out"),
            members_refused=said.get("members_refused"),
            sealed=bool(said.get("sealed")),
        )


def _value(said: Any) -> Value:
    """A value, exactly. Decimals come as texts."""
    if isinstance(said, str):
        return _decimal(said)
    if isinstance(said, list):
        return [_value(each) for each in said]
    if isinstance(said, dict):
        return {name: _value(each) for name, each in said.items()}
    return said


def _decimal(text: str) -> Decimal | str:
    plain = text.removeprefix("-").replace(".", "", 1)
    return Decimal(text) if plain.isdigit() and plain.isascii() else text


def _noise(said: Any) -> Noise:
    if not isinstance(said, Mapping):
        return Noise(None, None)
    return Noise(_number(said.get("deviation")), _number(said.get("margin_95")))


def _number(said: Any) -> float | None:
    return None if said is None else float(said)


class Rows(Sequence[Row]):
    """Rows of a query, in the order of their windows."""

    def __init__(self, rows: Iterable[Row], columns: Iterable[Column] = ()) -> None:
        self._rows = tuple(rows)
        #: What the columns are.
        self.columns = tuple(columns)

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> Rows: ...
    def __getitem__(self, index: int | slice) -> Row | Rows:
        if isinstance(index, slice):
            return Rows(self._rows[index], self.columns)
        return self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    @property
    def opened(self) -> Rows:
        """The rows of windows that opened."""
        return Rows((row for row in self._rows if row.ok), self.columns)

    @property
    def units(self) -> dict[str, str]:
        """The unit of each column that has one."""
        return {column.name: column.unit for column in self.columns if column.unit}

    def records(self) -> list[dict[str, Any]]:
        """The rows as flat mappings. Of a column with noise, ``NAME_margin`` is its 95 % margin."""
        return [_record(row) for row in self._rows]

    def to_pandas(self) -> Any:
        """A frame of pandas. Its ``attrs["units"]`` are the units. Decimals become floats."""
        import pandas

        frame = pandas.DataFrame(_floats(self.records()))
        frame.attrs["units"] = self.units
        return frame

    def to_polars(self) -> Any:
        """A frame of Polars. Decimals become floats."""
        import polars

        return polars.DataFrame(_floats(self.records()), infer_schema_length=None)

    def to_arrow(self) -> Any:
        """A table of Arrow, whose fields have their units as metadata. Decimals become floats."""
        import pyarrow

        table = pyarrow.Table.from_pylist(_floats(self.records()))
        fields = [
            each.with_metadata({"unit": self.units[each.name]}) if each.name in self.units else each
            for each in table.schema
        ]
        return table.cast(pyarrow.schema(fields))

    def __repr__(self) -> str:
        return f"<alpheus.Rows: {len(self)}, {len(self.opened)} of them opened>"


def _record(row: Row) -> dict[str, Any]:
    record: dict[str, Any] = {"window_start": row.window_start, "window_end": row.window_end}
    for name, value in row.values.items():
        record[name] = value
        if name in row.noise:
            record[f"{name}_margin"] = row.noise[name].margin
    record.update(population=row.population, silent=row.silent, excluded=row.excluded)
    record.update({name: getattr(row, name) for name in _ASKED if getattr(row, name) is not None})
    return {**record, "status": row.status}


def _floats(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: _float(value) for name, value in record.items()} for record in records]


def _float(value: Any) -> Any:
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, list):
        return [_float(each) for each in value]
    if isinstance(value, Mapping):
        return {name: _float(each) for name, each in value.items()}
    return value
