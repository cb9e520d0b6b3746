"""What a consumer does: it asks a service, and reads results as they arrive."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from . import _native
from ._errors import ServiceError, UsageError
from ._program import PathLike
from .design import Explanation, Listing
from .rows import Column, Row, Rows

#: How long a request waits at the service for a row, in seconds. Ctrl-C is seen in between.
WAIT = 1


@dataclass(frozen=True)
class Answer:
    """The service's answer to a statement that starts no query."""

    explanation: Explanation | None = None
    tables: tuple[Listing, ...] = ()
    #: The query that was stopped.
    dropped: str | None = None


class Consumer:
    """A consumer's connection to a service.

    >>> Consumer("https://localhost:7400", identity="pki/analyst")
    <alpheus.Consumer of https://localhost:7400>
    """

    def __init__(self, server: str, *, identity: PathLike) -> None:
        self._server = server
        self._identity = identity
        self._connected: tuple[int, _native.Consumer] | None = None

    def _client(self) -> _native.Consumer:
        # A copy of a process does not have its threads, so it connects again.
        if self._connected is None or self._connected[0] != os.getpid():
            self._connected = (os.getpid(), _native.Consumer.connect(self._server, self._identity))
        return self._connected[1]

    def query(self, sql: str, *, verified: bool = False) -> Query:
        """Starts a ``CREATE STREAM`` statement; its results come window by window.

        With ``verified`` the statement must ask for rows that controllers sign. Rows that do not hold then
        have no result: see :attr:`Row.integrity`.
        """
        if verified and not _native.Consumer.asks_verified(sql):
            raise UsageError(
                "this statement does not ask for verified rows",
                help="add WITH (integrity = 'verified', alpha = '1/3'), or leave out verified=True",
            )
        said = json.loads(self._client().statement(sql))
        if "running" not in said:
            raise UsageError(
                "this statement starts no query", help="use `ask` for EXPLAIN, SHOW, DESCRIBE and DROP"
            )
        plan = Explanation.of(said["running"])
        return Query(self, plan.name, plan, verified=verified)

    def ask(self, sql: str) -> Answer:
        """What the service says of an ``EXPLAIN``, ``SHOW``, ``DESCRIBE`` or ``DROP STREAM`` statement."""
        said = json.loads(self._client().statement(sql))
        if "explanation" in said:
            return Answer(explanation=Explanation.of(said["explanation"]))
        if "dropped" in said:
            return Answer(dropped=said["dropped"])
        return Answer(tables=tuple(Listing.of(table) for table in said.get("tables", ())))

    def results(self, name: str, *, verified: bool = False) -> Query:
        """A query of yours that is already running. With ``verified``, rows that are not verified have no result."""
        return Query(self, name, verified=verified)

    def queries(self) -> list[dict[str, Any]]:
        """All running queries of the service."""
        known: list[dict[str, Any]] = json.loads(self._client().queries())
        return known

    def status(self) -> dict[str, Any]:
        """The service's counts since its start, and its notes for operators."""
        said: dict[str, Any] = json.loads(self._client().status())
        return said

    def __repr__(self) -> str:
        return f"<alpheus.Consumer of {self._server}>"


class Query:
    """A running query, and its results."""

    def __init__(
        self, consumer: Consumer, name: str, plan: Explanation | None = None, *, verified: bool = False
    ) -> None:
        self._consumer = consumer
        self._verified = verified
        #: The query's name.
        self.name = name
        #: What each window reveals, and to whom, if the query was started here.
        self.plan = plan
        self._columns: tuple[Column, ...] | None = None

    @property
    def columns(self) -> tuple[Column, ...]:
        """What the columns are, with their units."""
        if self._columns is None:
            named = [known for known in self._consumer.queries() if known["name"] == self.name]
            self._columns = tuple(_column(said) for known in named for said in known["columns"])
        return self._columns

    def rows(self) -> Rows:
        """The rows so far."""
        found: list[Row] = []
        after = 0
        while True:
            rows, after = self._page(after, 0)
            if not rows:
                return Rows(found, self.columns)
            found += rows

    def follow(self, *, timeout: float | None = None) -> Iterator[Row]:
        """Rows as they arrive, from the first one on. Ends if no row arrives for ``timeout`` seconds."""
        after, last = 0, time.monotonic()
        while True:
            rows, after = self._page(after, WAIT)
            if rows:
                yield from rows
                last = time.monotonic()
            elif timeout is not None and time.monotonic() - last > timeout:
                return

    def wait(self, windows: int = 1, *, timeout: float = 60) -> Rows:
        """Waits for that many windows to open. Raises :class:`ServiceError` after ``timeout`` seconds."""
        found: list[Row] = []
        after, until = 0, time.monotonic() + timeout
        while sum(row.ok for row in found) < windows:
            rows, after = self._page(after, WAIT)
            found += rows
            if not rows and time.monotonic() > until:
                last = f"; the last one did not open: {found[-1].status}" if found else ""
                raise ServiceError(f"no {windows} windows have opened in {timeout} s{last}")
        return Rows(found, self.columns)

    def stop(self) -> None:
        """Stops the query."""
        quoted = self.name.replace('"', '""')
        self._consumer.ask(f'DROP STREAM "{quoted}"')

    def __iter__(self) -> Iterator[Row]:
        return self.follow()

    def _page(self, after: int, wait: int) -> tuple[list[Row], int]:
        rows, after = self._consumer._client().rows(self.name, after, wait, self._verified)
        return [Row.of(json.loads(row)) for row in rows], after

    def __repr__(self) -> str:
        return f"<alpheus.Query {self.name}>"


def _column(said: dict[str, Any]) -> Column:
    edges = tuple(said.get("edges", ()))
    return Column(said["name"], said["what"], said["unit"], edges)


def connect(server: str | None = None, *, identity: PathLike | None = None) -> Consumer:
    """A connection; by default to what ``ALPHEUS_SERVER`` and ``ALPHEUS_IDENTITY`` name."""
    server = server or os.environ.get("ALPHEUS_SERVER")
    identity = identity or os.environ.get("ALPHEUS_IDENTITY")
    if not server or not identity:
        raise UsageError(
            "which service, and as whom?",
            help="give server and identity, or set ALPHEUS_SERVER and ALPHEUS_IDENTITY",
        )
    return Consumer(server, identity=identity)


def query(
    sql: str, *, server: str | None = None, identity: PathLike | None = None, verified: bool = False
) -> Query:
    """Starts a query: ``connect(server, identity=identity).query(sql, verified=verified)``."""
    return connect(server, identity=identity).query(sql, verified=verified)


def results(
    name: str, *, server: str | None = None, identity: PathLike | None = None, verified: bool = False
) -> Query:
    """A running query of yours, by its name."""
    return connect(server, identity=identity).results(name, verified=verified)
