"""Times as Alpheus counts them: whole microseconds since 1970."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

from ._errors import EventError

#: A time: with its zone, or a number of milliseconds since 1970.
Time = datetime | int | float

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
MICROSECOND = timedelta(microseconds=1)
#: The first time that does not fit the cipher's 52 bits.
LIMIT = 2**52


def micros(time: Time | Any) -> int:
    """A time in microseconds.

    >>> micros(datetime(1970, 1, 1, 0, 0, 1, tzinfo=timezone.utc))
    1000000
    >>> micros(1500)
    1500000
    """
    if isinstance(time, datetime):
        if time.tzinfo is None:
            raise EventError("a time without a zone: say `tzinfo=timezone.utc`", reason="Time")
        at = (time - EPOCH) // MICROSECOND
        if not 0 <= at < LIMIT:
            raise EventError("the time lies before 1970 or after 2112", reason="Time")
        return at
    if isinstance(time, bool) or not isinstance(time, (int, float)):
        raise EventError(
            "a time is a datetime with its zone, or milliseconds since 1970", reason="Time"
        )
    try:
        at = round(time * 1000)
    except (OverflowError, ValueError):
        at = -1
    if not 0 <= at < LIMIT:
        raise EventError("the time lies before 1970 or after 2112", reason="Time")
    return at


def moment(at_us: int) -> datetime:
    """A time of so many microseconds.

    >>> moment(1_500_000).isoformat()
    '1970-01-01T00:00:01.500000+00:00'
    """
    return EPOCH + at_us * MICROSECOND
