"""What a device does: it encrypts events, and sends them.

A :class:`Stream` encrypts and delivers. A :class:`Session` only encrypts, for those who send frames
themselves, for example over Kafka. Both hold a stream's key. Neither can be pickled or copied, and a
forked process cannot use what its parent opened. Every start draws a new session, so no pad is ever
used twice: not after a crash, a killed notebook kernel, a restored backup or a step of the clock. Only
the memory of a running process must not be copied and run twice, as a snapshot of a virtual machine does.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from . import _frames, _native
from ._errors import SessionError, UsageError
from ._program import PathLike
from ._times import Time, micros, moment

os.register_at_fork(after_in_child=_native._forked)


@dataclass(frozen=True)
class Attribute:
    """An attribute of events, as the schema declares it."""

    name: str
    type: Literal["number", "boolean", "text"]
    unit: str
    optional: bool
    #: Bounds of a number, in its unit, as text.
    min: str | None = None
    max: str | None = None
    #: Decimal places of a number: digits beyond them are rounded.
    decimals: int | None = None
    #: Maximum length of a text.
    max_bytes: int | None = None


class Schema:
    """A schema that was checked: what events may hold, and what owners may choose.

    >>> meters = Schema.parse('''
    ... name: Meters
    ... tick: 10s
    ... streamAttributes:
    ...   - { name: power, type: integer, unit: W, min: 0, max: 20000, aggregations: [mean] }
    ... ''')
    >>> meters
    <alpheus.Schema Meters, version 1, 3 words>
    >>> meters["power"].unit
    'W'
    >>> meters.check({"power": 30000})
    Traceback (most recent call last):
    ...
    alpheus._errors.EventError: `power` lies outside its bounds 0..=20000 (in units of 10^-0); fix the source or widen the schema's bounds
    """

    __slots__ = ("_native",)

    def __init__(self, native: _native.Schema) -> None:
        self._native = native

    @classmethod
    def parse(cls, text: str, *, avro: bool = False) -> Schema:
        """Reads YAML, or with ``avro`` an Avro schema. Raises :class:`SchemaError`."""
        return cls(_native.Schema.parse(text, avro))

    @classmethod
    def read(cls, path: PathLike) -> Schema:
        """Reads a file: YAML, or ``.avsc``."""
        file = Path(path)
        return cls.parse(file.read_text(encoding="utf-8"), avro=file.suffix == ".avsc")

    @classmethod
    def of(cls, given: Schema | PathLike) -> Schema:
        """A schema, or the one of a file."""
        return given if isinstance(given, Schema) else cls.read(given)

    @property
    def name(self) -> str:
        """The name that queries use."""
        return self._native.name

    @property
    def version(self) -> int:
        """The version, for people. Keys are bound to :attr:`id`."""
        return self._native.version

    @property
    def id(self) -> str:
        """The hash of the content, in hexadecimal digits."""
        return self._native.id

    @property
    def tick(self) -> timedelta:
        """Time between borders. Windows are multiples of it."""
        return timedelta(microseconds=self._native.tick_us)

    @property
    def words(self) -> int:
        """Number of 64-bit words of an encrypted event."""
        return self._native.words

    @property
    def frames(self) -> Literal["events", "ticks"]:
        """What a device sends: a frame for each event, or one a tick."""
        return "events" if self._native.frames == "events" else "ticks"

    @property
    def attributes(self) -> list[Attribute]:
        """The attributes, in their order."""
        return [Attribute(**said) for said in self._native.attributes]

    def __getitem__(self, name: str) -> Attribute:
        for attribute in self.attributes:
            if attribute.name == name:
                return attribute
        raise KeyError(name)

    def check(self, event: Mapping[str, Any]) -> None:
        """Raises :class:`EventError` if an event is not as declared."""
        self._native.check(dict(event))

    def check_frame(self, frame: Any) -> int:
        """Raises :class:`EventError` if a row of a frame is not as declared; returns the number of rows."""
        return self._native.check_columns(_frames.columns(frame, self._names(frame)))

    def encode(self, event: Mapping[str, Any]) -> list[int]:
        """The words of an event in the clear, before they are encrypted.

        Words that only say whether something happened at all are random.
        """
        return self._native.encode(dict(event))

    def _names(self, frame: Any, *others: str | None) -> list[str]:
        """The frame's columns that are attributes, and no others but those named."""
        known = {attribute.name for attribute in self.attributes}
        return [name for name in _frames.names(frame) if name not in others or name in known]

    def __repr__(self) -> str:
        return repr(self._native)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)


