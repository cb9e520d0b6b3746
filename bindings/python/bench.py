#!/usr/bin/env python3
"""Times the package beside a loop of Rust, as JSON: bench.py [EVENTS].

Run it where the wheel is installed, with `known_answers.so` in the folder that KNOWN_ANSWERS names. Times are
those of the processor, of this process.
"""

import array
import json
import os
import pathlib
import statistics
import sys
import tempfile
import time

sys.path.insert(0, os.environ["KNOWN_ANSWERS"])

import known_answers

import alpheus

#: One number, as a variance and a histogram of bins that share no words.
SCHEMA = """
frames: events
name: Wide
tick: 10s
capacity: { population: 1000000, events: 10000 }
streamAttributes:
  - { name: x, type: integer, min: 0, max: 6799, aggregations: [variance, {histogram: {lo: 0, width: 10, bins: 679}}] }
"""
START = 1_772_366_400_000_000


def timed(act, events, times=5):
    """Microseconds of the processor for an event: the median of some runs."""
    taken = []
    for _ in range(times):
        before = time.process_time()
        act()
        taken.append((time.process_time() - before) / events * 1e6)
    return round(statistics.median(taken), 3)


#: A meter: what most frames hold.
METER = """
frames: events
name: Meter
tick: 10s
capacity: { population: 1000, eventsPerSecond: 2, window: 10min }
streamAttributes:
  - { name: power, type: decimal, scale: 1, min: 0, max: 20000, aggregations: [variance] }
  - { name: temperature, type: [decimal, optional], scale: 1, min: -40, max: 60, aggregations: [mean] }
"""


def pandas_figures(events):
    """Events per second from a frame of pandas, if it is installed."""
    try:
        import pandas
    except ImportError:
        return {}
    schema = alpheus.Schema.parse(METER)
    frame = pandas.DataFrame({
        "when": pandas.Timestamp(START, unit="us", tz="UTC") + pandas.to_timedelta(range(1, events + 1), unit="ms"),
        "power": [round(0.1 * (at % 20000), 1) for at in range(events)],
        "temperature": [None if at % 10 == 0 else at % 30 + 0.5 for at in range(events)],
    })
    with tempfile.TemporaryDirectory() as folder:
        device = pathlib.Path(folder) / "device.json"
        content = {"version": 1, "stream": "11" * 16, "schema": schema.id, "secret": "22" * 32}
        device.write_text(json.dumps(content))

        def encrypt():
            session = alpheus.Session.open(schema=schema, device=device, first=True, at=START / 1000)
            session.encrypt_frame(frame, time="when")

        each = timed(encrypt, events)
    return {f"pandas, {schema.words} words": each, "pandas, events a second": round(1e6 / each)}


def main():
    """Measures and prints."""
    events = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    schema = alpheus.Schema.parse(SCHEMA)
    numbers = [at % 6800 for at in range(events)]
    whole = {"x": ("whole", array.array("q", numbers), None)}
    times = array.array("q", [START + 1000 * (1 + at) for at in range(events)])
    with tempfile.TemporaryDirectory() as folder:
        device = pathlib.Path(folder) / "device.json"
        content = {"version": 1, "stream": "11" * 16, "schema": schema.id, "secret": "22" * 32}
        device.write_text(json.dumps(content))

        def opened():
            return alpheus.Session.open(schema=schema, device=device, first=True, at=START / 1000)

        def one_by_one():
            session = opened()._native
            for at, number in enumerate(numbers):
                session.event({"x": number}, START + 1 + 100 * at)

        found = {
            "words": schema.words,
            "events": events,
            "unit": "µs of the processor for an event",
            "Rust, in a loop": timed(lambda: known_answers.encrypt_in_rust(SCHEMA, events), events),
            "Python, a frame at once": timed(lambda: opened()._native.events(whole, times), events),
            "Python, event by event": timed(one_by_one, events),
            "Python, a frame checked": timed(lambda: schema._native.check_columns(whole), events),
        }
    found.update(pandas_figures(events))
    print(json.dumps(found, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
