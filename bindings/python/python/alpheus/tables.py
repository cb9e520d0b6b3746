"""Encrypted tables on an untrusted server, whose every answer is checked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import design
from ._program import PathLike, read, run
from .design import Listing


class Table:
    """A table, which is a folder of its owner's: a key, and an index of some kilobytes.

    **Keep a copy of** ``table.key``. Without it nobody can ever read anything of the table again.
    A wrong answer of the server raises :class:`CheckError`, and nothing of it is shown.

    >>> Table("ada", server="https://localhost:7601", identity="pki/ada")
    <alpheus.Table in ada>
    """

    def __init__(self, state: PathLike, *, server: str, identity: PathLike) -> None:
        self._state = state
        self._server = server
        self._identity = identity

    @classmethod
    def create(
        cls, schema: PathLike, state: PathLike, *, server: str, identity: PathLike
    ) -> Table:
        """Creates a table in a new folder, from a file with its columns, bounds and pairs."""
        table = cls(state, server=server, identity=identity)
        run(["table", "create", schema, *table._reach()])
        return table

    def append(self, data: PathLike | Any, *, repeats: bool = False) -> None:
        """Appends a CSV file or a frame: all of its rows, or none if one is wrong.

        Data are appended once. With ``repeats`` rows that the table has already are appended again.
        """
        with _csv(data) as file:
            run(["table", "append", file, *(["--repeats"] if repeats else []), *self._reach()])

    def correct(self, data: PathLike | Any, *, rewrite: bool = False) -> None:
        """Replaces rows by those of the same time and groups. ``rewrite`` also rewrites their blocks."""
        with _csv(data) as file:
            run(["table", "correct", file, *(["--rewrite"] if rewrite else []), *self._reach()])

    def query(self, sql: str) -> list[dict[str, Any]]:
        """The verified answer of a query such as ``SELECT MEAN(cars), VAR(cars)``: a mapping for each row."""
        said = read(["table", "query", sql, *self._reach()])
        rows: list[dict[str, Any]] = said if isinstance(said, list) else [said]
        return rows

    def explain(self, sql: str) -> list[Listing]:
        """What a query will cost, and how far the worst case stays from its limits."""
        said = read(["table", "query", f"EXPLAIN {sql}", *self._reach()])
        return [Listing.of(table) for table in said]

    def to_pandas(self, sql: str) -> Any:
        """The verified answer as a frame of pandas."""
        import pandas

        return pandas.DataFrame(self.query(sql))

    def verify(self) -> None:
        """Checks that the server still has every block, unchanged. Raises :class:`CheckError`."""
        run(["table", "verify", *self._reach()])

    def merge(self) -> None:
        """Rewrites blocks of many small appends as one run, so that checks take less time."""
        run(["table", "merge", *self._reach()])

    def prune(self, *, force: bool = False) -> None:
        """Lets the server drop blocks that this folder does not need any more."""
        run(["table", "prune", *(["--force"] if force else []), *self._reach()])

    def _reach(self) -> list[PathLike]:
        return [
            *("--identity", self._identity),
            *("--state", self._state),
            *("--server", self._server),
        ]

    def __repr__(self) -> str:
        return f"<alpheus.Table in {self._state}>"


def _csv(data: PathLike | Any) -> Any:
    return design._csv(data, "rows")


def schema(
    name: str,
    *,
    time: str,
    columns: Mapping[str, tuple[float, float]],
    groups: tuple[str, ...] = (),
    squares: bool = True,
    pairs: tuple[tuple[str, str], ...] = (),
    optional: tuple[str, ...] = (),
    path: PathLike | None = None,
) -> str:
    """A table's schema as YAML: names, and the bounds that values never exceed.

    With ``path`` it is written to that file too.

    >>> print(schema("Street", time="timestamp", columns={"cars": (0, 10000)}), end="")
    name: "Street"
    time: { column: "timestamp" }
    columns:
      - { name: "cars", min: 0, max: 10000, squares: true }
    """
    import json

    quoted = json.dumps
    lines = [f"name: {quoted(name)}", f"time: {{ column: {quoted(time)} }}"]
    if groups:
        lines.append(f"groups: {quoted(list(groups))}")
    lines.append("columns:")
    for column, (low, high) in columns.items():
        more = ", squares: true" if squares else ""
        more += ", optional: true" if column in optional else ""
        lines.append(f"  - {{ name: {quoted(column)}, min: {low}, max: {high}{more} }}")
    if pairs:
        lines.append(f"pairs: {quoted([list(pair) for pair in pairs])}")
    text = "\n".join(lines) + "\n"
    if path is not None:
        Path(path).write_text(text, encoding="utf-8")
    return text