class Session:
    """A session that encrypts and sends nothing: you send its frames, in order, to the service's topic.

    A lost frame cannot be recreated. If one is lost, drop the session and open another.
    """

    __slots__ = ("_native", "_schema")

    def __init__(self, native: _native.Session, schema: Schema) -> None:
        self._native = native
        self._schema = schema

    @classmethod
    def open(
        cls,
        *,
        schema: Schema | PathLike,
        device: PathLike,
        identity: PathLike | None = None,
        first: bool = False,
        at: Time | None = None,
    ) -> Session:
        """Opens a session at the next tick.

        ``device`` is the device's file, from ``alpheus owner add``. ``identity`` is the device's
        identity folder, unless the schema says ``frames: events``. Use ``first`` only if you know
        that the stream never had a session: it may then open in the past, at the tick at or before ``at``.
        """
        known = Schema.of(schema)
        at_us = None if at is None else micros(at)
        native = _native.Session.open(known._native, device, identity, first, at_us)
        return cls(native, known)

    @property
    def schema(self) -> Schema:
        """The schema."""
        return self._schema

    @property
    def stream(self) -> str:
        """The stream's id, which is public."""
        return self._native.stream

    @property
    def last(self) -> datetime:
        """The time of the last event or border."""
        return moment(self._native.last_us)

    @property
    def next_border(self) -> datetime:
        """The time of the next border: call :meth:`advance` then."""
        return moment(self._native.next_border_us)

    @property
    def closed(self) -> bool:
        """Whether it is closed."""
        return self._native.closed

    def opening(self) -> list[bytes]:
        """The frames that wait. After :meth:`open` this is the session's first: send it before all others."""
        return self._native.take()

    def encrypt(self, event: Mapping[str, Any], at: Time) -> list[bytes]:
        """The frames of one event, after those of the borders before it.

        The time must be after the last one, and on no tick. Under a schema with one frame a tick, an
        event's tick is sent by a later call.
        """
        return self._native.event(dict(event), micros(at))

    def encrypt_frame(self, frame: Any, *, time: str) -> list[bytes]:
        """The frames of all rows of a pandas, Polars or Arrow frame, ordered by its column ``time``.

        All rows are checked before the first is encrypted. A row on a tick, or of the same millisecond
        as the one before, gets the next free microsecond.
        """
        columns = _frames.columns(frame, self._schema._names(frame, time))
        return self._native.events(columns, _frames.times(_frames.column(frame, time)))

    def advance(self, now: Time) -> list[bytes]:
        """The frames of all borders up to a time."""
        return self._native.advance(micros(now))

    def sleep_until(self, now: Time) -> list[bytes]:
        """The frames up to a time before which the device was asleep, so that nothing happened.

        Under a schema with one frame a tick this is one frame, however long it was.
        """
        return self._native.sleep_until(micros(now))

    def close(self, at: Time | None = None) -> list[bytes]:
        """Ends the session at the end of its tick, or at a later tick, and returns the last frames."""
        return self._native.close(None if at is None else micros(at))

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._native.__reduce_ex__(protocol)

    def __repr__(self) -> str:
        return f"<alpheus.Session of stream {self.stream}>"


@dataclass(frozen=True)
class Sent:
    """What became of a stream's events."""

    #: Events that were encrypted, and whose frames the service has. It may still have refused a frame,
    #: for example as late: its log and counters say so.
    events: int
    #: Events that were refused after they were added: their time was before the session's.
    refused: int


