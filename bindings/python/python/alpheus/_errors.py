"""Why something failed. No exception holds a key or the value of an event. Names that a caller gave are quoted."""

from __future__ import annotations


class AlpheusError(Exception):
    """Anything that Alpheus refuses or cannot do.

    ``id`` is the kind of failure as ``alpheus errors`` lists it, ``help`` says how to fix it, and
    ``reason`` is the reason in one word where there is one. Each is ``None`` if it is not known.
    """

    def __init__(
        self,
        message: str,
        *,
        id: str | None = None,
        help: str | None = None,
        reason: str | None = None,
        attribute: str | None = None,
        row: str | int | None = None,
    ) -> None:
        super().__init__(message)
        self.id = id
        self.help = help
        self.reason = reason
        #: The attribute of the event that is wrong.
        self.attribute = attribute
        #: The row of a frame that is wrong, counted from 0.
        self.row = None if row is None else int(row)

    def __str__(self) -> str:
        message = super().__str__()
        return f"{message}\nhelp: {self.help}" if self.help else message


class UsageError(AlpheusError, ValueError):
    """The call is wrong."""


class RefusedError(AlpheusError):
    """The owners' policies forbid it."""


class InputError(AlpheusError, ValueError):
    """A file or an argument cannot be understood."""


class UndecidedError(AlpheusError):
    """Something that matters would have to be guessed."""


class CheckError(AlpheusError):
    """What was checked does not hold. Do not use what was checked."""


class ServiceError(AlpheusError, OSError):
    """A file, the network or a process failed."""


class SchemaError(InputError):
    """A schema is not valid."""


class EventError(InputError):
    """An event is not as its schema declares. Nothing of it was encrypted."""


class SessionError(AlpheusError, RuntimeError):
    """A session cannot do this any more, or not in this process."""


#: The class of a command's exit code.
OF_EXIT_CODE: dict[int, type[AlpheusError]] = {
    1: CheckError,
    2: UsageError,
    3: RefusedError,
    4: InputError,
    5: ServiceError,
    6: UndecidedError,
}
