"""Owner, producer and consumer against real processes, and how a deployment ends."""

import os
import pickle
import signal
import subprocess
import sys
import textwrap
import time
from datetime import datetime, timedelta, timezone

import pytest
from conftest import shows_secret

import alpheus

QUERY = """
CREATE STREAM Power AS SELECT COUNT(power), AVG(power)
WINDOW TUMBLING (SIZE 2 SECONDS, GRACE PERIOD 1 SECONDS) FROM Meters BETWEEN 2 AND 100
"""


def gone(process):
    """Whether a process ends, within a while."""
    for _ in range(6000):
        try:
            os.kill(process, 0)
            if os.waitpid(process, os.WNOHANG)[0] == process:
                return True
        except (ProcessLookupError, ChildProcessError):
            if not os.path.exists(f"/proc/{process}"):
                return True
        time.sleep(0.05)
    return False


def test_owner_producer_and_consumer(schema, tmp_path):
    with alpheus.local(schema=schema, policies=tmp_path / "policies.yaml") as here:
        owners = here.add_owners(["ada", "bert", "cleo"])
        query = here.query(QUERY)
        assert query.plan.streams == 3 and "sum of power" in query.plan.revealed
        streams = [owner.open() for owner in owners]
        with pytest.raises(alpheus.EventError):
            streams[0].add({"power": -5})
        with pytest.raises(alpheus.EventError, match="times"):
            streams[0].add({"power": 5}, at=datetime.now(timezone.utc))
        with pytest.raises(TypeError, match="cannot be pickled or copied"):
            pickle.dumps(streams[0])
        assert refused_in_a_copy(lambda: streams[0].add({"power": 1})) and refused_in_a_copy(streams[0].close)
        # A window opens once all devices were online for the whole of it.
        while not query.rows().opened:
            for number, stream in enumerate(streams):
                stream.add({"power": 100 * (number + 1), "on": True})
            time.sleep(0.1)
        sent = [stream.close() for stream in streams]
        assert all(each.events > 0 and each.refused == 0 for each in sent)
        row = query.wait(1).opened[0]
        assert 2 <= row.population <= 3 and row["count_power"] >= 2 and 100 <= float(row["avg_power"]) <= 300
        assert query.rows().units == {"avg_power": "W"}
        unsigned_rows_are_refused(here)
        assert [known["name"] for known in here.consumer.queries()] == ["Power"]
        log = owners[0].stream.log()
        assert any("`analyst` got `Power`" in line.event for line in log)
        assert not any(shows_secret(line.event) for line in log)
        with pytest.raises(alpheus.SessionError):
            streams[0].add({"power": 1})
        owners[0].stream.revoke()
        assert any("you revoked your consent" in line.event for line in owners[0].stream.log())
        query.stop()
        with pytest.raises(alpheus.RefusedError, match="owners"):
            here.consumer.query(QUERY.replace("BETWEEN 2", "BETWEEN 50"))
        folder = here.folder
    assert not here.running and not folder.exists()


def test_verified_rows_are_checked_and_those_of_another_statement_refused(schema, tmp_path):
    """The plan is compared with the consumer's own statement, of which its identity folder has a note."""
    schema.write_text(schema.read_text().replace("frames: events", "anchor: 4s"))
    with alpheus.local(schema=schema, policies=tmp_path / "policies.yaml") as here:
        owners = here.add_owners(["ada", "bert"])
        query = here.query(f"{QUERY} WITH (integrity = 'verified', alpha = '1/3')")
        streams = [owner.open() for owner in owners]
        while not query.rows().opened:
            for stream in streams:
                stream.add({"power": 100})
            time.sleep(0.1)
        for stream in streams:
            stream.close()
        row = query.rows().opened[0]
        assert row.integrity.startswith("signed by ") and row.population == 2 and row["avg_power"] == 100
        analyst = here.folder / "pki" / "analyst"
        note = analyst / "verified.known"
        note.write_text(note.read_text().replace("AVG(power)", "VAR(power) AS avg_power"))
        again = alpheus.Consumer(here.server, identity=analyst).results("Power").rows()
        refused = next(one for one in again if one.window_start == row.window_start)
        assert refused.integrity == "refused" and "not what you asked for" in refused.status
        assert all(value is None for value in refused.values.values())
        assert not again.opened


def unsigned_rows_are_refused(here):
    """Who wants verified rows gets no others, and an error if the statement asks for none."""
    again = alpheus.Consumer(here.server, identity=here.folder / "pki" / "analyst")
    rows = again.results("Power", verified=True).rows()
    assert len(rows) > 0 and not rows.opened
    assert all(value is None for row in rows for value in row.values.values())
    assert all(row.integrity == "refused" and "not verified" in row.status for row in rows)
    with pytest.raises(alpheus.UsageError, match="does not ask for verified rows"):
        here.consumer.query(QUERY, verified=True)


