"""No pad is ever used twice, and no key shows: in forks, copies, pickles, crashes and clock steps."""

import copy
import logging
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import textwrap
from datetime import datetime, timedelta, timezone

import pytest
from conftest import shows_secret

import alpheus
from alpheus import Session

START = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)


@pytest.fixture
def session(schema, device):
    """A stream's first session, which opens in the past."""
    return Session.open(schema=schema, device=device, first=True, at=START)


def at(milliseconds):
    """A time after the start."""
    return START + timedelta(milliseconds=milliseconds)


def test_an_event_is_a_frame_after_the_borders_before_it(session):
    assert len(session.opening()) == 1
    assert len(session.encrypt({"power": 41.5}, at(1))) == 1
    assert len(session.encrypt({"power": 41.5}, at(2500))) == 3
    assert session.next_border == at(3000)
    assert len(session.close()) == 1 and session.closed
    assert session.close() == []
    with pytest.raises(alpheus.SessionError):
        session.encrypt({"power": 1}, at(9000))


def test_a_time_comes_once(session):
    session.encrypt({"power": 1}, at(5))
    for time in (at(5), at(4), START):
        with pytest.raises(alpheus.SessionError) as refused:
            session.encrypt({"power": 1}, time)
        assert refused.value.reason == "NotAscending"
    # A refused event leaves no trace, and its time is free.
    with pytest.raises(alpheus.EventError):
        session.encrypt({"power": -1}, at(6))
    assert len(session.encrypt({"power": 1}, at(6))) == 1


def test_a_clock_that_leaps_is_refused(session):
    with pytest.raises(alpheus.SessionError) as refused:
        session.encrypt({"power": 1}, START + timedelta(days=40, microseconds=1))
    assert refused.value.reason == "JumpedAhead"


def test_a_session_that_is_not_the_first_opens_after_now(schema, device):
    before = datetime.now(timezone.utc)
    other = Session.open(schema=schema, device=device, at=START)
    assert other.last >= before
    with pytest.raises(alpheus.SessionError):
        other.encrypt({"power": 1}, START)


def test_each_start_draws_another_session(schema, device):
    """As after a killed kernel, or a restored backup."""
    openings = set()
    for _ in range(20):
        again = Session.open(schema=schema, device=device, first=True, at=START)
        openings.add(again.opening()[0][:9])
        openings.add(again.encrypt({"power": 1}, at(1))[0])
    assert len(openings) == 40


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_sessions_are_not_copied(session, copied):
    with pytest.raises(TypeError, match="cannot be pickled or copied"):
        copied(session)
    with pytest.raises(TypeError):
        copied(session._native)


def test_a_forked_process_cannot_use_its_parents_session(session):
    session.opening()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        said = []
        for act in (lambda: session.encrypt({"power": 1}, at(1)), session.close, lambda: session.advance(at(5000))):
            try:
                act()
                said.append("used")
            except alpheus.SessionError:
                said.append("refused")
        os.write(writer, " ".join(said).encode())
        os._exit(0)
    os.close(writer)
    assert os.waitpid(child, 0)[1] == 0
    assert os.read(reader, 99) == b"refused refused refused"
    # The parent goes on.
    assert len(session.encrypt({"power": 1}, at(1))) == 1


def test_workers_open_sessions_of_their_own(schema, device):
    context = multiprocessing.get_context("fork")
    with context.Pool(2) as pool:
        frames = pool.starmap(_first_frame, [(schema, device)] * 8)
    assert len(set(frames)) == 8


def _first_frame(schema, device):
    own = Session.open(schema=schema, device=device, first=True, at=START)
    own.opening()
    return own.encrypt({"power": 1}, at(1))[0]


def test_a_killed_process_leaves_nothing_to_resume(schema, device, tmp_path):
    script = textwrap.dedent(
        """
        import os, signal, sys
        from datetime import datetime, timezone
        from alpheus import Session
        start = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
        session = Session.open(schema=sys.argv[1], device=sys.argv[2], first=True, at=start)
        sys.stdout.write(session.opening()[0].hex())
        sys.stdout.flush()
        os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    before = {path for path in tmp_path.rglob("*")}
    openings = []
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", script, schema, device], capture_output=True, text=True)
        assert done.returncode == -signal.SIGKILL, done.stderr
        openings.append(done.stdout)
    assert len(set(openings)) == 3
    assert {path for path in tmp_path.rglob("*")} == before, "a session is nowhere on disk"


def test_no_secret_and_no_value_shows(session, schema, device, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    said = [repr(session), str(session), repr(session._native), repr(vars(type(session)))]
    said += [str(getattr(session, name)) for name in ("stream", "schema", "last", "next_border")]
    wrong = [{"power": 31415926.5}, {"power": "31415926"}, {"power": 1, "room": "31415926!"}, {"rooom": 31415926}]
    for event in wrong:
        with pytest.raises(alpheus.EventError) as refused:
            session.encrypt(event, at(1))
        said += [repr(refused.value), str(refused.value), str(vars(refused.value))]
    device.write_text(device.read_text().replace('"version": 1', '"version": 99'))
    with pytest.raises(alpheus.AlpheusError) as refused:
        Session.open(schema=schema, device=device)
    device.write_text(device.read_text()[:-9])
    with pytest.raises(alpheus.AlpheusError) as cut:
        Session.open(schema=schema, device=device)
    said += [str(refused.value), repr(refused.value), str(cut.value)]
    text = "\n".join([*said, caplog.text, *capfd.readouterr()])
    assert not shows_secret(text)
    assert "31415926" not in text


def test_a_stream_is_not_copied_and_ends_with_its_reason(schema, device, tmp_path):
    with pytest.raises(alpheus.AlpheusError) as refused:
        alpheus.Stream.open(
            schema=schema, device=device, identity=tmp_path / "none", state=tmp_path / "state",
            server="https://localhost:1",
        )
    assert "none" in str(refused.value) and not shows_secret(str(refused.value))
