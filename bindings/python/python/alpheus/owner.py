"""What an owner does: choose what others may learn, see who learned what, and withdraw."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from ._errors import InputError
from ._program import PathLike, read, run


@dataclass(frozen=True)
class LogLine:
    """Something that happened to a stream: who learned what, or what its owner decided."""

    at: datetime
    event: str


class Owner:
    """An owner at a controller, by the folder with their signing key.

    >>> Owner("https://localhost:7401", identity="pki/alice")
    <alpheus.Owner at https://localhost:7401>
    """

    def __init__(
        self, controller: str, *, identity: PathLike, controller_name: str | None = None
    ) -> None:
        self._controller = controller
        self._identity = identity
        self._name = controller_name

    def add(
        self,
        *,
        schema: PathLike,
        policies: PathLike,
        producer: str,
        device: PathLike,
        metadata: Mapping[str, str] | None = None,
    ) -> StreamOwner:
        """Creates a stream, hands its key to the controller, and writes the device's file.

        ``producer`` is the name on the certificate of the device that will send. Anyone who has the
        device's file can read the stream: it belongs on the device alone.
        """
        line: list[PathLike] = ["owner", "add", *self._reach(), "--schema", schema]
        line += ["--policies", policies, "--producer", producer, "--device", device]
        line += [f"--metadata={name}={value}" for name, value in (metadata or {}).items()]
        return StreamOwner(self, run(line).strip())

    def streams(self) -> list[StreamOwner]:
        """The owner's streams at this controller."""
        tables = read(["owner", "streams", *self._reach()])
        return [StreamOwner(self, row[0]) for table in tables for row in table["rows"]]

    def stream(self, id: str) -> StreamOwner:
        """A stream, by its id."""
        return StreamOwner(self, id)

    def backup(self, to: PathLike, *, key_file: PathLike, devices: tuple[PathLike, ...] = ()) -> None:
        """Backs up the identity folder and devices' files into one encrypted file."""
        line: list[PathLike] = ["owner", "backup", "--identity", self._identity, "--to", to]
        for device in devices:
            line += ["--device", device]
        run([*line, "--key-file", key_file])

    def _reach(self) -> list[PathLike]:
        line: list[PathLike] = ["--identity", self._identity, "--controller", self._controller]
        return line if self._name is None else [*line, "--controller-name", self._name]

    def __repr__(self) -> str:
        return f"<alpheus.Owner at {self._controller}>"


class StreamOwner:
    """One stream of an owner."""

    def __init__(self, owner: Owner, id: str) -> None:
        self._owner = owner
        #: The stream's id.
        self.id = id

    def choose(
        self, *, schema: PathLike, policies: PathLike, metadata: Mapping[str, str] | None = None
    ) -> None:
        """Changes the choice of what may be learned. It is signed, and applies to later windows."""
        line = [*self._line("choose"), "--schema", schema, "--policies", policies]
        run([*line, *(f"--metadata={name}={value}" for name, value in (metadata or {}).items())])

    def log(self) -> list[LogLine]:
        """Who learned what, and the owner's own decisions, oldest first."""
        tables = read(self._line("log"))
        rows = [row for table in tables for row in table["rows"]]
        return [LogLine(datetime.fromisoformat(_offset(at)), event) for at, event in rows]

    def budgets(self) -> Any:
        """How much of the stream's privacy budgets is spent."""
        return read(self._line("budgets"))

    def grant(self, reader: PathLike, *, start: date, end: date) -> None:
        """Lets a consumer read the stream's single events of some days, each once the day is over.

        ``reader`` is the consumer's certificate, ``consumer.txt`` of its identity folder.
        """
        if end < start:
            raise InputError("the last day is before the first")
        days: list[PathLike] = ["--from", start.isoformat(), "--to", end.isoformat()]
        run([*self._line("grant"), "--reader", reader, *days])

    def end_grant(self, reader: PathLike) -> None:
        """Ends such access: no further keys are handed out."""
        run([*self._line("grant"), "--reader", reader, "--stop"])

    def revoke(self) -> None:
        """Withdraws consent for the stream, permanently."""
        run(self._line("revoke"))

    def erase(self, *, device: PathLike | None = None, statement: PathLike | None = None) -> None:
        """Has the stream's key destroyed, so that its past data can never be read again."""
        line = self._line("erase")
        line += [] if device is None else ["--device", device]
        run([*line, *([] if statement is None else ["--statement", statement])])

    def _line(self, command: str) -> list[PathLike]:
        return ["owner", command, *self._owner._reach(), "--stream", self.id]

    def __repr__(self) -> str:
        return f"<alpheus.StreamOwner of stream {self.id}>"


def _offset(time: str) -> str:
    """ISO 8601 as every Python from 3.11 on reads it."""
    return time.replace("Z", "+00:00")