def refused_in_a_copy(act):
    """Whether a forked process may not act on what its parent opened."""
    child = os.fork()
    if child == 0:
        try:
            act()
            os._exit(0)
        except alpheus.SessionError:
            os._exit(7)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def readings():
    """Twelve owners' readings, a column of each, over twenty minutes."""
    start = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
    table = {"meter": [], "when": [], "power": []}
    for turn in range(20):
        for meter in range(12):
            table["meter"].append(f"house-{meter}")
            table["when"].append(start + timedelta(seconds=60 * turn + meter / 4))
            table["power"].append(100 + 10 * meter + turn)
    return table


def test_a_frame_gets_its_answer_from_a_deployment():
    table = readings()
    with alpheus.local(table, owner="meter", time="when") as here:
        rows = here.answer.wait(20)
        totals = [int(row["sum_power"]) for row in rows.opened]
        # The answer is that of the plaintext.
        expected = [sum(100 + 10 * meter + turn for meter in range(12)) for turn in range(20)]
        assert totals == expected
        assert all(row.population == 12 for row in rows.opened)


def test_a_frame_gets_a_first_answer_without_one(tmp_path):
    project = alpheus.init(readings(), tmp_path / "project")
    assert project.understood.owner == "meter" and project.understood.owners == 12
    assert len(project.answer.opened) == 20
    assert all(finding.problem is None for finding in alpheus.check(project.schema, project.policies, project.source))
    plan = alpheus.explain(project.query, schema=project.schema, policies=project.policies)
    assert plan.revealed == ("number of events", "sum of power")
    fewer = project.query.replace("BETWEEN 10", "BETWEEN 3")
    with pytest.raises(alpheus.RefusedError) as refused:
        alpheus.explain(fewer, schema=project.schema, policies=project.policies, owners=5)
    assert refused.value.id == "policy-forbids-population"
    advice = alpheus.suggest(fewer, schema=project.schema, policies=project.policies, owners=30)
    assert advice.answered
    project.schema.write_text("name: [\n")
    assert alpheus.check(project.schema)[0].problem


def test_a_deployment_ends_with_the_interpreter_even_if_it_is_killed(schema, tmp_path):
    script = textwrap.dedent(
        """
        import sys, time, alpheus
        here = alpheus.local(schema=sys.argv[1], policies=sys.argv[2])
        print(*(process.pid for process in here._processes), flush=True)
        time.sleep(600)
        """
    )
    line = [sys.executable, "-c", script, schema, tmp_path / "policies.yaml"]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as interpreter:
        processes = [int(word) for word in interpreter.stdout.readline().split()]
        assert len(processes) == 2
        interpreter.send_signal(signal.SIGKILL)
    assert all(gone(process) for process in processes)


def test_a_deployment_ends_with_the_interpreter_if_nobody_closes_it(schema, tmp_path):
    script = textwrap.dedent(
        """
        import sys, alpheus
        here = alpheus.local(schema=sys.argv[1], policies=sys.argv[2])
        print(here.folder, *(process.pid for process in here._processes), flush=True)
        """
    )
    line = [sys.executable, "-c", script, schema, tmp_path / "policies.yaml"]
    folder, *processes = subprocess.run(line, capture_output=True, text=True, check=True).stdout.split()
    assert not os.path.exists(folder)
    assert len(processes) == 2 and all(gone(int(process)) for process in processes)


def test_a_copy_of_the_process_leaves_the_folder_of_a_trial():
    script = textwrap.dedent(
        """
        import os, sys
        from alpheus.trials import _Trial
        trial = _Trial()
        if os.fork() == 0:
            sys.exit(0)
        os.wait()
        if os.fork() == 0:
            trial.close()
            os._exit(0)
        os.wait()
        print(trial.folder.exists())
        trial.close()
        print(trial.folder.exists())
        """
    )
    line = [sys.executable, "-c", script]
    said = subprocess.run(line, capture_output=True, text=True, check=True).stdout
    assert said.split() == ["True", "False"]


def test_a_copy_of_the_process_does_not_end_the_deployment(schema, tmp_path):
    with alpheus.local(schema=schema, policies=tmp_path / "policies.yaml") as here:
        child = os.fork()
        if child == 0:
            here.close()
            os._exit(0)
        os.waitpid(child, 0)
        # The host has started, and may not have reached the service yet.
        end = time.monotonic() + 60
        while here.consumer.status()["hosts"] == 0 and time.monotonic() < end:
            time.sleep(0.1)
        assert here.running and here.consumer.status()["hosts"] == 1


def test_what_fails_says_why(tmp_path):
    with pytest.raises(alpheus.UsageError):
        alpheus.local()
    with pytest.raises(alpheus.InputError) as refused:
        alpheus.local(schema=_written(tmp_path / "bad.yaml", "name: [\n"), policies=tmp_path / "none")
    assert refused.value.id == "schema-invalid" and not list(tmp_path.glob("alpheus-*"))
    with pytest.raises(alpheus.UsageError):
        alpheus.connect()
    with pytest.raises(alpheus.ServiceError) as missing:
        alpheus.explain("SELECT", schema=tmp_path / "none.yaml")
    assert missing.value.id == "file-missing"
    with pytest.raises(alpheus.UndecidedError):
        alpheus.init({"day": ["01/02/2026", "03/04/2026"], "x": [1, 2]}, tmp_path / "unsure")


def _written(path, text):
    path.write_text(text)
    return path
