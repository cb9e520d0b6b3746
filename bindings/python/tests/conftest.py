"""What tests share. They run against an installed wheel, in a virtual environment of its own."""

import base64
import json
import os
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
VECTORS = ROOT / "vectors"
#: One frame for each event, so that a session's frames can be counted.
EVENTS = """
frames: events
name: Meters
version: 1
tick: 1s
capacity: { population: 100, events: 100 }
streamAttributes:
  - { name: power, type: decimal, scale: 1, unit: W, min: 0, max: 20000, aggregations: [variance] }
  - { name: on, type: [boolean, optional], aggregations: [count] }
  - { name: room, type: [string, optional], maxBytes: 8, aggregations: [count] }
  - { name: steps, type: [integer, optional], min: 0, max: 1000, aggregations: [sum] }
streamPolicyOptions:
  - { name: crowd, option: aggregate, clients: [2], window: 2s, alpha: 0, dropout: 1/3 }
"""
POLICIES = """
schema: Meters
service: analyst
default: { "*": { option: crowd, clients: 2 } }
"""


def cases(name):
    """The cases of a file of vectors."""
    return json.loads((VECTORS / name).read_text())


@pytest.fixture(scope="session")
def known_answers():
    """The module with sessions whose number is chosen, which the wheel does not have."""
    sys.path.insert(0, os.environ["KNOWN_ANSWERS"])
    import known_answers

    return known_answers


@pytest.fixture
def schema(tmp_path):
    """A schema's file, with its policies beside it."""
    (tmp_path / "policies.yaml").write_text(POLICIES)
    path = tmp_path / "schema.yaml"
    path.write_text(EVENTS)
    return path


@pytest.fixture
def device(tmp_path, schema):
    """A device's file, as `alpheus owner add` writes it, of a secret that tests look for."""
    import alpheus

    content = {
        "version": 1,
        "stream": "11" * 16,
        "schema": alpheus.Schema.read(schema).id,
        "secret": SECRET.hex(),
    }
    path = tmp_path / "device.json"
    path.write_text(json.dumps(content))
    path.chmod(0o600)
    return path


SECRET = bytes(range(101, 133))


def shows_secret(text):
    """Whether a text holds the secret of the device's file in some form."""
    forms = [SECRET.hex(), base64.b64encode(SECRET).decode(), repr(SECRET), str(list(SECRET))]
    return any(form in text for form in forms)
