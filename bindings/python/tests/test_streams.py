"""A live stream in a process that gets signals: it ends its waits, and no handler hangs on it."""

import subprocess
import sys
import textwrap

import pytest

import alpheus
from alpheus._program import run

#: A tick of a day, so that waiting for its end would be noticed.
SCHEMA = """
name: Meters
tick: 1d
capacity: { population: 100, events: 100000 }
streamAttributes:
  - { name: power, type: integer, min: 0, max: 20000, aggregations: [mean] }
"""
PRELUDE = """
import os, signal, sys, threading, time
import alpheus
# A shell has what it starts in the background ignore Ctrl-C, and so would this process.
signal.signal(signal.SIGINT, signal.default_int_handler)
stream = alpheus.Stream.open(
    schema="schema.yaml", device="watch.json", identity="pki/watch", state="state", server="https://localhost:1")

def when(holds, act):
    def wait():
        while not holds():
            time.sleep(0.01)
        act()
    threading.Thread(target=wait, daemon=True).start()

def main_is_in(name):
    frame = sys._current_frames()[threading.main_thread().ident]
    while frame is not None and frame.f_code.co_name != name:
        frame = frame.f_back
    return frame is not None
"""


@pytest.fixture
def in_process(tmp_path):
    """Runs a script in a process of its own, beside a device's files. It fails if the process hangs."""
    import json

    (tmp_path / "schema.yaml").write_text(SCHEMA)
    device = {"version": 1, "stream": "11" * 16, "schema": alpheus.Schema.parse(SCHEMA).id, "secret": "5a" * 32}
    (tmp_path / "watch.json").write_text(json.dumps(device))
    (tmp_path / "watch.json").chmod(0o600)
    run(["ca", "init", "pki"], cwd=tmp_path)
    run(["ca", "issue", "pki", "--role", "producer", "--name", "watch"], cwd=tmp_path)

    def ran(script):
        # It ends without waiting for the device, as a killed process does.
        line = [sys.executable, "-c", PRELUDE + textwrap.dedent(script) + "\nos._exit(0)\n"]
        done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return ran


def test_ctrl_c_ends_the_wait_of_close(in_process):
    said = in_process(
        """
        stream.add({"power": 1})
        when(lambda: main_is_in("close"), lambda: os.kill(os.getpid(), signal.SIGINT))
        try:
            stream.close()
        except KeyboardInterrupt:
            print("interrupted", stream.sent, flush=True)
        """
    )
    assert said == "interrupted None\n"


def test_a_handler_may_use_a_stream_that_waits_for_room(in_process):
    # A stream that had a session opens at the next tick, and until then its events wait.
    in_process(
        """
        # More than may wait: then the device has opened its first session.
        for _ in range(2000):
            stream.add({"power": 1})
        """
    )
    said = in_process(
        """
        class Seen(Exception):
            pass

        def handler(*_):
            print("closed:", stream.closed, flush=True)
            raise Seen

        signal.signal(signal.SIGTERM, handler)
        added = [0]
        seen = [-1, 0]

        def is_waiting():
            seen[1] = seen[1] + 1 if seen[0] == added[0] and main_is_in("add") else 0
            seen[0] = added[0]
            return added[0] >= 1024 and seen[1] >= 20

        when(is_waiting, lambda: os.kill(os.getpid(), signal.SIGTERM))
        try:
            while added[0] < 5000:
                stream.add({"power": 1})
                added[0] += 1
        except Seen:
            print("added", added[0] >= 1024, flush=True)
        """
    )
    assert said == "closed: False\nadded True\n"
