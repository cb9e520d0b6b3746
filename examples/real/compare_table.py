#!/usr/bin/env python3
"""Compares the output of `alpheus table replay` with the exact truth about a data set.

    compare_table.py DATA DATASET OUTPUT.json

DATA is the folder of real files, OUTPUT.json what the replay of the data set's
`table/stats.sql` wrote. Every count, sum, mean, variance, covariance, slope and
intercept must be the exact one, rounded once, and every row verified. Exits 1 on any
difference and never prints a value, only where it differs.
"""
import sys
from decimal import Decimal
from fractions import Fraction

from compare import load, scale_of, truth_of


def exact(numerator, denominator):
    return None if denominator == 0 else float(Fraction(numerator, denominator))


def single(row, name, scale, count, total, squares):
    """Columns of one attribute that differ."""
    unit = 10**scale
    wanted = {
        "count": count,
        "sum": total,
        "avg": exact(total, count * unit),
        "var": exact(count * squares - total * total, count * count * unit * unit),
    }
    if total is not None and row.get(f"sum_{name}") is not None:
        row = {**row, f"sum_{name}": int(Decimal(row[f"sum_{name}"]).scaleb(scale))}
    return [f"{head}_{name}" for head, value in wanted.items() if row.get(f"{head}_{name}") != value]


def pair(row, y, x, scales, truth):
    """Columns of a pair that differ."""
    n, sx, sy, sxx, sxy = (truth[k] for k in ("n", "sx", "sy", "sxx", "sxy"))
    ux, uy = 10 ** scales[x], 10 ** scales[y]
    d = n * sxx - sx * sx
    wanted = {
        "cov": exact(n * sxy - sx * sy, n * n * ux * uy),
        "slope": exact((n * sxy - sx * sy) * ux, d * uy),
        "intercept": exact(sy * sxx - sx * sxy, d * uy),
    }
    named = ((f"{head}_{y}_{x}", value) for head, value in wanted.items())
    return [name for name, value in named if name in row and row[name] != value]


def totals(truth, row, scales):
    problems = []
    for name, values in truth["total"].items():
        problems += single(row, name, scales[name], values["count"], values["sum"], values["sumsq"])
    for names, values in truth.get("pairs", {}).items():
        y, x = names.split("~")
        if f"cov_{y}_{x}" not in row:
            problems.append(f"no cov_{y}_{x}")
        problems += pair(row, y, x, scales, values)
    return problems


def days(table, rows, group, scales, within):
    """Rows by day, and by group if there is one, against the truth about each."""
    found = {(row["window_start"], str(row[group]) if group else None): row for row in rows}
    problems, compared = [], 0
    for name, expected in table.items():
        listed = expected.items() if group else [(None, expected)]
        keys = set()
        for member, windows in listed:
            for start, count, total, squares, *_ in windows:
                key = (start * 1000, None if member is None else str(member))
                if not within(key[0]):
                    continue
                keys.add(key)
                compared += 1
                row = found.get(key)
                differ = ["no row"] if row is None else single(row, name, scales[name], count, total, squares)
                problems += [f"{name}, {key[0]}: {what}" for what in differ]
        for key, row in found.items():
            if key not in keys and row[f"count_{name}"] != 0:
                problems.append(f"{name}, {key[0]}: should hold nothing")
    return problems, compared


DAYS = {
    "bike_counts": ("windows_1d", None),
    "traffic_counts": ("windows_1d_by_segment", "segment_id"),
    "smartmeter": ("windows_1d_by_household", "VID"),
}


def main():
    data, dataset, output = sys.argv[1:]
    truth, rows = truth_of(data, dataset), load(output)
    scales = {name: scale_of(truth, name) for name in truth["scale"]}
    unverified = sum(row.get("verified") is not True for row in rows)
    queries = {}
    for row in rows:
        queries.setdefault(row["query"], []).append(row)
    (all_rows,) = queries[1]
    problems, compared = totals(truth, all_rows, scales), 1
    key, group = DAYS[dataset]
    for number in sorted(queries)[1:]:
        starts = [row["window_start"] for row in queries[number]]
        # The third query is a range: its first and last day bound it.
        low, high = (min(starts), max(starts)) if number > 2 else (0, 1 << 60)
        more, count = days(truth[key], queries[number], group, scales, lambda t: low <= t <= high)
        problems, compared = problems + more, compared + count
    for problem in problems[:20]:
        print(problem, file=sys.stderr)
    print(f"{dataset}: {compared} compared, {len(problems)} different, {unverified} not verified")
    sys.exit(1 if problems or unverified or not compared else 0)


if __name__ == "__main__":
    main()
