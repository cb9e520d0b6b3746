"""Holds what our vectors say to OpenDP, a second implementation:

    python3 -m venv /tmp/opendp && /tmp/opendp/bin/pip install opendp==0.16.0
    /tmp/opendp/bin/python vectors/compare_opendp.py

Not part of the build: see docs/decisions/0009-opendp-as-a-script.md.
"""
import json
import math
from fractions import Fraction
from pathlib import Path

import opendp.prelude as dp

dp.enable_features("contrib")
HERE = Path(__file__).parent


def cases(path):
    return json.loads((HERE / path).read_text())


def integers(metric, size=None):
    atom = dp.atom_domain(T="i64")
    return (atom if size is None else dp.vector_domain(atom), metric)


def conversions():
    """Our zCDP to (epsilon, delta) is never below OpenDP's tighter one."""
    gaps = []
    for case in cases("budget/v1/conversions.json"):
        rho, delta = int(case["most_rho"]) / 1e24, int(case["atto_delta"]) / 1e18
        ours = int(case["least_epsilon"]) / 1e18
        gaussian = dp.m.make_gaussian(*integers(dp.absolute_distance(T=float)), scale=1 / math.sqrt(2 * rho))
        theirs = dp.c.make_zCDP_to_approxDP(gaussian).map(1.0).epsilon(delta)
        assert ours >= theirs, (case, theirs)
        if theirs > 0:
            gaps.append(ours / theirs)
    return f"conversions: {len(gaps)}, ours {min(gaps):.3f} to {max(gaps):.3f} times theirs"


def noise():
    """At our scales OpenDP charges what we charge, and never more."""
    count = 0
    for case in cases("budget/v1/noise.json"):
        events = int(case["events"])
        for (rows, l1, l2), noise in zip(case["groups"], case["noise"]):
            moved, squared = int(l1) * events, int(l2) * events**2
            if case["mechanism"] == "Laplace":
                own = noise["Laplace"]
                scale = int(own["below"]) / int(own["above"])
                theirs = dp.m.make_laplace(*integers(dp.l1_distance(T="i64"), rows), scale=scale).map(moved)
                ours = int(case["charge"]) / 1e18
            elif case["mechanism"] == "Gaussian":
                scale = math.sqrt(int(noise["Gaussian"]["variance"]))
                metric = dp.l2_distance(T=float)
                theirs = dp.m.make_gaussian(*integers(metric, rows), scale=scale).map(math.sqrt(squared))
                ours = int(case["charge"]) / 1e24
            else:
                continue
            assert theirs <= ours * (1 + 1e-9), (case, theirs, ours)
            assert rows > 1 or theirs >= ours * (1 - 1e-3), (case, theirs, ours)
            count += 1
    return f"noise: {count} groups"


def samples():
    """Our known draws and fresh ones of theirs have one distribution: the two
    samples' chi squared, for a lone controller."""
    said = []
    for case in cases("noise/v1/shares.json"):
        kind, own = next(iter(case["noise"].items()))
        if case["honest"] != 1 or kind == "Skellam" or len(case["draws"]) < 30:
            continue
        scale = float(Fraction(own["below"]) / Fraction(own["above"]))
        draw = dp.m.make_laplace(*integers(dp.absolute_distance(T="i64")), scale=scale)
        ours, theirs = [int(x) for x in case["draws"]], [draw(0) for _ in range(6000)]
        cuts = [-2, -1, -0.4, 0.4, 1, 2]
        cell = lambda x: sum(x / scale >= cut for cut in cuts)  # noqa: E731, B023
        p = [sum(cell(x) == c for x in theirs) / len(theirs) for c in range(len(cuts) + 1)]
        chi = sum((sum(cell(x) == c for x in ours) - len(ours) * q) ** 2 / (len(ours) * q) for c, q in enumerate(p))
        off = (chi - len(cuts)) / math.sqrt(2 * len(cuts))
        assert off < 4, (case["noise"], chi)
        said.append(f"{kind} {scale:g}: {off:.1f}")
    return "samples, in standard errors: " + "; ".join(said)


if __name__ == "__main__":
    for check in [conversions, noise, samples]:
        print(check())
