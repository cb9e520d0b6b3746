"""Known answers, good and bad, through the package: the same files as for all other languages."""

from decimal import Decimal

import pytest
from conftest import ROOT, VECTORS, cases

import alpheus


def read(case):
    """The schema of a case, in YAML or Avro."""
    if "file" in case:
        return alpheus.Schema.read(ROOT / case["file"])
    if "yaml" in case:
        return alpheus.Schema.parse(case["yaml"])
    return alpheus.Schema.parse(case["avsc"], avro=True)


@pytest.mark.parametrize("file", ["schema.json", "frames.json", "avro.json"])
def test_schemas_have_the_id_and_the_words_of_the_script(file):
    for case in cases(f"schema/v1/{file}"):
        schema = read(case)
        tick = schema.tick.total_seconds() * 1_000_000
        assert (schema.id, tick, schema.words) == (case["id"], case["tick"], case["words"])


@pytest.mark.parametrize("file", ["schema_bad_yaml.json", "schema_bad_avro.json", "schema_bad_frames.json"])
def test_invalid_schemas_have_the_reason_of_the_script(file):
    for case in cases(f"schema/v1/{file}"):
        with pytest.raises(alpheus.SchemaError) as refused:
            read(case)
        assert refused.value.reason == case["error"]


def event(schema, values):
    """The script's values, which are scaled, in the units of the attributes."""
    natural = {}
    for attribute, value in zip(schema.attributes, values):
        if isinstance(value, int) and not isinstance(value, bool) and attribute.decimals:
            value = Decimal(value).scaleb(-attribute.decimals)
        natural[attribute.name] = value
    return natural


def test_events_have_the_words_of_the_script():
    for case in cases("schema/v1/encoding.json"):
        schema = read(case)
        for one in case["events"]:
            words = schema.encode(event(schema, one["values"]))
            for at in one["random"]:
                assert words[at] != 0
                words[at] = 0
            assert [f"{word:016x}" for word in words] == one["words"]


def test_invalid_events_have_the_reason_of_the_script():
    for case in cases("schema/v1/encoding_bad_values.json"):
        schema = read(case)
        with pytest.raises(alpheus.EventError) as refused:
            schema.encode(event(schema, case["values"]))
        assert refused.value.reason == case["error"]
        assert refused.value.attribute in {attribute.name for attribute in schema.attributes}


def session(known_answers, case):
    """A session of a case, under the case's number."""
    keys = [bytes.fromhex(case[name]) for name in ("master", "stream", "schema")]
    number = int(case["session"], 16)
    return known_answers.KnownSession(*keys, (case["tick"], case["words"]), (number, case["start"]))


def test_sessions_have_the_frames_of_the_script(known_answers):
    for case in cases("encrypted-stream/v1/session.json"):
        running, frames = session(known_answers, case), []
        for one in case["events"]:
            # The last word is the session's own.
            frames += running.event(one["t"], [int(word, 16) for word in one["plain"][:-1]])
        frames += running.close(case["close"])
        assert [frame.hex() for frame in frames] == case["frames"]


def test_what_a_producer_refuses_has_the_reason_of_the_script(known_answers):
    files = sorted((VECTORS / "encrypted-stream/v1").glob("producer_bad_*.json"))
    assert len(files) >= 9
    keys = {"master": "01" * 32, "stream": "02" * 16, "schema": "03" * 32, "session": "0", "words": 2}
    for file in files:
        for case in cases(file):
            with pytest.raises(alpheus.SessionError) as refused:
                running = session(known_answers, {**keys, **case})
                for offset in case["events"]:
                    running.event(case["start"] + offset, [1])
                running.close(case["start"] + case["close"])
            assert refused.value.reason == case["error"], file.name


def test_sessions_of_ticks_have_the_frames_of_the_script(known_answers):
    """The opening apart, which is sealed under a key that is drawn."""
    case = cases("ticks/v1/session.json")
    known = lambda *names: tuple(bytes.fromhex(case[name]) for name in names)  # noqa: E731
    opened, tick = case["opened"], case["tick"]
    running = known_answers.KnownSession.ticks(
        known("master", "stream", "schema"),
        (tick, case["anchor"], case["blocks"]),
        known("device_seed", "certificate", "authority", "ingest_key", "ingest_seed"),
        (int(case["session"], 16), bytes.fromhex(case["session_key"]), opened),
    )
    at = lambda ticks: opened + ticks * tick  # noqa: E731
    frames = []
    # Events in a tick, by the tick's number; asleep in two stretches.
    for start, events in [(0, [1, 2]), (1, [3]), (2, []), (5, [4]), (14, [5, 6, 7])]:
        if start > 3:
            frames += running.sleep_until(at(start))
        for event in events:
            plain = [(event * 31 + word) % 97 for word in range(20)]
            frames += running.event(at(start) + event, plain)
        frames += running.advance(at(start + 1))
    frames += running.close(at(16))
    assert len(frames) == len(case["frames"])
    assert [frame.hex() for frame in frames[1:]] == case["frames"][1:]
