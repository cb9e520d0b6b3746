"""Frames of pandas, Polars and Arrow: the same events as Python's own values, and results as frames."""

from datetime import datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pandas
import polars
import pyarrow
import pytest

import alpheus
from alpheus import Schema, Session, _frames
from alpheus.rows import Column, Row, Rows


START = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
PLAIN = {
    "when": [START + timedelta(milliseconds=250 * at) for at in range(40)],
    "power": [round(1.7 * at, 2) for at in range(40)],
    "on": [None if at % 5 == 0 else at % 2 == 0 for at in range(40)],
    "room": [None if at % 7 == 0 else f"r{at % 3}" for at in range(40)],
    "steps": [None if at % 4 == 0 else at for at in range(40)],
}
FRAMES = {
    "pandas": lambda: pandas.DataFrame(PLAIN),
    "pandas, own types": lambda: pandas.DataFrame(PLAIN).convert_dtypes(),
    "pandas over Arrow": lambda: pandas.DataFrame(PLAIN).convert_dtypes(dtype_backend="pyarrow"),
    "polars": lambda: polars.DataFrame(PLAIN),
    "arrow": lambda: pyarrow.table(PLAIN),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_a_frame_holds_the_events_of_its_values(kind, schema, device):
    frame, meters = FRAMES[kind](), Schema.read(schema)
    names = [name for name in PLAIN if name != "when"]
    assert list(_frames.times(_frames.column(frame, "when"))) == list(_frames.times(PLAIN["when"]))
    rows = list(zip(*(list(_expanded(_frames.of(_frames.column(frame, name)))) for name in names)))
    for at, row in enumerate(rows):
        got = meters.encode(dict(zip(names, row)))
        assert got == meters.encode({name: PLAIN[name][at] for name in names}), (kind, at)
    session = Session.open(schema=schema, device=device, first=True, at=START)
    session.opening()
    assert len(session.encrypt_frame(frame, time="when")) == 40 + 9


def _expanded(column):
    """A column's values, one by one, as the native part reads them."""
    if isinstance(column, list):
        return column
    kind, values, mask = column
    plain = [bool(value) if kind == "truth" else value for value in values.tolist()]
    return [None if mask is not None and mask[at] else value for at, value in enumerate(plain)]


@pytest.mark.parametrize("dtype", ["int8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64"])
def test_numbers_of_every_width_are_their_shortest_text(dtype, schema):
    meters = Schema.read(schema)
    values = np.array([0, 1, 2, 100], dtype=dtype) / np.array(10, dtype=dtype) if "float" in dtype else np.array([0, 1, 2, 100], dtype=dtype)
    for at, value in enumerate(_expanded(_frames.of(pandas.Series(values)))):
        expected = Decimal(str(values[at]))
        assert meters.encode({"power": value}) == meters.encode({"power": expected})
    # And NumPy's own scalars.
    assert meters.encode({"power": values[3]}) == meters.encode({"power": Decimal(str(values[3]))})
    assert meters.encode({"power": 1, "on": np.bool_(True)}) == meters.encode({"power": 1, "on": True})
    assert meters.encode({"power": 1, "steps": pandas.NA}) == meters.encode({"power": 1})


def test_times_of_every_unit_and_zone():
    expected = [1_772_366_400_000_000, 1_772_366_400_250_000]
    plain = pandas.Series([START, START + timedelta(milliseconds=250)])
    for unit in ("ms", "us", "ns"):
        for series in (plain, plain.dt.tz_convert("Asia/Tokyo")):
            assert list(_frames.times(series.dt.as_unit(unit))) == expected


def test_times_without_a_zone_are_refused_as_in_a_single_event():
    naive = START.replace(tzinfo=None)
    for series in (
        pandas.Series([naive]),
        polars.Series([naive]),
        pyarrow.array([naive]),
        np.array([naive], dtype="datetime64[us]"),
    ):
        with pytest.raises(alpheus.EventError, match="zone"):
            _frames.times(series)


def test_a_missing_time_is_refused():
    with pytest.raises(alpheus.EventError):
        _frames.times(pandas.Series([START, None]))


def rows():
    """Rows as a service gives them."""
    said = {"window_start": 0, "window_end": 10_000, "sum_power": "51.5", "count": 3, "population": 3,
            "silent": 0, "excluded": 0, "status": "ok", "noise": {"sum_power": {"deviation": 2.0, "margin_95": 4.0}}}
    closed = {**said, "sum_power": None, "count": None, "status": "population below the minimum 2", "noise": None}
    return Rows([Row.of(said), Row.of(closed)], [Column("sum_power", "total power", "W")])


def test_results_are_frames_with_units_and_margins():
    frame = rows().to_pandas()
    assert frame["sum_power"][0] == 51.5 and frame["sum_power_margin"][0] == 4.0
    assert frame.attrs["units"] == {"sum_power": "W"} and frame["status"][1].startswith("population")
    assert rows().to_polars()["count"].to_list() == [3, None]
    table = rows().to_arrow()
    assert table.schema.field("sum_power").metadata == {b"unit": b"W"} and table.num_rows == 2


def test_a_pandas_frame_gets_its_answer(tmp_path):
    at = np.arange(240)
    frame = pandas.DataFrame({
        "meter": [f"house-{i % 12}" for i in at],
        "when": pandas.Timestamp("2026-03-01T12:00Z") + pandas.to_timedelta((at // 12) * 30, unit="s"),
        "power": 100 + 10 * (at % 12),
    })
    project = alpheus.init(frame, tmp_path / "project")
    assert len(project.answer.opened) == 20
    with alpheus.local(frame, owner="meter", time="when") as here:
        table = here.answer.wait(20).opened.to_pandas()
        assert (table["sum_power"] == frame.groupby("when")["power"].sum().iloc[0]).all()