class Stream:
    """A stream's device, which encrypts events and delivers them over mutual TLS.

    Use it as a context manager. Leaving it ends the session at the end of its tick, for which it waits,
    and waits until the service has every frame::

        with Stream.open(schema="schema.yaml", device="watch.json", identity="pki/watch",
                         state="run/watch", server="https://localhost:7400") as watch:
            watch.add({"heart_rate": 72})

    Frames wait in the folder ``state``, as ciphertext, until the service has confirmed them. A process
    that is killed loses the events of its open tick, and those that wait to be encrypted, up to 1,024.
    Only one process uses a folder.
    """

    __slots__ = ("_native", "_schema", "_sent", "_times", "__weakref__")

    def __init__(self, native: _native.Stream, schema: Schema, times: str) -> None:
        self._native = native
        self._schema = schema
        self._times = times
        self._sent: Sent | None = None

    @classmethod
    def open(
        cls,
        *,
        schema: PathLike,
        device: PathLike,
        identity: PathLike,
        state: PathLike,
        server: str,
        times: Literal["clock", "given"] = "clock",
    ) -> Stream:
        """Opens the stream. With ``times="clock"`` an event happens when it is added; with
        ``times="given"`` each event says when, and the first of a new stream may lie in the past.

        It returns at once. The session opens at the next tick; until then up to 1,024 events wait,
        and adding more blocks.
        """
        if times not in ("clock", "given"):
            raise UsageError('times is "clock" or "given"')
        known = Schema.read(schema)
        files = {"schema": schema, "device": device, "identity": identity, "state": state}
        arguments = [f"--{name}={os.fspath(path)}" for name, path in files.items()]
        native = _native.Stream.open([*arguments, f"--server={server}"], times == "given")
        return cls(native, known, times)

    @property
    def schema(self) -> Schema:
        """The schema."""
        return self._schema

    @property
    def closed(self) -> bool:
        """Whether it is closed, or has ended by itself: :meth:`close` says why."""
        return self._native.closed

    @property
    def sent(self) -> Sent | None:
        """What became of the events, once it is closed."""
        return self._sent

    def add(self, event: Mapping[str, Any], at: Time | None = None) -> None:
        """Adds one event. Raises :class:`EventError` if it is not as the schema declares, or late."""
        self._native.add(dict(event), None if at is None else micros(at))

    def add_all(self, events: Iterable[Mapping[str, Any]], *, time: str | None = None) -> int:
        """Adds events one by one, whose time is under the key ``time``; returns their number."""
        added = 0
        for event in events:
            values = dict(event)
            self.add(values, None if time is None else values.pop(time))
            added += 1
        return added

    def add_frame(self, frame: Any, *, time: str | None = None) -> int:
        """Adds all rows of a pandas, Polars or Arrow frame, ordered by the column ``time``.

        All rows are checked before the first is sent. Returns their number.
        """
        columns = _frames.columns(frame, self._schema._names(frame, time))
        times = None if time is None else _frames.times(_frames.column(frame, time))
        return self._native.add_columns(columns, times)

    def close(self) -> Sent:
        """Ends the session at the end of its tick, and waits until the service has everything.

        Ctrl-C ends the wait, at once. The device then ends by itself at the end of its tick, if the
        process lives that long, and what is left is sent by the next start. Call it again to continue waiting.
        """
        if self._sent is None:
            events, refused = self._native.close()
            self._sent = Sent(events, refused)
            if refused:
                warnings.warn(
                    f"{refused} of {events + refused} events were refused: their time is before the session's",
                    RuntimeWarning,
                    stacklevel=2,
                )
        return self._sent

    def __enter__(self) -> Stream:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.close()
        except SessionError:
            # What happened within explains more.
            if error is None:
                raise

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._native.__reduce_ex__(protocol)

    def __del__(self) -> None:
        if self._sent is None and _is_open(self._native):
            what = f"{self!r} was not closed: it ends in its own time, and nobody knows what became of its events"
            warnings.warn(what, ResourceWarning, stacklevel=2, source=self)

    def __repr__(self) -> str:
        return f"<alpheus.Stream of schema {self._schema.name}, times from {self._times}>"


def _is_open(stream: _native.Stream) -> bool:
    try:
        return not stream.closed
    except SessionError:
        # It belongs to the process that this one is a copy of.
        return False


def events_of(frame: Any) -> Iterator[dict[str, Any]]:
    """The rows of a frame as mappings, for those who look at them one by one."""
    names = _frames.names(frame)
    for values in zip(*(_frames.values(_frames.column(frame, name)) for name in names)):
        yield dict(zip(names, values))
