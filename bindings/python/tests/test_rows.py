"""Rows keep what the service says of them."""

from alpheus.rows import Row, Rows

SAID = {"window_start": 0, "window_end": 10_000, "sum_power": "51.5", "population": 3, "silent": 0, "excluded": 0,
        "status": "ok"}
BOUNDED = {**SAID, "integrity": "bounded", "plan": "5a", "members_left_out": 1, "members_refused": None}


def test_a_row_says_whom_it_lacks_and_who_vouches_for_it():
    row = Row.of({**BOUNDED, "streams_without_report": 2, "sealed": {"words": 3}})
    assert set(row.values) == {"sum_power"}
    assert (row.integrity, row.plan, row.members_left_out, row.members_refused) == ("bounded", "5a", 1, None)
    assert (row.streams_without_report, row.sealed) == (2, True)
    plain = Row.of(SAID)
    assert (plain.integrity, plain.members_left_out, plain.streams_without_report, plain.sealed) == (None, None, None, False)


def test_frames_have_it_where_a_row_does():
    bounded, plain = Rows([Row.of(BOUNDED), Row.of(SAID)]).records()
    assert bounded["members_left_out"] == 1 and bounded["integrity"] == "bounded"
    assert "members_refused" not in bounded and "members_left_out" not in plain
