"""Frames of pandas, Polars and Arrow as columns in memory, which the native part reads.

None of the three is needed by this package: a frame is known by what it can do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ._errors import EventError
from ._times import micros

#: A column: its kind, its values and where one is missing; or Python's own values.
Column = tuple[str, Any, Any] | list[Any]


def names(frame: Any) -> list[str]:
    """The names of a frame's columns."""
    if isinstance(frame, Mapping):
        return [str(name) for name in frame]
    found = getattr(frame, "column_names", None)
    return [str(name) for name in (frame.columns if found is None else found)]


def column(frame: Any, name: str) -> Any:
    """One column of a frame, as the frame has it."""
    return frame[name]


def values(column: Any) -> list[Any]:
    """A column as Python's own values."""
    for way in ("to_pylist", "to_list", "tolist"):
        if hasattr(column, way):
            found: list[Any] = getattr(column, way)()
            return found
    return list(column)


def columns(frame: Any, wanted: Iterable[str]) -> dict[str, Column]:
    """Columns of a frame, as the native part takes them."""
    return {name: of(column(frame, name)) for name in wanted}


def of(series: Any) -> Column:
    """A column's numbers as they lie in memory, and other values one by one."""
    array, mask = _numpy(series)
    if array is None:
        return values(series)
    kind = array.dtype.kind
    if kind in "iu" and array.dtype.itemsize <= 8 and str(array.dtype) != "uint64":
        return ("whole", _contiguous(array, "int64"), mask)
    if kind == "f" and array.dtype.itemsize <= 8:
        if array.dtype.itemsize == 8:
            return ("float", _contiguous(array, "float64"), mask)
        # The shortest text of a float of 32 bits is not that of the same number in 64.
        return _single(array, mask)
    if kind == "b":
        return ("truth", _contiguous(array, "uint8"), mask)
    found: list[Any] = array.tolist()
    if mask is not None:
        found = [None if missing else value for value, missing in zip(found, mask.tolist())]
    return found


def _single(array: Any, mask: Any) -> Column:
    found = [float(str(value)) for value in array]
    if mask is not None:
        found = [float("nan") if gone else value for value, gone in zip(found, mask.tolist())]
    return list(found)


def _contiguous(array: Any, dtype: str) -> Any:
    return array.astype(dtype, order="C", copy=False)


def _numpy(series: Any) -> tuple[Any, Any]:
    """A column as an array of NumPy, and which of its values are missing; or nothing."""
    if isinstance(series, (list, tuple)):
        return None, None
    if hasattr(series, "dtype") and hasattr(series, "isna"):
        missing = series.isna().to_numpy()
        # Arrays with a mask of their own say what stands at the places without a value.
        own = getattr(series.dtype, "numpy_dtype", None)
        if own is not None and own.kind in "iufb":
            return series.to_numpy(dtype=own, na_value=own.type(0)), _mask(missing)
        return series.to_numpy(), _mask(missing) if series.dtype.kind != "f" else None
    if hasattr(series, "is_null"):
        # Polars, whose columns have `is_null`, and Arrow, whose arrays have it too.
        missing = series.is_null()
        missing = missing.to_numpy()
        filled = series.fill_null(0) if _is_number(series) else series
        if not _is_number(series):
            return None, None
        return filled.to_numpy(), _mask(missing)
    if hasattr(series, "dtype"):
        return series, None
    return None, None


def _is_number(series: Any) -> bool:
    kind = str(getattr(series, "dtype", getattr(series, "type", ""))).lower()
    return kind.startswith(("int", "uint", "float", "double"))


def _mask(missing: Any) -> Any:
    return missing.astype("uint8") if missing.any() else None


def times(series: Any) -> Any:
    """A column of times as microseconds since 1970, in a buffer of 64-bit numbers.

    As in a single event, times have a zone, or are milliseconds since 1970.
    """
    from array import array

    if hasattr(series, "dt") and hasattr(series, "dtype") and hasattr(series, "isna"):
        if series.isna().any():
            raise EventError("a time is missing", reason="Time")
        if getattr(series.dtype, "kind", "") == "M":
            if getattr(series.dt, "tz", None) is None:
                raise EventError(
                    "the times have no zone",
                    reason="Time",
                    help='say which: frame["when"].dt.tz_localize("UTC")',
                )
            series = series.dt.tz_convert("UTC").dt.tz_localize(None)
            return series.to_numpy().astype("datetime64[us]").astype("int64")
    if hasattr(series, "dt") and hasattr(series, "dtype"):
        if getattr(series.dtype, "time_zone", None) is None:
            raise EventError(
                "the times have no zone",
                reason="Time",
                help='say which: frame["when"].dt.replace_time_zone("UTC")',
            )
        return series.dt.epoch("us").to_numpy().astype("int64")
    return array("q", [micros(value) for value in values(series)])
