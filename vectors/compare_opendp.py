"""Holds what our vectors say to OpenDP, a second implementation:

    make opendp

Not part of the build: see docs/decisions/0009-opendp-as-a-script.md.
"""
import importlib.util
import json
import math
import statistics
import sys
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


def generator():
    """The samplers that our vectors are made with, which share no code with ours."""
    sys.argv = [sys.argv[0], "nowhere"]
    spec = importlib.util.spec_from_file_location("noise_generator", HERE / "noise" / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def alike(ours, theirs, scale):
    """Two samples' chi squared over cells of their common scale, in standard errors."""
    cuts = [-2, -1, -0.4, 0.4, 1, 2]
    cell = lambda x: sum(x / scale >= cut for cut in cuts)  # noqa: E731
    count = lambda sample: [sum(cell(x) == c for x in sample) for c in range(len(cuts) + 1)]  # noqa: E731
    a, b = count(ours), count(theirs)
    root = math.sqrt(len(theirs) / len(ours))
    chi = sum((x * root - y / root) ** 2 / (x + y) for x, y in zip(a, b) if x + y)
    off = (chi - len(cuts)) / math.sqrt(2 * len(cuts))
    assert off < 4, (scale, a, b, off)
    # Chi squared has its least at 0, not far below: what cells may miss, moments show.
    for moment in (1, 2):
        one, other = ([(x / scale) ** moment for x in sample] for sample in (ours, theirs))
        apart = statistics.mean(one) - statistics.mean(other)
        error = math.sqrt(statistics.variance(one) / len(one) + statistics.variance(other) / len(other))
        assert abs(apart) < 4 * error, (scale, moment, apart / error)
    return off


def sums():
    """What several controllers' shares add up to has the distribution that OpenDP draws at once."""
    made, said, stream = generator(), [], None
    for noise, honest in [(("Laplace", 5), 7), (("Laplace", 40), 3), (("Gaussian", 60), 3)]:
        kind, width = noise
        stream = made.Stream(1000 + width + honest)
        if kind == "Laplace":
            sampler, scale = made.Polya(Fraction(1, width), honest), width
            draw = dp.m.make_laplace(*integers(dp.absolute_distance(T="i64")), scale=float(width))
        else:
            sampler, scale = made.Gaussian(width // honest), math.sqrt(width)
            draw = dp.m.make_gaussian(*integers(dp.absolute_distance(T=float)), scale=scale)
        ours = [sum(sampler.draw(stream) for _ in range(honest)) for _ in range(800)]
        said.append(f"{honest} of {kind} {width}: {alike(ours, [draw(0) for _ in range(4000)], scale):.1f}")
    # The vectors' own draws, as the Rust makes them, in as many sums as they have.
    for case in cases("noise/v1/shares.json"):
        kind, own = next(iter(case["noise"].items()))
        honest, draws = case["honest"], [int(x) for x in case["draws"]]
        if kind == "Laplace" and 1 < honest <= 10 and int(own["below"]) > int(own["above"]):
            whole = [sum(draws[i : i + honest]) for i in range(0, len(draws) - honest + 1, honest)]
            scale = int(own["below"]) / int(own["above"])
            # A Laplace variable's square has the variance 20 scale^4.
            squares, error = sum(x * x for x in whole) / len(whole) / scale**2, math.sqrt(20 / len(whole))
            assert abs(squares - 2) < max(4 * error, 6 / scale), (case["noise"], squares, error)
    return "sums of shares, in standard errors: " + "; ".join(said)


def columns(windows):
    """B's first column and its length, squared."""
    b = [math.comb(2 * k, k) / 4**k for k in range(windows)]
    return b, sum(x * x for x in b)


def running():
    """The whole horizon costs, at our seeds' scale, no more than we charge: Gaussian noise
    on B x, whose sensitivity is that of the moved columns."""
    gaps = []
    for case in cases("budget/v1/running.json"):
        windows, touched, honest = case["windows"], case["touched"], case["honest"]
        grid = case["fraction_bits"] + case["fine_bits"]
        scale = math.sqrt(honest) * float(Fraction(int(case["seed_scale"]), 1 << grid))
        moved = 500 * int(case["events"]) * touched * math.sqrt(columns(windows)[1])
        domain = dp.vector_domain(dp.atom_domain(T=float, nan=False), windows)
        theirs = dp.m.make_gaussian(domain, dp.l2_distance(T=float), scale=scale)
        rho = theirs.map(moved)
        asked, delta = case["micro_epsilon"] / 1e6, int(case["atto_delta"]) / 1e18
        epsilon = dp.c.make_zCDP_to_approxDP(theirs).map(moved).epsilon(delta)
        assert epsilon <= asked * (1 + 1e-9), (case, epsilon)
        gaps.append(asked / epsilon)
        assert math.isclose(rho, moved**2 / 2 / scale**2, rel_tol=1e-9)
    return f"running totals: {len(gaps)} horizons, ours {min(gaps):.3f} to {max(gaps):.3f} times theirs"


def totals():
    """Three controllers' totals after four windows are B times OpenDP's Gaussian noise."""
    made, windows, honest, fine = generator(), 4, 3, 8
    scale = 12 << fine
    b, norm = columns(windows)
    sampler, stream = made.Gaussian(scale * scale), made.Stream(4242)
    total = lambda: sum(  # noqa: E731
        made.rounded(sum(int(sampler.draw(stream) * x) for x in reversed(b)), fine) for _ in range(honest)
    )
    ours = [total() for _ in range(400)]
    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False), windows)
    noise = dp.m.make_gaussian(domain, dp.l2_distance(T=float), scale=12 * math.sqrt(honest))
    theirs = [sum(z * x for z, x in zip(noise([0.0] * windows), reversed(b))) for _ in range(4000)]
    return f"totals: {alike(ours, theirs, 12 * math.sqrt(honest * norm)):.1f} standard errors"


if __name__ == "__main__":
    for check in [conversions, noise, samples, sums, running, totals]:
        print(check())
