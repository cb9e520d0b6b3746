"""An owner, a producer and a consumer against real processes on this machine.

    python three_roles.py

Three households have a meter each. The meters send, the analyst asks for averages over all of them, and
then one household withdraws.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import alpheus

SCHEMA = """
name: Meters
version: 1
tick: 1s
capacity: { population: 100, events: 100 }
streamAttributes:
  - { name: power, type: integer, unit: W, min: 0, max: 20000, aggregations: [mean] }
streamPolicyOptions:
  - { name: street, option: aggregate, clients: [2], window: 2s, alpha: 0, dropout: 1/3 }
"""
POLICIES = """
schema: Meters
service: analyst
default: { power: { option: street, clients: 2 } }
"""
QUERY = """
CREATE STREAM Street AS SELECT COUNT(power), AVG(power)
WINDOW TUMBLING (SIZE 2 SECONDS, GRACE PERIOD 1 SECONDS) FROM Meters BETWEEN 2 AND 100
"""


def main() -> None:
    """Runs all three roles."""
    with tempfile.TemporaryDirectory() as folder:
        schema, policies = Path(folder) / "schema.yaml", Path(folder) / "policies.yaml"
        schema.write_text(SCHEMA)
        policies.write_text(POLICIES)
        with alpheus.local(schema=schema, policies=policies) as here:
            play(here)


def play(here: alpheus.Local) -> None:
    """Feeds the meters until a window has opened, then withdraws one."""
    owners = here.add_owners(["ada", "bert", "cleo"])
    query = here.query(QUERY)
    assert query.plan is not None
    print(query.plan.streams, "streams; each window reveals", *query.plan.revealed)
    meters = [owner.open() for owner in owners]
    while not query.rows().opened:
        for number, meter in enumerate(meters, 1):
            meter.add({"power": 400 + 10 * number})
        time.sleep(0.2)
    for meter in meters:
        print(meter.close())
    rows: alpheus.Rows = query.rows().opened
    print(rows[0].population, "owners:", rows[0]["avg_power"], rows.units["avg_power"])
    owners[0].stream.revoke()
    for line in owners[0].stream.log():
        print(line.at.isoformat(), line.event)


if __name__ == "__main__":
    main()
