"""Accountable statistics with all parties as processes: what was published is what clients gave."""

import pytest

import alpheus
from alpheus import Statistics
from alpheus.trials import StatisticsParties

PLAN = """
place: speed/road
attribute: speed
interval: { lowest: 0, highest: 100, decimals: 1 }
deviation: true
every: 30s
during: 2
quota: 4
accounts: 2
slots: 9
expected: 8
clients: 3
release: full
after: { turn: 10s, turns: 2, settling: 1s, patience: 1min }
"""
SAMPLES = {"ada": [61.2, 60.1, 57.7], "bert": [58.4, 59, 58.1], "cleo": ["64", 63.2]}


def test_what_is_published_is_what_clients_gave(tmp_path):
    plan = tmp_path / "road.yaml"
    plan.write_text(PLAN)
    with StatisticsParties(SAMPLES) as parties:
        roads = Statistics(parties.card)
        roads.define(plan, key=parties.definer_key)
        own = {
            name: {"account": name, "secret_file": parties.secret(name), "state": tmp_path / name}
            for name in SAMPLES
        }
        with pytest.raises(alpheus.InputError, match="sample 1 is not a number"):
            roads.contribute(plan, [1, "fast"], **own["ada"])
        given = [roads.contribute(plan, samples, **own[name]) for name, samples in SAMPLES.items()]
        for contribution in given:
            contribution.wait(240)
        found = [row for row in roads.results(plan) if row.state == "result"]
        numbers = [float(sample) for samples in SAMPLES.values() for sample in samples]
        assert len(found) == 1 and found[0].count == len(numbers) and found[0].slots == 9
        assert float(found[0].sum) == pytest.approx(sum(numbers))
        assert found[0].mean == pytest.approx(sum(numbers) / len(numbers), abs=1e-3)
