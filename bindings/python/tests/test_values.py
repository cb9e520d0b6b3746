"""A value is the same event however it comes in: one by one, in columns, in any of Python's types."""

import array
import random
from datetime import datetime, timedelta, timezone
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction

import pytest

import alpheus
from alpheus import Schema, Session, _frames, _times

START = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)


@pytest.fixture
def meters(schema):
    """The schema of meters: power has one decimal."""
    return Schema.read(schema)


def power(meters, value):
    """The scaled number that a value is encoded as."""
    return meters.encode({"power": value})[0]


def test_numbers_are_their_shortest_text_rounded_half_away_from_zero(meters):
    drawn = random.Random(7)
    for _ in range(3000):
        value = drawn.choice(
            [drawn.uniform(0, 19999), round(drawn.uniform(0, 19999), 1), round(drawn.uniform(0, 99), 2) / 1.0]
        )
        said = Decimal(repr(value)).quantize(Decimal("0.1"), ROUND_HALF_UP)
        assert power(meters, value) == int(said * 10), value
    assert power(meters, 0.25) == 3 and power(meters, 2.675e2) == 2675 and power(meters, 0.1 + 0.2) == 3
    assert power(meters, Decimal("12.34")) == 123 and power(meters, 7) == 70


@pytest.mark.parametrize("wrong", ["7", b"7", Fraction(1, 2), object(), [1], True, 1j])
def test_what_is_no_number_is_refused(meters, wrong):
    with pytest.raises(alpheus.EventError) as refused:
        meters.check({"power": wrong})
    assert (refused.value.reason, refused.value.attribute) == ("WrongType", "power")


@pytest.mark.parametrize("wrong", [10**30, -(10**30), float("inf"), 20000.06, -0.06, Decimal("1e400"), 2**63 - 1])
def test_what_is_out_of_bounds_is_refused(meters, wrong):
    with pytest.raises(alpheus.EventError) as refused:
        meters.check({"power": wrong})
    assert refused.value.reason == "OutOfBounds"


def test_missing_values_count_in_no_statistic(meters):
    full = {"power": 1, "on": True, "room": "attic", "steps": 3}
    for name, attribute in ((each.name, each) for each in meters.attributes):
        for missing in (None, float("nan"), Decimal("NaN")):
            event = {**full, name: missing}
            if attribute.optional:
                assert meters.encode(event) == meters.encode({k: v for k, v in full.items() if k != name})
            else:
                with pytest.raises(alpheus.EventError):
                    meters.check(event)


def test_a_misspelt_attribute_is_refused(meters):
    with pytest.raises(alpheus.EventError, match="no attribute `powr`"):
        meters.check({"power": 1, "powr": 2})


def columns():
    """Some rows in columns of Python's own values."""
    drawn = random.Random(3)
    number = range(200)
    return {
        "when": [START + timedelta(milliseconds=137 * at) for at in number],
        "power": [round(drawn.uniform(0, 2000), 3) for _ in number],
        "on": [drawn.choice([True, False, None]) for _ in number],
        "steps": [drawn.choice([1, 20, None]) for _ in number],
    }


def test_a_frame_is_encrypted_as_its_rows_are(schema, device, known_answers):
    frame = columns()
    names = [name for name in frame if name != "when"]
    meters = Schema.read(schema)
    assert meters.check_frame({name: frame[name] for name in names}) == 200
    bulk = Session.open(schema=schema, device=device, first=True, at=START)
    single = Session.open(schema=schema, device=device, first=True, at=START)
    # The first row is on a tick, which only a border may have.
    frames = bulk.encrypt_frame(frame, time="when")
    alone = []
    for row, when in enumerate(frame["when"]):
        moved = when + timedelta(microseconds=1) if when.microsecond == 0 else when
        alone += single.encrypt({name: frame[name][row] for name in names}, moved)
    assert [len(each) for each in frames] == [len(each) for each in alone]
    # Each frame begins with its kind, the session and its time: all but the session are equal.
    assert [each[:1] + each[9:17] for each in frames] == [each[:1] + each[9:17] for each in alone]


def test_a_frame_with_one_wrong_row_is_not_encrypted_at_all(schema, device):
    session = Session.open(schema=schema, device=device, first=True, at=START)
    session.opening()
    for name, row, value, reason in [
        ("power", 150, -1.0, "OutOfBounds"),
        ("power", 150, "x", "WrongType"),
        ("when", 150, START, "NotAscending"),
    ]:
        frame = columns()
        frame[name][row] = value
        with pytest.raises(alpheus.EventError) as refused:
            session.encrypt_frame(frame, time="when")
        assert (refused.value.reason, refused.value.row) == (reason, row)
        assert session.last == START
    frame = columns()
    frame["power"].pop()
    with pytest.raises(alpheus.EventError):
        session.encrypt_frame(frame, time="when")
    assert len(session.encrypt_frame(columns(), time="when")) == 200 + 27


def test_columns_in_memory_are_read_as_they_lie(meters):
    """What frames of other libraries become, without any of them."""
    whole = ("whole", array.array("q", [1, 2, 3]), array.array("B", [0, 0, 1]))
    table = {"power": ("float", array.array("d", [0.1, 2.0, 3.25]), None), "steps": whole}
    assert meters._native.check_columns(table) == 3
    bad = [
        ("float", array.array("q", [1, 2, 3]), None),
        ("whole", array.array("q", [1, 2]), None),
        ("whole", array.array("q", [1, 2, 3]), array.array("B", [0])),
        ("other", array.array("q", [1, 2, 3]), None),
        ("whole", [1, 2, 3], None),
    ]
    for column in bad:
        with pytest.raises((alpheus.EventError, BufferError, TypeError)):
            meters._native.check_columns({**table, "steps": column})


def test_columns_of_python_values_are_lists():
    assert _frames.of([1, None]) == [1, None]
    assert list(_frames.times([START, 1000])) == [1772366400000000, 1000000]
    with pytest.raises(alpheus.EventError, match="zone"):
        _frames.times([datetime(2026, 1, 1)])


class Series:
    """A column as pandas has it, as far as times are asked for."""

    def __init__(self, zone):
        self.dtype = type("DType", (), {"kind": "M"})()
        self.dt = type("Times", (), {"tz": zone})()

    def isna(self):
        return type("Missing", (), {"any": lambda self: False})()


def test_times_of_a_frame_have_a_zone_as_those_of_an_event():
    with pytest.raises(alpheus.EventError, match="tz_localize"):
        _frames.times(Series(None))


@pytest.mark.parametrize("time", [-1, 2**70, float("nan"), float("inf"), datetime(1969, 1, 1, tzinfo=timezone.utc)])
def test_a_time_that_is_none_is_refused_with_its_reason(time):
    with pytest.raises(alpheus.EventError) as refused:
        _times.micros(time)
    assert refused.value.reason == "Time"


def test_a_value_in_the_place_of_a_name_is_not_shown(meters):
    with pytest.raises(alpheus.EventError) as refused:
        meters.check({31415926: "power"})
    assert "31415926" not in str(refused.value)
