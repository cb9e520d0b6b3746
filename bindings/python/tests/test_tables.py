"""An encrypted table on a server, whose every answer is checked."""

import random

import pytest

import alpheus
from alpheus import tables
from alpheus._process import SERVING, Process, free_port
from alpheus._program import run


@pytest.fixture
def table(tmp_path):
    """A table at a server of its own."""
    for line in (["init", "pki"], ["issue", "pki", "--role", "server", "--name", "service"],
                 ["issue", "pki", "--role", "owner", "--name", "ada"]):
        run(["ca", *line], cwd=tmp_path)
    api = f"127.0.0.1:{free_port()}"
    server = Process(
        ["table", "serve", "--identity", "pki/service", "--state", "tables", "--api", api], cwd=tmp_path
    )
    server.wait_for(SERVING, 60)
    tables.schema(
        "Street", time="timestamp", columns={"cars": (0, 10000), "trucks": (0, 10000)},
        pairs=(("trucks", "cars"),), path=tmp_path / "schema.yaml",
    )
    where = {"server": f"https://{api}", "identity": tmp_path / "pki/ada"}
    yield alpheus.Table.create(tmp_path / "schema.yaml", tmp_path / "ada", **where)
    server.end()


def test_answers_are_those_of_the_plaintext_and_checked(table, tmp_path):
    drawn = random.Random(5)
    frame = {
        "timestamp": [1_367_366_400 + 3600 * hour for hour in range(9000)],
        "cars": [drawn.randrange(900) for _ in range(9000)],
        "trucks": [drawn.randrange(90) for _ in range(9000)],
    }
    table.append(frame)
    (row,) = table.query("SELECT COUNT(*), SUM(cars), AVG(trucks)")
    assert int(row["count"]) == 9000 and int(row["sum_cars"]) == sum(frame["cars"])
    table.verify()
    with pytest.raises(alpheus.InputError):
        table.append({"timestamp": [1], "cars": [-1], "trucks": [0]})
    with pytest.raises(alpheus.AlpheusError):
        table.query("SELECT SUM(buses)")
    # A server that has changed a block gives no answer at all.
    blocks = [path for path in (tmp_path / "tables").rglob("*") if path.is_file() and path.stat().st_size > 100_000]
    for path in blocks:
        bytes_ = bytearray(path.read_bytes())
        bytes_[len(bytes_) // 2] ^= 1
        path.write_bytes(bytes_)
    assert blocks
    with pytest.raises(alpheus.AlpheusError):
        table.query("SELECT SUM(cars), SUM(trucks)")
