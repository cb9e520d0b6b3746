"""Writes v1/ below the directory that it is given: how released rows become results.

Independent of the Rust code: exact fractions from the standard library, and
floats by CPython's own correctly rounded division.
"""
import json
import math
import random
import sys
from fractions import Fraction
from pathlib import Path

OUT = Path(sys.argv[1]) / "v1"
random.seed("alpheus/statistics/v1")


def rounded(value):
    """Nearest double, ties to even, as the shortest text that reads back."""
    return None if value is None else repr(float(value))


def root(value):
    """Square root of a fraction, rounded once."""
    if value == 0:
        return repr(0.0)
    # Enough bits that the discarded tail decides no rounding but by its sign.
    bits = 4000
    scaled = (value.numerator << (2 * bits)) // value.denominator
    low = math.isqrt(scaled)
    exact = low * low == scaled and scaled * value.denominator == value.numerator << (2 * bits)
    tail = 0 if exact else 1
    return repr(float(Fraction(2 * low + tail, 1 << (bits + 1))))


def ratio(a, b):
    return None if b == 0 else Fraction(a, b)


def moments_of(values, scale):
    n, s, q = len(values), sum(values), sum(v * v for v in values)
    return n, s, q, scale


def moments_case(n, s, q, scale):
    unit = 10**scale
    mean = ratio(s, n * unit)
    variance = ratio(n * q - s * s, n * n * unit * unit)
    return {
        "count": str(n), "sum": str(s), "squares": str(q), "scale": scale,
        "mean": rounded(mean), "variance": rounded(variance),
        "deviation": None if variance is None else root(variance),
    }


def moments():
    cases = [moments_case(0, 0, 0, 0), moments_case(0, 0, 0, 3)]
    for _ in range(300):
        size = random.choice([1, 1, 2, 3, 10, 100])
        reach = 10 ** random.randrange(1, 17)
        values = [random.randint(-reach, reach) for _ in range(size)]
        cases.append(moments_case(*moments_of(values, random.randrange(0, 7))))
    # Constant values: a variance of exactly zero, which floats often miss.
    for value in (7, -123456789, 10**15 + 1):
        cases.append(moments_case(*moments_of([value] * 1000, 2)))
    # Ties: 53 bits and a half, to even downwards and upwards.
    for s in (2**53 + 1, 2**53 + 3, -(2**53 + 1), 2**54 + 2, 2**54 + 6):
        cases.append(moments_case(1, s, s * s, 0))
    # Just beside a tie: only the remainder of the division tells.
    for s, n in ((3 * (2**53 + 1) + 1, 3), (3 * (2**53 + 1) - 1, 3), (7 * (2**55 + 4) + 1, 7)):
        cases.append(moments_case(n, s, s * s, 0))
    # Means far below one, down to where floats lose places and end.
    for scale in (18, 100, 200, 255):
        cases.append(moments_case(3, 1, 1, scale))
        cases.append(moments_case(1, 2**60 + 1, (2**60 + 1) ** 2, scale))
    return cases


def pair_case(pairs, x_scale, y_scale):
    n = len(pairs)
    x, y = sum(p[0] for p in pairs), sum(p[1] for p in pairs)
    xx, yy = sum(p[0] ** 2 for p in pairs), sum(p[1] ** 2 for p in pairs)
    xy = sum(p[0] * p[1] for p in pairs)
    ux, uy = 10**x_scale, 10**y_scale
    points = [(Fraction(a, ux), Fraction(b, uy)) for a, b in pairs]
    if n:
        mx, my = sum(a for a, _ in points) / n, sum(b for _, b in points) / n
        cov = sum((a - mx) * (b - my) for a, b in points) / n
        vx = sum((a - mx) ** 2 for a, _ in points) / n
        vy = sum((b - my) ** 2 for _, b in points) / n
        slope = cov / vx if vx else None
        intercept = my - slope * mx if vx else None
        r_squared = cov * cov / (vx * vy) if vx and vy else None
    else:
        cov = slope = intercept = r_squared = None
    return {
        "count": str(n), "x": str(x), "y": str(y), "xx": str(xx), "xy": str(xy), "yy": str(yy),
        "x_scale": x_scale, "y_scale": y_scale,
        "slope": rounded(slope), "intercept": rounded(intercept),
        "r_squared": rounded(r_squared), "covariance": rounded(cov),
    }


def pairs():
    cases = [pair_case([], 0, 0), pair_case([(3, 4)], 1, 0), pair_case([(3, 4), (3, 9)], 0, 2)]
    cases.append(pair_case([(1, 5), (2, 5), (7, 5)], 0, 0))
    for _ in range(200):
        size = random.choice([2, 3, 5, 50])
        reach = 10 ** random.randrange(1, 10)
        both = [(random.randint(-reach, reach), random.randint(-reach, reach)) for _ in range(size)]
        cases.append(pair_case(both, random.randrange(0, 5), random.randrange(0, 5)))
    return cases


def packing():
    cases = []
    for bits in (2, 3, 7, 8, 12, 16, 21, 31, 32, 33, 63, 64):
        low, high, per_word = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1, 64 // bits
        rows = [[low] * per_word, [high] * per_word, [-1] * per_word, [0] * per_word]
        rows.append([low if i % 2 else high for i in range(per_word)])
        rows.append([high if i % 2 else low for i in range(per_word)])
        rows += [[random.randint(low, high) for _ in range(per_word)] for _ in range(10)]
        for digits in rows:
            word = sum(d << (bits * i) for i, d in enumerate(digits)) % 2**64
            cases.append({"bits": bits, "digits": digits, "word": word})
    return cases


def limbs():
    cases = []
    for bits in (1, 31, 32, 33, 63, 64, 90):
        for value in (2**bits - 1, -(2**bits), 2**bits, random.randint(-(2**bits), 2**bits)):
            cases.append({"value": str(value), "low": value % 2**32, "high": (value >> 32) % 2**64})
    return cases


def quantiles():
    cases = []
    for _ in range(100):
        counts = [random.choice([0, 0, 1, 2, 9, 1000]) for _ in range(random.randrange(1, 12))]
        ordered = [i for i, count in enumerate(counts) for _ in range(count)]
        numerator, denominator = random.choice([(1, 2), (0, 1), (1, 1), (95, 100), (1, 4), (999, 1000)])
        rank = max(1, math.ceil(Fraction(len(ordered) * numerator, denominator)))
        cases.append({
            "counts": counts, "numerator": numerator, "denominator": denominator,
            "bin": ordered[rank - 1] if ordered else None,
        })
    return cases


def bad():
    """Plans and rows that give no result, and the name of the refusal."""
    whole = lambda row: {"Whole": {"row": row}}
    item = lambda statistic: [{"alias": "a", "statistic": statistic}]
    mean = {"Moments": {"output": "Mean", "count": 0, "sum": 1, "squares": None, "scale": 0}}
    var = {"Moments": {"output": "Variance", "count": 0, "sum": 1, "squares": 2, "scale": 0}}
    lost = {"Moments": {"output": "Variance", "count": 0, "sum": 1, "squares": None, "scale": 0}}
    three = [whole(0), whole(1), whole(2)]
    minus = 2**64 - 1
    cases = [
        ("check word not zero", three, item(mean), [1, 2, 4, 1], "CheckWordNotZero"),
        ("no rows", [], [], [], "CheckWordNotZero"),
        ("row missing", [whole(7)], [], [1, 0], "MissingRow"),
        ("digit beyond its word", [{"Digit": {"row": 0, "bits": 16, "digit": 4}}], [], [1, 0], "BadDigit"),
        ("digit without width", [{"Digit": {"row": 0, "bits": 0, "digit": 0}}], [], [1, 0], "BadDigit"),
        ("cell missing", three[:1], item(mean), [1, 0], "BadReference"),
        ("squares missing", three, item(lost), [1, 2, 4, 0], "BadReference"),
        ("negative count", three, item(mean), [minus, 2, 4, 0], "Impossible"),
        ("negative variance", three, item(var), [2, 10, 1, 0], "Impossible"),
    ]
    return [
        {"name": name, "plan": {"cells": cells, "items": items}, "rows": rows, "error": error}
        for name, cells, items, rows, error in cases
    ]


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    files = {
        "moments": moments, "pairs": pairs, "packing": packing, "limbs": limbs,
        "quantiles": quantiles, "decode_bad_rows": bad,
    }
    for name, make in files.items():
        lines = ",\n".join(json.dumps(case, sort_keys=True) for case in make())
        (OUT / f"{name}.json").write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
